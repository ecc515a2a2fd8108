package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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

func (f figures) cell() string {
	return fmt.Sprintf("%.0f · %.0f+%.0f · %d", f.rate, f.server, f.client, f.late)
}

// onServer measures all numbers of processes and slots on one server.
func (o *options) onServer(ctx context.Context, b *strings.Builder, start func() (*servers.Server, error)) error {
	s, err := start()
	if err != nil {
		return err
	}
	defer s.Stop()
	db, dsn, name, err := s.CMS(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	fmt.Fprintf(b, "**%s**: jobs/s · processor time of server + clients, µs a job · places overtaken, p99\n\n"+
		"| processes |", s.Name)
	for _, slots := range o.slots {
		fmt.Fprintf(b, " %d slots |", slots)
	}
	fmt.Fprintf(b, " Laravel: jobs/s · µs |\n|---|%s---|\n", strings.Repeat("---|", len(o.slots)))
	for _, n := range o.processes {
		fmt.Fprintf(b, "| %d |", n)
		for _, slots := range o.slots {
			f, err := o.fleet(ctx, s, db, dsn, n, slots)
			if err != nil {
				return fmt.Errorf("%d processes of %d slots: %w", n, slots, err)
			}
			fmt.Fprintf(b, " %s |", f.cell())
			fmt.Fprintf(os.Stderr, "%s: %d processes of %d slots: %s\n", s.Name, n, slots, f.cell())
		}
		f, err := o.besideLaravel(ctx, s, db, name, n)
		if err != nil {
			return fmt.Errorf("%d of Laravel's workers: %w", n, err)
		}
		fmt.Fprintf(b, " %s |\n", f)
	}
	b.WriteString("\n")
	return nil
}

// fill empties the tables and writes n rows as a CMS does.
func fill(ctx context.Context, db *sqlx.DB, n int, payload string) error {
	for _, table := range []string{"jobs", "cmsjobs_runs"} {
		if _, err := db.ExecContext(ctx, "TRUNCATE TABLE "+table); err != nil {
			return err
		}
	}
	now := time.Now().Unix() - 1
	row := fmt.Sprintf("('default', '%s', 0, %d, %d)", payload, now, now)
	for left := n; left > 0; left -= 1000 {
		values := strings.Repeat(row+",", min(left, 1000))
		if _, err := db.ExecContext(ctx,
			"INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES "+
				strings.TrimSuffix(values, ",")); err != nil {
			return err
		}
	}
	return nil
}

// fleet works off the jobs in n processes.
func (o *options) fleet(ctx context.Context, s *servers.Server, db *sqlx.DB, dsn string, n, slots int) (f figures,
	err error) {
	if err := fill(ctx, db, o.jobs, `{"type":"bench.noop","data":{}}`); err != nil {
		return f, err
	}
	team := make([]*process, n)
	defer func() {
		for _, p := range team {
			if p != nil {
				p.kill()
			}
		}
	}()
	for i := range team {
		if team[i], err = startProcess(ctx, dsn, slots, o); err != nil {
			return f, err
		}
	}
	before, begun := s.CPU(), time.Now()
	for _, p := range team {
		if _, err := io.WriteString(p.input, "go\n"); err != nil {
			return f, err
		}
	}
	if err := drained(ctx, db); err != nil {
		return f, err
	}
	used := s.CPU() - before
	var client int64
	for _, p := range team {
		micros, err := p.stop()
		if err != nil {
			return f, err
		}
		client += micros
	}
	return o.judge(ctx, db, begun, used, time.Duration(client)*time.Microsecond)
}

// drained waits until no job is left.
func drained(ctx context.Context, db *sqlx.DB) error {
	deadline := time.Now().Add(10 * time.Minute)
	for time.Now().Before(deadline) {
		var left int
		if err := db.GetContext(ctx, &left,
			"SELECT COUNT(*) FROM (SELECT 1 FROM jobs LIMIT 1) AS waiting"); err != nil ||
			left == 0 {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("jobs are left after ten minutes")
}

// judge reads from the history what happened: each job once, when the last one
// ended, and in which order they did.
func (o *options) judge(ctx context.Context, db *sqlx.DB, begun time.Time, server, client time.Duration) (figures,
	error) {
	var f figures
	var ids []int64
	if err := db.SelectContext(ctx, &ids, "SELECT job_id FROM cmsjobs_runs WHERE outcome = 'completed' ORDER BY "+
		"ended_at, id"); err != nil {
		return f, err
	}
	place := map[int64]int{}
	for i, id := range slices.Sorted(slices.Values(ids)) {
		place[id] = i
	}
	if len(place) != o.jobs || len(ids) != o.jobs {
		return f, fmt.Errorf("%d jobs were done in %d runs, want %d", len(place), len(ids), o.jobs)
	}
	late := make([]int, len(ids))
	for i, id := range ids {
		late[i] = i - place[id]
	}
	slices.Sort(late)
	var last int64
	if err := db.GetContext(ctx, &last, "SELECT MAX(ended_at) FROM cmsjobs_runs"); err != nil {
		return f, err
	}
	count := float64(o.jobs)
	f.rate = count / max(time.UnixMilli(last).Sub(begun).Seconds(), 0.001)
	f.server, f.client = float64(server.Microseconds())/count, float64(client.Microseconds())/count
	f.late = max(late[len(late)*99/100], 0)
	return f, nil
}

// process is one worker process.
type process struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Reader
}

// startProcess returns when the worker is ready.
func startProcess(ctx context.Context, dsn string, slots int, o *options) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self, "-child", dsn, "-slots", strconv.Itoa(slots), "-prefetch",
		strconv.Itoa(o.prefetch), "-queues", o.queues)}
	p.cmd.Stderr = os.Stderr
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
	if line, err := p.output.ReadString('\n'); err != nil {
		p.kill()
		return nil, fmt.Errorf("a worker said %q instead of being ready: %w", line, err)
	}
	return p, nil
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
