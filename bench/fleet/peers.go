package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/bench/servers"
	"github.com/cmsjobs/cmsjobs/internal/database"
)

// graphileVersion is what npm installs.
const graphileVersion = "graphile-worker@0.18.0"

// peer is a queue on PostgreSQL whose worker is a separate program.
type peer struct {
	name, waiting string // the rows that wait, as SQL reads them
	program       []string
	dir           string // where it runs
	dsn           string
	refill        func(jobs int) []string
	tries         []try // ways to set it up; which one is best depends on the number of processes
	db            *sqlx.DB
}

// try is a way to set a peer up.
type try struct {
	name  string
	args  []string
	fails int // with so many processes, and so with more; 0: with no number so far
}

// riverTries: how many goroutines a client has, which is also how many jobs it fetches at
// once, and the ms between two fetches.
var riverTries = [][2]int{{1000, 1}, {2000, 2}, {1000, 20}}

// graphileTries: jobs at once, and the size of the local queue.
var graphileTries = [][2]int{{24, 25}, {24, 100}, {24, 500}}

// newPeers installs those of River and graphile-worker that are measured in dir; absent says which cannot be.
func (o *options) newPeers(ctx context.Context, s *servers.Server, dir string) (peers []*peer, absent []string,
	err error) {
	for _, x := range []struct {
		name    string
		install func(context.Context, string) (*peer, error)
	}{{"river", newRiver}, {"graphile-worker", newGraphile}} {
		if !o.beside(x.name) {
			continue
		}
		p, err := x.install(ctx, dir)
		if err != nil {
			absent = append(absent, err.Error())
			continue
		}
		if p.dsn, _, err = s.Database(); err != nil {
			return nil, nil, err
		}
		if p.db, err = database.Connect(ctx, database.ConnectOptions{DSN: p.dsn}); err != nil {
			return nil, nil, err
		}
		peers = append(peers, p)
	}
	return peers, absent, nil
}

func newRiver(ctx context.Context, dir string) (*peer, error) {
	program := filepath.Join(dir, "river")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir = "bench/peers/river"
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("River is %w: %w\n%s", errAbsent, err, out)
	}
	p := &peer{name: "River", waiting: "river_job WHERE state IN ('available', 'running', 'retryable')", dir: dir}
	p.program = []string{program, "-dsn"}
	p.refill = func(jobs int) []string { return []string{"-refill", "-jobs", strconv.Itoa(jobs)} }
	for _, n := range riverTries {
		p.tries = append(p.tries, try{name: fmt.Sprintf("MaxWorkers %d, cooldown %d ms", n[0], n[1]),
			args: []string{"-workers", strconv.Itoa(n[0]), "-cooldown", fmt.Sprintf("%dms", n[1])}})
	}
	return p, nil
}

func newGraphile(ctx context.Context, dir string) (*peer, error) {
	out, err := exec.CommandContext(ctx, "npm", "install", "--prefix", dir, "--no-audit", "--no-fund",
		"--loglevel=error", graphileVersion).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("graphile-worker is %w: %w\n%s", errAbsent, err, out)
	}
	script, err := filepath.Abs("bench/peers/graphile/fleet.mjs")
	p := &peer{name: "graphile-worker", waiting: "graphile_worker._private_jobs", dir: dir}
	p.program = []string{"node", script}
	p.refill = func(jobs int) []string { return []string{"fill", strconv.Itoa(jobs)} }
	for _, n := range graphileTries {
		p.tries = append(p.tries, try{name: fmt.Sprintf("%d at once, local queue %d", n[0], n[1]),
			args: []string{"work", strconv.Itoa(n[0]), strconv.Itoa(n[1])}})
	}
	return p, err
}

func (p *peer) command(ctx context.Context, args []string) *exec.Cmd {
	all := append(append([]string{}, p.program[1:]...), p.dsn)
	cmd := exec.CommandContext(ctx, p.program[0], append(all, args...)...)
	cmd.Dir = p.dir
	servers.AsOurs(cmd)
	// River does a tenth to a half more jobs with one processor a process, as our worker of
	// one slot has, at every number of processes. No other peer is in Go.
	cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
	return cmd
}

// best is what n processes do, set up in the best of the ways for so many. A way that
// does not work with so many is not tried with more.
func (p *peer) best(ctx context.Context, s *servers.Server, n, jobs int) (figures, string, error) {
	var best figures
	how := ""
	for i := range p.tries {
		t := &p.tries[i]
		if t.fails > 0 && n >= t.fails {
			continue
		}
		f, err := p.work(ctx, s, n, jobs, t.args)
		switch {
		case ctx.Err() != nil:
			return best, "", ctx.Err()
		case err != nil && n == 1:
			return best, "", fmt.Errorf("one process of %s, %s: %w", p.name, t.name, err)
		case err != nil:
			say("%s: %d processes of %s, %s: %v", s.Name, n, p.name, t.name, err)
			t.fails = n
			continue
		}
		say("%s: %d processes of %s, %s: %s", s.Name, n, p.name, t.name, f.short())
		if f.rate > best.rate {
			best, how = f, t.name
		}
	}
	return best, how, nil
}

func (p *peer) work(ctx context.Context, s *servers.Server, n, jobs int, args []string) (f figures, err error) {
	if err := rested(ctx, p.db); err != nil {
		return f, err
	}
	if out, err := p.command(ctx, p.refill(jobs)).CombinedOutput(); err != nil {
		return f, fmt.Errorf("filling: %w\n%s", err, out)
	}
	if err := analyse(ctx, s, p.db); err != nil {
		return f, err
	}
	t, err := gather(n, func() (*exec.Cmd, error) { return p.command(ctx, args), nil })
	if err != nil {
		return f, err
	}
	defer t.kill()
	before, begun := s.CPU(), time.Now()
	if err := t.begin(); err != nil {
		return f, err
	}
	if err := drained(ctx, p.db, p.waiting, 10*time.Millisecond); err != nil {
		return f, err
	}
	wall, used := time.Since(begun), s.CPU()-before
	client, err := t.stop()
	return figures{rate: float64(jobs) / wall.Seconds(), server: float64(used.Microseconds()) / float64(jobs),
		client: float64(client) / float64(jobs)}, err
}

// rested waits until the server has nothing left to do of a measurement that was broken off.
func rested(ctx context.Context, db *sqlx.DB) error {
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		var busy int
		err := db.GetContext(ctx, &busy, "SELECT COUNT(*) FROM pg_stat_activity WHERE state = 'active' AND "+
			"backend_type = 'client backend' AND pid <> pg_backend_pid()")
		if err == nil && busy == 0 || ctx.Err() != nil || time.Since(begun) > 2*time.Minute {
			return err
		}
	}
}

// besidePeers measures River and graphile-worker on PostgreSQL.
func (o *options) besidePeers(ctx context.Context, r *results, s *servers.Server) error {
	dir, err := os.MkdirTemp("", "cmsjobs-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	peers, absent, err := o.newPeers(ctx, s, dir)
	if err != nil {
		return err
	}
	r.absent = append(r.absent, absent...)
	for _, p := range peers {
		defer p.db.Close()
		for _, n := range o.processes {
			f, how, err := p.best(ctx, s, n, o.jobs+o.count(n))
			if err != nil {
				return err
			}
			if how == "" {
				r.absent = append(r.absent,
					fmt.Sprintf("%d processes of %s: no way to set it up ends within three minutes", n, p.name))
				continue
			}
			r.add(s.Name, p.name, n, f)
			r.settings = append(r.settings, chosen{p.name, n, how})
		}
	}
	return nil
}
