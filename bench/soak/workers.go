package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// worker is one process of the program, started again when it was ended.
type worker struct {
	name, binary string
	words, env   []string
	log          *os.File

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// startTeam starts those that share the work: one that is spared, one more that
// runs everything, one behind a bad network, two whose clocks are wrong, and as many
// plain ones as are asked for.
func (l *lab) startTeam(ctx context.Context) error {
	near, far := l.dsn(l.server.Port), l.dsn(l.toxics.ports["database"])
	team := []*worker{
		{name: "veteran", words: []string{"run"}},
		{name: "second", words: []string{"run"}},
		{name: "far", words: []string{"work"}, env: []string{"CMSJOBS_DATABASE_DSN=" + far}},
		{name: "fast-clock", binary: l.skewed, words: []string{"run"}, env: []string{"CLOCK_SKEW=5400"}},
		{name: "slow-clock", binary: l.skewed, words: []string{"work"}, env: []string{"CLOCK_SKEW=-5400"}},
	}
	for i := len(team); i < l.processes; i++ {
		team = append(team, &worker{name: fmt.Sprintf("plain-%d", i), words: []string{"work"}})
	}
	for _, w := range team {
		if w.binary == "" {
			w.binary = l.binary
		}
		port, err := freePort()
		if err != nil {
			return err
		}
		w.words = append([]string{"--config", l.configFile()}, w.words...)
		w.env = append([]string{"CMSJOBS_DATABASE_DSN=" + near, "CMSJOBS_QUEUE_CONCURRENCY=4",
			"CMSJOBS_QUEUE_WORKER_ID=" + w.name,
			fmt.Sprintf("CMSJOBS_HTTP_LISTEN=127.0.0.1:%d", port)}, w.env...)
		if w.log, err = os.Create(filepath.Join(l.dir, "logs", w.name+".log")); err != nil {
			return err
		}
		if err := w.start(ctx); err != nil {
			return err
		}
		l.team = append(l.team, w)
	}
	return nil
}

func (w *worker) start(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	//nolint:noctx // it ends when it is asked to, not when the run is interrupted
	c := exec.Command(w.binary, w.words...)
	c.Env = append(os.Environ(), w.env...)
	c.Stdout, c.Stderr = w.log, w.log
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", w.name, err)
	}
	finished := make(chan struct{})
	w.cmd, w.done, w.err = c, finished, nil
	go func() {
		err := c.Wait()
		w.mu.Lock()
		w.err = err
		w.mu.Unlock()
		close(finished)
	}()
	return nil
}

func (w *worker) signal(s syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cmd != nil {
		_ = w.cmd.Process.Signal(s) // one that has ended needs none
	}
}

func (w *worker) kill() {
	w.signal(syscall.SIGKILL)
	_ = w.wait(time.Minute) // it was killed
}

// wait returns what the process ended with.
func (w *worker) wait(most time.Duration) error {
	w.mu.Lock()
	done := w.done
	w.mu.Unlock()
	select {
	case <-done:
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.err
	case <-time.After(most):
		return fmt.Errorf("%s did not end within %v", w.name, most)
	}
}

// ended says whether the process is gone although nobody ended it.
func (w *worker) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *worker) pid() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cmd.Process.Pid
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// sample is what the spared process holds at a moment.
type sample struct{ rssKiB, files int }

func (w *worker) measure() (s sample, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.pid()))
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &s.rssKiB); err == nil {
			break
		}
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.pid()))
	s.files = len(open)
	return s, err
}
