package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// How long harm may be felt after it ended: leases run out and are found, hosts
// are connected again, breakers close.
const (
	aftermath = 3 * lease
	breakers  = 90 * time.Second
)

// harms are done in a random order, each as often as the others.
func (l *lab) harms() []func(context.Context) error {
	list := []func(context.Context) error{
		l.killWorker, l.killWorker, l.killServer, l.restartWorker, l.pauseWorker,
		l.cutNetwork, l.slowNetwork, l.blackHole, l.swallowPackets, l.resetNetwork, l.mailNetwork,
		l.readOnly, l.termWhileTheServerHangs, l.tableAway, l.hostsOut,
	}
	if l.dbClock != nil {
		list = append(list, l.clockForward, l.clockBack)
	}
	if len(l.disks) == 2 {
		list = append(list, l.fullDatabaseDisk, l.fullSiteDisk)
	}
	return list
}

// victim is a worker that is not spared.
func (l *lab) victim() *worker {
	return l.team[1+rand.IntN(len(l.team)-1)]
}

func (l *lab) killWorker(ctx context.Context) error {
	w := l.victim()
	l.did("worker killed", aftermath)
	w.kill()
	return w.start(ctx)
}

// restartWorker ends a worker as a deployment does: in order, and within its
// grace. Nothing may be felt of it.
func (l *lab) restartWorker(ctx context.Context) error {
	w := l.victim()
	w.signal(syscall.SIGTERM)
	if err := w.wait(time.Minute); err != nil && exitCode(err) != noDatabase { // it may not have found its server yet
		l.note("%s ended with %v after TERM", w.name, err)
		l.did("worker did not end in order", aftermath)
	}
	return w.start(ctx)
}

// pauseWorker stops a process for longer than its lease.
func (l *lab) pauseWorker(context.Context) error {
	w := l.victim()
	l.did("worker paused past its lease", 2*lease+aftermath)
	w.signal(syscall.SIGSTOP)
	time.Sleep(lease * 3 / 2)
	w.signal(syscall.SIGCONT)
	return nil
}

func (l *lab) killServer(context.Context) error {
	l.did("server killed", 5*time.Second+aftermath)
	if err := l.server.Kill(); err != nil {
		say("killing the server: %v", err) // its exit code
	}
	return l.startServer()
}

func (l *lab) startServer() error {
	if err := l.server.Start(); err != nil {
		return fmt.Errorf("the server does not come back: %w", err)
	}
	return nil
}

func (l *lab) cutNetwork(context.Context) error {
	l.did("network cut", 2*time.Second+aftermath)
	return l.toxics.cut("database", 2*time.Second)
}

func (l *lab) slowNetwork(context.Context) error {
	l.did("network slow", 8*time.Second+aftermath)
	if err := l.toxics.poison("database", "latency", map[string]any{"latency": 100, "jitter": 80},
		4*time.Second); err != nil {
		return err
	}
	return l.toxics.poison("database", "bandwidth", map[string]any{"rate": 8}, 4*time.Second)
}

func (l *lab) blackHole(context.Context) error {
	l.did("network a black hole", 6*time.Second+20*time.Second+aftermath) // the driver waits 10 s for an answer, twice
	return l.toxics.poison("database", "timeout", map[string]any{"timeout": 0}, 6*time.Second)
}

func (l *lab) resetNetwork(context.Context) error {
	l.did("connections reset", 3*time.Second+aftermath)
	return l.toxics.poison("database", "reset_peer", map[string]any{"timeout": 50}, 3*time.Second)
}

func (l *lab) mailNetwork(context.Context) error {
	l.harmed(fault{name: "mail server cut off", kind: "mail.send"}, 2*time.Second+breakers)
	return l.toxics.cut("mail", 2*time.Second)
}

// fullDatabaseDisk leaves the database without a free byte for longer than a
// lease. A server that dies of it is started again, as its supervisor would.
func (l *lab) fullDatabaseDisk(ctx context.Context) error {
	l.delayed("database's disk full", lease*5/2+10*time.Second+aftermath)
	if err := fill(l.disks, "database", lease*5/2); err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if l.db.PingContext(call) == nil {
		return nil
	}
	say("the server died of its full disk")
	l.did("server killed", 5*time.Second+aftermath)
	if err := l.server.Kill(); err != nil {
		say("the server was gone: %v", err)
	}
	return l.startServer()
}

func (l *lab) fullSiteDisk(context.Context) error {
	l.did("site's disk full", 5*time.Second+aftermath)
	return fill(l.disks, "cms", 3*time.Second)
}

// fill takes every byte of a disk that is free or comes free, for a while.
func fill(disks []string, name string, length time.Duration) error {
	for _, disk := range disks {
		if filepath.Base(disk) != name {
			continue
		}
		ballast := filepath.Join(disk, "ballast")
		f, err := os.Create(ballast)
		if err != nil {
			return fmt.Errorf("filling the disk: %w", err)
		}
		block := make([]byte, 1<<20)
		for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
			for n := len(block); n > 0; {
				if _, err := f.Write(block[:n]); err != nil {
					n /= 2 // until there is no space
				}
			}
		}
		return errors.Join(f.Close(), os.Remove(ballast))
	}
	return nil
}

// keepHarming does one harm after the other until ctx ends.
func (l *lab) keepHarming(ctx context.Context, every time.Duration) error {
	var deck []func(context.Context) error
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
		if len(deck) == 0 {
			deck = l.harms()
			rand.Shuffle(len(deck), func(i, k int) { deck[i], deck[k] = deck[k], deck[i] })
		}
		if err := deck[0](context.WithoutCancel(ctx)); err != nil {
			return err
		}
		deck = deck[1:]
		if err := l.watch(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
}

// watch starts what ended by itself, as supervisors do. A worker that finds no
// server at its start leaves with exit code 3, which is in order; a server may
// die some time after its disk was full. Anything else is noted.
func (l *lab) watch(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := l.db.PingContext(call); err != nil && ctx.Err() == nil {
		say("the server is gone: %v", err)
		l.did("server died", 5*time.Second+aftermath)
		if err := l.server.Kill(); err != nil {
			say("the server was gone: %v", err)
		}
		if err := l.startServer(); err != nil {
			return err
		}
	}
	for _, w := range l.team {
		if !w.ended() {
			continue
		}
		if err := w.wait(time.Second); exitCode(err) != noDatabase {
			l.note("%s ended by itself: %v", w.name, err)
			l.did("worker ended by itself", aftermath)
		}
		if err := w.start(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// noDatabase is the exit code of a program that found no database at its start.
const noDatabase = 3

func exitCode(err error) int {
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return failed.ExitCode()
	}
	return 0
}
