package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/servers"
)

// A peer on PostgreSQL is a separate program below bench/peers, which prints
// a line a figure. The server's processor time is read between the lines.
type peerLine struct {
	Name      string    `json:"name"`
	Jobs      int       `json:"jobs"`
	Seconds   float64   `json:"seconds"`
	ClientCPU float64   `json:"clientCpu"`
	Times     []float64 `json:"times"` // ms
}

type peerFigures struct {
	costs  map[string]cost
	pickUp []time.Duration
}

func runPeer(s *servers.Server, cmd *exec.Cmd) (peerFigures, error) {
	f := peerFigures{costs: map[string]cost{}}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return f, err
	}
	if err := cmd.Start(); err != nil {
		return f, err
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	before := s.CPU()
	for lines.Scan() {
		var l peerLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return f, fmt.Errorf("what %s said: %w", cmd.Path, err)
		}
		time.Sleep(200 * time.Millisecond) // connections that it closed have ended
		now := s.CPU()
		f.costs[l.Name] = cost{l.Jobs, time.Duration(l.Seconds * float64(time.Second)),
			time.Duration(l.ClientCPU * float64(time.Second)), now - before}
		before = now
		for _, ms := range l.Times {
			f.pickUp = append(f.pickUp, time.Duration(ms*float64(time.Millisecond)))
		}
	}
	slices.Sort(f.pickUp)
	return f, cmd.Wait()
}

// builtPeer is a peer in Go: it builds bench/peers/NAME in dir and runs it.
func builtPeer(ctx context.Context, s *servers.Server, dir, name string, args ...string) (peerFigures, error) {
	program := filepath.Join(dir, name)
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir = "bench/peers/" + name
	if err := available(build); err != nil {
		return peerFigures{}, err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	servers.AsOurs(cmd)
	return runPeer(s, cmd)
}

// available runs what puts a peer on this machine; it is errAbsent where that
// cannot be done.
func available(install *exec.Cmd) error {
	if out, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %w\n%s", errAbsent, err, out)
	}
	return nil
}

// withDatabase gives a peer its own database and a folder that goes with
// the run.
func withDatabase(s *servers.Server, run func(dsn, dir string) (peerFigures, error)) (peerFigures, error) {
	dsn, _, err := s.Database()
	if err != nil {
		return peerFigures{}, err
	}
	dir, err := os.MkdirTemp("", "cmsjobs-bench-")
	if err != nil {
		return peerFigures{}, err
	}
	defer os.RemoveAll(dir)
	return run(dsn, dir)
}

func river(ctx context.Context, s *servers.Server, n int) (peerFigures, error) {
	return withDatabase(s, func(dsn, dir string) (peerFigures, error) {
		return builtPeer(ctx, s, dir, "river", "-dsn", dsn, "-jobs", strconv.Itoa(n))
	})
}

func backlite(ctx context.Context, s *servers.Server, dir string, n int) (peerFigures, error) {
	return builtPeer(ctx, s, dir, "sqlite", "-path", filepath.Join(dir, "backlite.sqlite"), "-jobs", strconv.Itoa(n))
}

// graphileVersion is what npm installs.
const graphileVersion = "graphile-worker@0.18.0"

func graphile(ctx context.Context, s *servers.Server, n int) (peerFigures, error) {
	return withDatabase(s, func(dsn, dir string) (peerFigures, error) {
		err := available(exec.CommandContext(ctx, "npm", "install", "--prefix", dir, "--no-audit", "--no-fund",
			"--loglevel=error", graphileVersion))
		if err != nil {
			return peerFigures{}, err
		}
		script, err := filepath.Abs("bench/peers/graphile/bench.mjs")
		if err != nil {
			return peerFigures{}, err
		}
		cmd := exec.CommandContext(ctx, "node", script, dsn, strconv.Itoa(n))
		cmd.Dir = dir
		return runPeer(s, cmd)
	})
}
