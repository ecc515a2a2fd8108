package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/bench/servers"
)

// artisan is a real Laravel of Debian's packages, as the tests use it.
const artisan = "internal/jobs/testdata/php/artisan.php"

// besideLaravel is the table's cell of Laravel's workers; it says where they are
// not installed, or do not know the server.
func (o *options) besideLaravel(ctx context.Context, s *servers.Server, db *sqlx.DB, name string, n int) (string,
	error) {
	_, noPHP := exec.LookPath("php")
	_, noLaravel := os.Stat("/usr/share/php/Illuminate/Queue/autoload.php")
	if !o.laravel || errors.Join(noPHP, noLaravel) != nil || s.Name == "PostgreSQL" {
		return "–", nil
	}
	if err := fill(ctx, db, 0, ""); err != nil {
		return "", err
	}
	l := laravel{s, name}
	start, err := l.work(ctx, n)
	if err != nil {
		return "", err
	}
	count := max(o.jobs/10, 100*n)
	if out, err := l.command(ctx, "push-noop", strconv.Itoa(count), "bulk").CombinedOutput(); err != nil {
		return "", fmt.Errorf("pushing Laravel's jobs: %w\n%s", err, out)
	}
	whole, err := l.work(ctx, n)
	if err != nil {
		return "", err
	}
	wall, cpu := whole.wall-start.wall, whole.cpu-start.cpu // without what PHP needs to start
	if wall <= 0 {
		return "", fmt.Errorf("%d jobs are too few to tell their time from that of the start", count)
	}
	return fmt.Sprintf("%.0f · %d", float64(count)/wall.Seconds(), cpu.Microseconds()/int64(count)), nil
}

// laravel is Laravel's own worker on a database.
type laravel struct {
	server *servers.Server
	name   string
}

type effort struct{ wall, cpu time.Duration }

func (l laravel) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "php", append([]string{artisan}, args...)...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("DB_PORT=%d", l.server.Port), "DB_DATABASE="+l.name)
	return cmd
}

// work lets n workers run until the queue is empty.
func (l laravel) work(ctx context.Context, n int) (effort, error) {
	before, begun := l.server.CPU(), time.Now()
	team := make([]*exec.Cmd, n)
	var failed error
	for i := range team {
		team[i] = l.command(ctx, "queue:work", "--stop-when-empty", "--sleep=0", "--quiet")
		if err := team[i].Start(); err != nil {
			return effort{}, err
		}
	}
	var client time.Duration
	for _, cmd := range team {
		failed = errors.Join(failed, cmd.Wait())
		client += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return effort{time.Since(begun), client + l.server.CPU() - before}, failed
}
