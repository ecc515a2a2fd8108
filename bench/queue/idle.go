package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/servers"
)

// idle is what a worker costs that has nothing to do.
type idle struct {
	queries        float64 // a second
	client, server float64 // % of a core
	memory, own    float64 // MiB resident, and without the pages of the program's file
}

// idling runs the real program for a while on the same database.
func (o *ours) idling(ctx context.Context, d time.Duration) (idle, error) {
	dir, err := os.MkdirTemp("", "cmsjobs-bench-")
	if err != nil {
		return idle{}, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "cmsjobs")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", program, "./cmd/cmsjobs")
	if out, err := build.CombinedOutput(); err != nil {
		return idle{}, fmt.Errorf("building cmsjobs: %w\n%s", err, out)
	}
	work := exec.CommandContext(ctx, program, "--dsn", o.dsn, "work")
	work.Dir = dir
	if err := work.Start(); err != nil {
		return idle{}, err
	}
	ended := func() error { return errors.Join(work.Process.Signal(syscall.SIGTERM), work.Wait()) }
	time.Sleep(6 * time.Second) // started, and its polls as far apart as they get
	before, asked, own := o.server.CPU(), o.questions(ctx), servers.Ticks(work.Process.Pid, false)
	time.Sleep(d)
	var i idle
	i.queries = float64(o.questions(ctx)-asked-1) / d.Seconds()
	i.client = 100 * (servers.Ticks(work.Process.Pid, false) - own).Seconds() / d.Seconds()
	i.server = 100 * (o.server.CPU() - before).Seconds() / d.Seconds()
	i.memory, i.own = resident(work.Process.Pid)
	return i, ended()
}

// resident is what a process occupies, in MiB.
func resident(pid int) (all, own float64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(status)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kib, _ := strconv.ParseFloat(f[1], 64)
		switch f[0] {
		case "VmRSS:":
			all = kib / 1024
		case "RssAnon:":
			own = kib / 1024
		}
	}
	return all, own
}

// questions is how many statements MariaDB has been asked.
func (o *ours) questions(ctx context.Context) (n int) {
	var name string
	if err := o.db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &n); err != nil {
		return 0
	}
	return n
}
