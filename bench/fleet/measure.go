package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/bench/servers"
)

// figures are one measurement.
type figures struct {
	rate           float64 // jobs a second
	server, client float64 // microseconds of processor time a job
	late           int     // places by which 99 of 100 jobs are overtaken at most
}

// cost is the processor time of a job.
func (f figures) cost() float64 { return f.server + f.client }

func (f figures) cell() string {
	return fmt.Sprintf("%.0f · %.0f+%.0f · %d", f.rate, f.server, f.client, f.late)
}

// site is a CMS's database.
type site struct {
	server    *servers.Server
	db        *sqlx.DB
	dsn, name string
}

// setup is how a worker process of ours works.
type setup struct{ slots, prefetch int }

func (s setup) String() string {
	slots := "1 slot"
	if s.slots > 1 {
		slots = strconv.Itoa(s.slots) + " slots"
	}
	if s.prefetch == 0 {
		return slots + ", nothing ahead"
	}
	return fmt.Sprintf("%s, %d ahead", slots, s.prefetch)
}

// setups are those that are measured: one slot with nothing ahead too.
func (o *options) setups() (all []setup) {
	for _, slots := range o.slots {
		if slots == 1 && o.prefetch > 0 {
			all = append(all, setup{1, 0})
		}
		all = append(all, setup{slots, o.prefetch})
	}
	return all
}

// fill empties the tables and writes n rows as a CMS does.
func (s *site) fill(ctx context.Context, n int) error {
	empty := "TRUNCATE TABLE "
	if s.server.Name == "SQLite" {
		empty = "DELETE FROM "
	}
	for _, table := range []string{"jobs", "cmsjobs_runs", "cmsjobs_cursors"} {
		if _, err := s.db.ExecContext(ctx, empty+table); err != nil {
			return err
		}
	}
	now := time.Now().Unix() - 1
	row := fmt.Sprintf(`('default', '{"type":"bench.noop","data":{}}', 0, %d, %d)`, now, now)
	for left := n; left > 0; left -= 1000 {
		values := strings.Repeat(row+",", min(left, 1000))
		if _, err := s.db.ExecContext(ctx,
			"INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES "+
				strings.TrimSuffix(values, ",")); err != nil {
			return err
		}
	}
	return analyse(ctx, s.server, s.db)
}

// analyse tells PostgreSQL what is in its tables now, so that it does not choose its
// ways by what was there before.
func analyse(ctx context.Context, s *servers.Server, db *sqlx.DB) error {
	if s.Name != "PostgreSQL" {
		return nil
	}
	_, err := db.ExecContext(ctx, "VACUUM ANALYZE")
	return err
}

// ours works off the jobs in n processes.
func (o *options) ours(ctx context.Context, s *site, n int, how setup) (figures, error) {
	jobs := o.count(n)
	if how.slots == 1 && how.prefetch == 0 {
		jobs /= 3
	}
	f, err := s.work(ctx, n, jobs, func() (*exec.Cmd, error) {
		return child(ctx, "-child", s.dsn, "-slots", strconv.Itoa(how.slots), "-prefetch", strconv.Itoa(how.prefetch),
			"-queues", o.queues)
	})
	if err != nil {
		return f, fmt.Errorf("%d processes of %s: %w", n, how, err)
	}
	say("%s: %d processes of %s: %s", s.server.Name, n, how, f.cell())
	return f, nil
}

// work lets n processes, which write the history, work off so many jobs.
func (s *site) work(ctx context.Context, n, jobs int, command func() (*exec.Cmd, error)) (f figures, err error) {
	if err := s.fill(ctx, jobs); err != nil {
		return f, err
	}
	t, err := gather(n, command)
	if err != nil {
		return f, err
	}
	defer t.kill()
	before, begun := s.server.CPU(), time.Now()
	if err := t.begin(); err != nil {
		return f, err
	}
	if err := drained(ctx, s.db, "jobs", 50*time.Millisecond); err != nil {
		return f, err
	}
	used := s.server.CPU() - before
	client, err := t.stop()
	if err != nil {
		return f, err
	}
	f.server = float64(used.Microseconds()) / float64(jobs)
	f.client = float64(client) / float64(jobs)
	return f, f.judge(ctx, s.db, begun, jobs)
}

// errLeft says that a measurement did not end.
var errLeft = errors.New("jobs are left after three minutes")

// drained waits until a table has no row.
func drained(ctx context.Context, db *sqlx.DB, table string, every time.Duration) error {
	deadline := time.Now().Add(3 * time.Minute)
	for time.Now().Before(deadline) {
		var left int
		if err := db.GetContext(ctx, &left, "SELECT COUNT(*) FROM (SELECT 1 FROM "+table+
			" LIMIT 1) AS waiting"); err != nil || left == 0 {
			return err
		}
		time.Sleep(every)
	}
	return errLeft
}

// judge reads from the history what happened: each job once, when the last one
// ended, and in which order they did.
func (f *figures) judge(ctx context.Context, db *sqlx.DB, begun time.Time, jobs int) error {
	var ids []int64
	if err := db.SelectContext(ctx, &ids, "SELECT job_id FROM cmsjobs_runs WHERE outcome = 'completed' ORDER BY "+
		"ended_at, id"); err != nil {
		return err
	}
	place := map[int64]int{}
	for i, id := range slices.Sorted(slices.Values(ids)) {
		place[id] = i
	}
	if len(place) != jobs || len(ids) != jobs {
		return fmt.Errorf("%d jobs were done in %d runs, want %d", len(place), len(ids), jobs)
	}
	late := make([]int, len(ids))
	for i, id := range ids {
		late[i] = i - place[id]
	}
	slices.Sort(late)
	var last int64
	if err := db.GetContext(ctx, &last, "SELECT MAX(ended_at) FROM cmsjobs_runs"); err != nil {
		return err
	}
	f.rate = float64(jobs) / max(time.UnixMilli(last).Sub(begun).Seconds(), 0.001)
	f.late = max(late[len(late)*99/100], 0)
	return nil
}
