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

// A peer on PostgreSQL is a program of its own below bench/peers, which prints
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
		f.costs[l.Name] = cost{l.Jobs, time.Duration(l.Seconds * float64(time.Second)), time.Duration(l.ClientCPU * float64(time.Second)), now - before}
		before = now
		for _, ms := range l.Times {
			f.pickUp = append(f.pickUp, time.Duration(ms*float64(time.Millisecond)))
		}
	}
	slices.Sort(f.pickUp)
	return f, cmd.Wait()
}

func river(ctx context.Context, s *servers.Server, n int) (peerFigures, error) {
	dsn, _, err := s.Database()
	if err != nil {
		return peerFigures{}, err
	}
	dir, err := os.MkdirTemp("", "cmsjobs-bench-")
	if err != nil {
		return peerFigures{}, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "river")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir = "bench/peers/river"
	if out, err := build.CombinedOutput(); err != nil {
		return peerFigures{}, fmt.Errorf("%w: %w\n%s", errAbsent, err, out)
	}
	return runPeer(s, exec.CommandContext(ctx, program, "-dsn", dsn, "-jobs", strconv.Itoa(n)))
}

// graphileVersion is what npm installs.
const graphileVersion = "graphile-worker@0.18.0"

func graphile(ctx context.Context, s *servers.Server, n int) (peerFigures, error) {
	dsn, _, err := s.Database()
	if err != nil {
		return peerFigures{}, err
	}
	dir, err := os.MkdirTemp("", "cmsjobs-bench-")
	if err != nil {
		return peerFigures{}, err
	}
	defer os.RemoveAll(dir)
	install := exec.CommandContext(ctx, "npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--loglevel=error", graphileVersion)
	if out, err := install.CombinedOutput(); err != nil {
		return peerFigures{}, fmt.Errorf("%w: %w\n%s", errAbsent, err, out)
	}
	script, err := filepath.Abs("bench/peers/graphile/bench.mjs")
	if err != nil {
		return peerFigures{}, err
	}
	cmd := exec.CommandContext(ctx, "node", script, dsn, strconv.Itoa(n))
	cmd.Dir = dir
	return runPeer(s, cmd)
}
