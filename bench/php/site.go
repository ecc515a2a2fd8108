package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/bench/servers"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/phprows"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/php"
)

// artisan is the Laravel of the tests of package php.
const artisan = "internal/php/testdata/app/artisan.php"

// site is that Laravel on a separate database.
type site struct {
	server         *servers.Server
	db             *sqlx.DB
	dsn, name, dir string
	artisan        string
}

func newSite(ctx context.Context, server *servers.Server, dir string) (*site, error) {
	for _, need := range [][]string{{"php", "-r", "exit((int) !extension_loaded('pcntl'));"},
		{"test", "-f", "/usr/share/php/Illuminate/Queue/autoload.php"}} {
		if err := exec.CommandContext(ctx, need[0], need[1:]...).Run(); err != nil {
			return nil, fmt.Errorf("no Laravel here (packages php-cli, php-mysql, php-laravel-framework): %w", err)
		}
	}
	path, err := filepath.Abs(artisan)
	if err != nil {
		return nil, err
	}
	s := &site{server: server, dir: dir, artisan: path}
	s.db, s.dsn, s.name, err = server.CMS(ctx)
	return s, err
}

func (s *site) env(more ...string) []string {
	return append([]string{"PROBE_QUIET=1", "PROBE_DIR=" + s.dir, "DB_PORT=" + strconv.Itoa(s.server.Port),
		"DB_DATABASE=" +
			s.name}, more...)
}

func (s *site) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "php", append([]string{s.artisan}, args...)...)
	cmd.Env = append(os.Environ(), s.env()...)
	return cmd
}

func (s *site) push(ctx context.Context, probe string, n int) error {
	if out, err := s.command(ctx, "push-bulk", "default", probe, strconv.Itoa(n)).CombinedOutput(); err != nil {
		return fmt.Errorf("pushing jobs: %w\n%s", err, out)
	}
	return nil
}

// cost is what a piece of work took.
type cost struct {
	jobs             int
	wall             time.Duration
	php, own, server time.Duration // processor time
}

func (c cost) rate() float64      { return float64(c.jobs) / c.wall.Seconds() }
func (c cost) cpu() time.Duration { return c.php + c.own + c.server }
func (c cost) each() float64      { return float64(c.cpu()) / float64(c.jobs) }

// children is the processor time of all programs that have ended.
func children() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure has work done; work says how long it took to the last job.
func (s *site) measure(n int, work func() (time.Duration, error)) (cost, error) {
	php, own, server := children(), servers.OwnCPU(), s.server.CPU()
	wall, err := work()
	return cost{n, wall, children() - php, servers.OwnCPU() - own, s.server.CPU() - server}, err
}

// stock works off what waits, by Laravel's own workers. Its own processor time is none.
func (s *site) stock(ctx context.Context, n, processes int) (cost, error) {
	c, err := s.measure(n, func() (time.Duration, error) {
		begun := time.Now()
		faults := make([]error, processes)
		var group sync.WaitGroup
		for i := range faults {
			group.Go(func() {
				out, err := s.command(ctx, "queue:work", "database", "--stop-when-empty", "--sleep=0", "--quiet").
					CombinedOutput()
				if err != nil {
					faults[i] = fmt.Errorf("queue:work: %w\n%s", err, out)
				}
			})
		}
		group.Wait()
		return time.Since(begun), errors.Join(faults...)
	})
	c.own = 0
	return c, err
}

// own works off n jobs by cmsjobs. ended may be nil.
func (s *site) own(ctx context.Context, n, processes int, ended func(php.End) bool) (cost, error) {
	opened, err := tables.Open(ctx, s.db, tables.Options{Registry: jobs.NewRegistry(), RetryAfter: 90 * time.Second})
	if err != nil {
		return cost{}, err
	}
	source, err := phprows.New(opened, "database", "bench")
	if err != nil {
		return cost{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	var last time.Time
	left, all := n, make(chan struct{})
	pool, err := php.New(php.Config{Source: source, Queue: "default", Connection: "database", Processes: processes,
		Command: slices.Concat([]string{"env"}, s.env(), []string{"php", s.artisan, "queue:work", "database",
			"--name=cmsjobs", "--queue=default", "--sleep=0", "--quiet"}),
		StateDir: s.dir, MaxCrashes: 1, Worker: "bench", Now: time.Now, Ended: func(e php.End) { // one after the other
			if ended != nil && !ended(e) {
				return
			}
			if left--; left == 0 {
				last = time.Now()
				close(all)
			}
		}})
	if err != nil {
		return cost{}, err
	}
	return s.measure(n, func() (time.Duration, error) {
		begun := time.Now()
		ended := make(chan error, 1)
		go func() { ended <- pool.Run(ctx) }()
		select {
		case <-all:
		case <-ctx.Done():
			return 0, errors.Join(ctx.Err(), <-ended)
		}
		cancel()
		return last.Sub(begun), <-ended
	})
}
