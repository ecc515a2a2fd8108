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
	touched        float64 // MiB that were used while it was idle
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
	// A file that was just written lies in the system's cache in pages so large
	// that a touch maps nearly all of it; one that was installed does not.
	for _, step := range [][]string{{"sync", program}, {"dd", "if=" + program, "iflag=nocache", "count=0"}} {
		if out, err := exec.CommandContext(ctx, step[0], step[1:]...).CombinedOutput(); err != nil {
			return idle{}, fmt.Errorf("taking the program out of the cache: %w\n%s", err, out)
		}
	}
	work := exec.CommandContext(ctx, program, "--dsn", o.dsn, "work")
	work.Dir = dir
	if err := work.Start(); err != nil {
		return idle{}, err
	}
	ended := func() error { return errors.Join(work.Process.Signal(syscall.SIGTERM), work.Wait()) }
	time.Sleep(40 * time.Second) // started, and its polls and looks as far apart as they get (internal/feed)
	before, asked, own := o.server.CPU(), o.questions(ctx), servers.Ticks(work.Process.Pid, false)
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", work.Process.Pid), []byte("1"), 0); err != nil {
		return idle{}, errors.Join(err, ended())
	}
	time.Sleep(d)
	var i idle
	i.queries = float64(o.questions(ctx)-asked-1) / d.Seconds()
	i.client = 100 * (servers.Ticks(work.Process.Pid, false) - own).Seconds() / d.Seconds()
	i.server = 100 * (o.server.CPU() - before).Seconds() / d.Seconds()
	i.memory, i.own, i.touched = resident(work.Process.Pid)
	return i, ended()
}

// resident is what a process occupies, what of it is its own, and what it has
// touched since clear_refs was written, in MiB.
func resident(pid int) (all, own, touched float64) {
	status := kilobytes(fmt.Sprintf("/proc/%d/status", pid))
	return status["VmRSS:"] / 1024, status["RssAnon:"] / 1024,
		kilobytes(fmt.Sprintf("/proc/%d/smaps_rollup", pid))["Referenced:"] / 1024
}

// kilobytes reads the sizes in a file of /proc; none where the process has ended.
func kilobytes(path string) map[string]float64 {
	sizes := map[string]float64{}
	text, err := os.ReadFile(path)
	if err != nil {
		return sizes
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[2] == "kB" {
			sizes[f[0]], _ = strconv.ParseFloat(f[1], 64)
		}
	}
	return sizes
}

// questions is how many statements MariaDB has been asked.
func (o *ours) questions(ctx context.Context) (n int) {
	var name string
	if err := o.db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &n); err != nil {
		return 0
	}
	return n
}
