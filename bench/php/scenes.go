package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/php"
)

// drain is one way to work off jobs that do nothing.
type drain struct {
	name      string
	processes int
	rounds    []cost
	median    cost
}

// drains measures both workers in turns, with one process and with two.
func (s *site) drains(ctx context.Context, n, rounds int) (list []drain, err error) {
	for _, processes := range []int{1, 2} {
		stock, own := drain{name: fmt.Sprintf("queue:work, %d", processes), processes: processes},
			drain{name: fmt.Sprintf("cmsjobs, %d", processes), processes: processes}
		for round := range rounds {
			fmt.Fprintf(os.Stderr, "jobs that do nothing, %d processes, round %d\n", processes, round+1)
			c, err := s.net(ctx, "noop", n/4, func(n int) (cost, error) { return s.stock(ctx, n, processes) })
			if err != nil {
				return nil, err
			}
			stock.rounds = append(stock.rounds, c)
			if c, err = s.net(ctx, "noop", n, func(n int) (cost, error) {
				return s.own(ctx, n, processes, nil)
			}); err != nil {
				return nil, err
			}
			own.rounds = append(own.rounds, c)
		}
		for _, d := range []drain{stock, own} {
			slices.SortFunc(d.rounds, func(a, b cost) int { return cmp.Compare(a.rate(), b.rate()) })
			d.median = d.rounds[len(d.rounds)/2]
			list = append(list, d)
		}
	}
	return list, nil
}

// net is what n jobs cost without the start and the end of the workers: those are
// measured with one job and taken off.
func (s *site) net(ctx context.Context, probe string, n int, work func(n int) (cost, error)) (cost, error) {
	var costs [2]cost
	for i, jobs := range []int{1, n + 1} {
		err := s.push(ctx, probe, jobs)
		if err == nil {
			costs[i], err = work(jobs)
		}
		if err != nil {
			return cost{}, err
		}
		var left int
		if err := s.db.GetContext(ctx, &left,
			"SELECT (SELECT COUNT(*) FROM jobs) + (SELECT COUNT(*) FROM failed_jobs)"); err != nil || left > 0 {
			return cost{}, errors.Join(fmt.Errorf("%d of %d jobs are left", left, jobs), err)
		}
	}
	a, b := costs[1], costs[0]
	return cost{n, a.wall - b.wall, a.php - b.php, a.own - b.own, a.server - b.server}, nil
}

// nap is what a job that sleeps 5 ms takes: the sleep alone in a loop of PHP, and all in
// all by each worker.
type nap struct{ alone, stock, own time.Duration }

// naps measures all three in turns; the medians of what the workers add to the sleep count.
func (s *site) naps(ctx context.Context, n, rounds int) (nap, error) {
	var list []nap
	for round := range rounds {
		fmt.Fprintf(os.Stderr, "jobs of 5 ms, round %d\n", round+1)
		out, err := s.command(ctx, "naps", strconv.Itoa(n)).Output()
		if err != nil {
			return nap{}, fmt.Errorf("sleeping: %w", err)
		}
		seconds, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		if err != nil {
			return nap{}, err
		}
		stock, err := s.net(ctx, "nap", n, func(n int) (cost, error) { return s.stock(ctx, n, 1) })
		if err != nil {
			return nap{}, err
		}
		own, err := s.net(ctx, "nap", n, func(n int) (cost, error) { return s.own(ctx, n, 1, nil) })
		if err != nil {
			return nap{}, err
		}
		each := time.Duration(n)
		list = append(list, nap{time.Duration(seconds*float64(time.Second)) / each, stock.wall / each, own.wall / each})
	}
	slices.SortFunc(list, func(a, b nap) int { return cmp.Compare(a.own-a.alone, b.own-b.alone) })
	return list[len(list)/2], nil
}

// crashes is how long it takes until the end of a process that is killed in its job is
// known and written.
func (s *site) crashes(ctx context.Context, n int) (times []time.Duration, err error) {
	if err := s.push(ctx, "die", n); err != nil {
		return nil, err
	}
	_, err = s.own(ctx, n, 1, func(e php.End) bool {
		now := time.Now()
		if e.Outcome != php.Crashed {
			return true // the second run fails the job
		}
		text, _ := os.ReadFile(filepath.Join(s.dir, fmt.Sprint("died-", e.Job.Job.ID)))
		if at, err := strconv.ParseFloat(string(text), 64); err == nil {
			times = append(times, now.Sub(time.UnixMicro(int64(at*1e6))))
		}
		return false
	})
	slices.Sort(times)
	if err == nil && len(times) != n {
		err = fmt.Errorf("%d of %d crashes are known", len(times), n)
	}
	_, cleaned := s.db.ExecContext(ctx, "DELETE FROM failed_jobs")
	return times, errors.Join(err, cleaned)
}

// pickUps is how long dispatched jobs wait for their first line in the whole service,
// which has nothing else to do.
func (s *site) pickUps(ctx context.Context, program string, n int, knock bool) ([]time.Duration, error) {
	socket := filepath.Join(s.dir, "knock.sock")
	config := fmt.Sprintf("php: {enabled: true, artisan: %q, queues: {default: {processes: 1}}}\nfeed: {socket: %q}\n"+
		"http: {enabled: false}\nschedule: {enabled: false}\n", s.artisan, socket)
	file := filepath.Join(s.dir, "cmsjobs.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	service := exec.CommandContext(ctx, program, "--config="+file, "--dsn="+s.dsn, "run")
	service.Env = append(os.Environ(), s.env()...)
	var said bytes.Buffer
	service.Stderr = &said
	if err := service.Start(); err != nil {
		return nil, fmt.Errorf("starting the service: %w", err)
	}
	times, err := s.clock(ctx, n, socket, knock)
	if err := errors.Join(service.Process.Signal(syscall.SIGTERM), service.Wait()); err != nil {
		return nil, fmt.Errorf("the service: %w\n%s", err, said.String())
	}
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, said.String())
	}
	return times, nil
}

// clock dispatches jobs and reads what they say.
func (s *site) clock(ctx context.Context, n int, socket string, knock bool) (times []time.Duration, err error) {
	picked := filepath.Join(s.dir, "picked")
	read := func() (lines []string) {
		text, _ := os.ReadFile(picked) // not there yet
		return strings.Fields(string(text))
	}
	for _, count := range []int{1, n} { // the first one waits for the start
		_ = os.Remove(picked)
		cmd := s.command(ctx, "push-clock", "default", strconv.Itoa(count))
		if knock {
			cmd.Env = append(cmd.Env, "PROBE_SOCKET="+socket)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("dispatching: %w\n%s", err, out)
		}
		for end := time.Now().Add(time.Minute); len(read()) < count; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				return nil, fmt.Errorf("%d of %d dispatches are picked up", len(read()), count)
			}
		}
	}
	for _, line := range read() {
		v, err := strconv.ParseFloat(line, 64)
		if err != nil {
			return nil, err
		}
		times = append(times, time.Duration(v*float64(time.Millisecond)))
	}
	slices.Sort(times)
	return times, nil
}
