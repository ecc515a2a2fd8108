package php

import (
	"errors"
	"os"
	"os/exec"
	"time"
)

// Windows has no descriptors 3 and 4 for children: New refuses it.
const supported, seesUnread = false, false

func ownGroup(*exec.Cmd) {}

func killGroup(p *os.Process) error { return p.Kill() }

func terminate(p *os.Process) error { return p.Kill() }

func readNow(int, []byte) (int, error) { return 0, errors.ErrUnsupported }

func unread(*os.File) int { return 0 }

func monotonic() time.Duration { return 0 }

func lockFile(*os.File) error { return errors.ErrUnsupported }

func lives(int) bool { return false }

func resident(int) int64 { return 0 }
