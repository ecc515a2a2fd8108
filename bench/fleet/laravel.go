package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// artisan is a real Laravel of Debian's packages, as the tests use it.
const artisan = "internal/jobs/testdata/php/artisan.php"

// errAbsent says that a peer is not installed here.
var errAbsent = errors.New("not installed here")

// laravel works the CMS's table off by n of Laravel's own workers.
func (s *site) laravel(ctx context.Context, n, jobs int) (figures, error) {
	_, noPHP := exec.LookPath("php")
	_, noLaravel := os.Stat("/usr/share/php/Illuminate/Queue/autoload.php")
	if errors.Join(noPHP, noLaravel) != nil {
		return figures{}, errAbsent
	}
	if err := s.fill(ctx, 0); err != nil {
		return figures{}, err
	}
	start, err := s.artisans(ctx, n)
	if err != nil {
		return figures{}, err
	}
	if out, err := s.artisan(ctx, "push-noop", strconv.Itoa(jobs), "bulk").CombinedOutput(); err != nil {
		return figures{}, fmt.Errorf("pushing Laravel's jobs: %w\n%s", err, out)
	}
	whole, err := s.artisans(ctx, n)
	if err != nil {
		return figures{}, err
	}
	var left int
	if err := s.db.GetContext(ctx, &left,
		"SELECT (SELECT COUNT(*) FROM jobs) + (SELECT COUNT(*) FROM failed_jobs)"); err != nil || left > 0 {
		return figures{}, fmt.Errorf("Laravel left %d of %d jobs: %w", left, jobs, err)
	}
	wall := whole.wall - start.wall // without what PHP needs to start
	if wall <= 0 {
		return figures{}, fmt.Errorf("%d jobs are too few to tell their time from that of the start", jobs)
	}
	f := figures{rate: float64(jobs) / wall.Seconds(),
		server: float64((whole.server - start.server).Microseconds()) / float64(jobs),
		client: float64((whole.client - start.client).Microseconds()) / float64(jobs)}
	say("%s: %d of Laravel's workers: %s", s.server.Name, n, f.short())
	return f, nil
}

type effort struct{ wall, server, client time.Duration }

func (s *site) artisan(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "php", append([]string{artisan}, args...)...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("DB_PORT=%d", s.server.Port), "DB_DATABASE="+s.name)
	return cmd
}

// artisans lets n workers run until the queue is empty.
func (s *site) artisans(ctx context.Context, n int) (effort, error) {
	before, begun := s.server.CPU(), time.Now()
	team := make([]*exec.Cmd, n)
	var failed error
	for i := range team {
		team[i] = s.artisan(ctx, "queue:work", "--stop-when-empty", "--sleep=0", "--quiet")
		if err := team[i].Start(); err != nil {
			return effort{}, err
		}
	}
	var client time.Duration
	for _, cmd := range team {
		failed = errors.Join(failed, cmd.Wait())
		client += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return effort{time.Since(begun), s.server.CPU() - before, client}, failed
}
