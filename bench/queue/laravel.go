package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/bench/servers"
)

// artisan is a real Laravel of Debian's packages, as the tests use it.
const artisan = "internal/jobs/testdata/php/artisan.php"

// laravel is Laravel's own queue on its own database.
type laravel struct {
	server *servers.Server
	db     *sqlx.DB
	name   string
}

// errAbsent says that a peer is not installed here.
var errAbsent = errors.New("not installed here")

func newLaravel(ctx context.Context, s *servers.Server) (*laravel, error) {
	if _, err := exec.LookPath("php"); err != nil {
		return nil, errAbsent
	}
	if _, err := os.Stat("/usr/share/php/Illuminate/Queue/autoload.php"); err != nil {
		return nil, errAbsent
	}
	db, _, name, err := s.CMS(ctx)
	return &laravel{s, db, name}, err
}

func (l *laravel) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "php", append([]string{artisan}, args...)...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("DB_PORT=%d", l.server.Port), "DB_DATABASE="+l.name)
	return cmd
}

// enqueue pushes n jobs, "one" by one or in "bulk".
func (l *laravel) enqueue(ctx context.Context, n int, how string) (cost, error) {
	before := l.server.CPU()
	cmd := l.command(ctx, "push-noop", strconv.Itoa(n), how)
	out, err := cmd.Output()
	if err != nil {
		return cost{}, fmt.Errorf("pushing Laravel's jobs: %w", err)
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	return cost{n, time.Duration(seconds * float64(time.Second)), processCPU(cmd), l.server.CPU() - before}, err
}

func processCPU(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// drain works off n jobs that wait, by one worker. What PHP needs to start is
// measured apart and taken off.
func (l *laravel) drain(ctx context.Context, n int) (cost, error) {
	start, err := l.work(ctx)
	if err != nil {
		return cost{}, err
	}
	if _, err := l.enqueue(ctx, n, "bulk"); err != nil {
		return cost{}, err
	}
	whole, err := l.work(ctx)
	if err != nil {
		return cost{}, err
	}
	var left int
	if err := l.db.GetContext(ctx, &left,
		"SELECT (SELECT COUNT(*) FROM jobs) + (SELECT COUNT(*) FROM failed_jobs)"); err != nil || left > 0 {
		return cost{}, fmt.Errorf("Laravel left %d of %d jobs: %w", left, n, err)
	}
	return cost{n, whole.wall - start.wall, whole.client - start.client, whole.server - start.server}, nil
}

func (l *laravel) work(ctx context.Context) (cost, error) {
	before, begun := l.server.CPU(), time.Now()
	cmd := l.command(ctx, "queue:work", "--stop-when-empty", "--sleep=0", "--quiet")
	if out, err := cmd.CombinedOutput(); err != nil {
		return cost{}, fmt.Errorf("Laravel's worker: %w\n%s", err, out)
	}
	return cost{0, time.Since(begun), processCPU(cmd), l.server.CPU() - before}, nil
}

// pickUp times jobs that come to an idle worker with its default sleep.
func (l *laravel) pickUp(ctx context.Context, n int) ([]time.Duration, error) {
	if _, err := l.db.ExecContext(ctx, "TRUNCATE TABLE jobs"); err != nil {
		return nil, err
	}
	worker := l.command(ctx, "queue:work", "--quiet")
	var said bytes.Buffer
	worker.Stderr = &said
	if err := worker.Start(); err != nil {
		return nil, err
	}
	_, err := l.command(ctx, "push-clock", strconv.Itoa(n), "1300").CombinedOutput()
	time.Sleep(3500 * time.Millisecond) // its sleep is 3 s
	_ = worker.Process.Kill()
	_ = worker.Wait() // it was killed
	if err != nil {
		return nil, err
	}
	var times []time.Duration
	for line := range strings.Lines(said.String()) {
		var ms float64
		if _, err := fmt.Sscanf(line, "picked up after %f", &ms); err == nil {
			times = append(times, time.Duration(ms*float64(time.Millisecond)))
		}
	}
	if len(times) == 0 {
		return nil, fmt.Errorf("Laravel's worker picked nothing up: %s", said.String())
	}
	slices.Sort(times)
	return times, nil
}
