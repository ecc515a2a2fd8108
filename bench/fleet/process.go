package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// process is one worker process, of ours or of a peer. It says "ready", begins to work
// when it gets a line, stops when its input ends, and says then how many microseconds
// of processor time it used since the line.
type process struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Reader
}

// child is a process of this program.
func child(ctx context.Context, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	return exec.CommandContext(ctx, self, args...), err
}

// startProcess returns when the worker is ready.
func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.output = bufio.NewReader(output)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// ready waits until the worker says so.
func (p *process) ready() error {
	if line, err := p.output.ReadString('\n'); err != nil {
		return fmt.Errorf("a worker said %q instead of being ready: %w", line, err)
	}
	return nil
}

// stop ends the worker and returns the microseconds that it used.
func (p *process) stop() (int64, error) {
	if err := p.input.Close(); err != nil {
		return 0, err
	}
	line, err := p.output.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("a worker ended without its figures: %w", err)
	}
	micros, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return micros, errors.Join(err, p.cmd.Wait())
}

// kill ends a worker that may have ended.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // it was killed
	}
}

// team are worker processes that begin together.
type team []*process

// gather starts n processes; all of them are ready.
func gather(n int, command func() (*exec.Cmd, error)) (team, error) {
	var t team
	for range n {
		cmd, err := command()
		if err == nil {
			var p *process
			if p, err = startProcess(cmd); err == nil {
				t = append(t, p)
			}
		}
		if err != nil {
			t.kill()
			return nil, err
		}
	}
	for _, p := range t {
		if err := p.ready(); err != nil {
			t.kill()
			return nil, err
		}
	}
	return t, nil
}

func (t team) begin() error {
	for _, p := range t {
		if _, err := io.WriteString(p.input, "go\n"); err != nil {
			return err
		}
	}
	return nil
}

// stop returns the microseconds that all of them used. What it ends first does not
// wait for the others.
func (t team) stop() (sum int64, err error) {
	for _, p := range t {
		micros, failed := p.stop()
		if failed != nil {
			return 0, failed
		}
		sum += micros
	}
	return sum, nil
}

func (t team) kill() {
	for _, p := range t {
		p.kill()
	}
}
