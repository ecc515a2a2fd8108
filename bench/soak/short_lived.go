package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// rareQueue is emptied by short-lived workers alone: nobody else rescues there.
const rareQueue = "rare"

// shortLived runs one worker that ends by itself, as a line of a crontab does.
// Each seventh is killed.
func (l *lab) shortLived(ctx context.Context) error {
	commands := [][]string{
		{"--set", "queue.queues=" + rareQueue, "tick", "--at-most", "5s"},
		{"work", "--queue", rareQueue, "--stop-when-empty", "--max-time", "5s"},
		{"work", "--queue", rareQueue, "--once", "--max-time", "5s"},
	}
	words := commands[rand.IntN(len(commands))]
	name := words[min(2, len(words)-1)]
	if words[0] == "work" {
		name = "work " + words[3]
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, l.binary, append([]string{"--config", l.configFile(), "--dsn", l.dsn(l.server.Port)},
		words...)...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said strings.Builder
	c.Stdout, c.Stderr = &said, &said
	c.Env = append(os.Environ(), "CMSJOBS_QUEUE_WORKER_ID=brief", "CMSJOBS_QUEUE_CONCURRENCY=2")
	if err := c.Start(); err != nil {
		return fmt.Errorf("starting a short-lived worker: %w", err)
	}
	kill := rand.IntN(7) == 0
	if kill {
		time.Sleep(time.Duration(100+rand.IntN(900)) * time.Millisecond)
		l.did("kill of a short-lived worker", aftermath+10*time.Second)
		_ = c.Process.Kill() // it may have ended
	}
	err := c.Wait()
	l.mu.Lock()
	l.brief[name]++
	l.mu.Unlock()
	var failed *exec.ExitError
	switch {
	case err == nil || kill:
	case errors.As(err, &failed) && l.inTrouble():
	default:
		l.note("%s ended with %v: %.300s", name, err, said.String())
	}
	return nil
}

// inTrouble says whether a fault is felt now.
func (l *lab) inTrouble() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.faults, func(f fault) bool { return f.until.After(time.Now()) })
}

// briefly counts the short-lived workers by their commands.
func (l *lab) briefly() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var words []string
	for _, name := range slices.Sorted(maps.Keys(l.brief)) {
		words = append(words, fmt.Sprintf("%s %d", name, l.brief[name]))
	}
	return strings.Join(words, ", ")
}
