package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/bench/servers"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

var noop = jobs.Kind[struct{}]{Name: "bench.noop", Queue: "default"}

// lab is a server with a queue in it.
type lab struct {
	server   *servers.Server
	db       *sqlx.DB
	dsn      string
	registry *jobs.Registry
}

func newLab(ctx context.Context) (*lab, error) {
	s, err := servers.MariaDB()
	if err != nil {
		return nil, err
	}
	l := &lab{server: s, registry: jobs.NewRegistry()}
	jobs.Handle(l.registry, noop, func(context.Context, jobs.Job, struct{}) error { return nil })
	if l.db, l.dsn, _, err = s.CMS(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return l, nil
}

func (l *lab) close() {
	l.db.Close()
	l.server.Stop()
}

// measured is what claims and ends cost the server.
type measured struct {
	depth, claimers int
	take            int           // rows that a claim asks for, and ends in a write
	claim, end      time.Duration // of the server's processors, a call
	rows            float64       // that a claim got
	rate            float64       // rows a second on this machine
}

func (m measured) row() string {
	return fmt.Sprintf("| %d | %d | %d | %d | %d | %.1f | %.0f |\n", m.depth, m.claimers, m.take,
		m.claim.Microseconds(), m.end.Microseconds(), m.rows, m.rate)
}

// deepen brings the queue to so many waiting rows.
func (l *lab) deepen(ctx context.Context, depth int) error {
	var have int
	if err := l.db.GetContext(ctx, &have, "SELECT COUNT(*) FROM jobs"); err != nil {
		return err
	}
	if have > depth+depth/10 {
		for _, table := range []string{"jobs", "cmsjobs_cursors"} {
			if _, err := l.db.ExecContext(ctx, "TRUNCATE "+table); err != nil {
				return err
			}
		}
		have = 0
	}
	s, err := l.open(ctx, l.db)
	if err != nil {
		return err
	}
	for ; have < depth; have += 1000 {
		list := make([]jobs.Spec, min(1000, depth-have))
		for i := range list {
			list[i] = noop.New(struct{}{})
		}
		if _, err := s.Enqueue(ctx, list...); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) open(ctx context.Context, db *sqlx.DB) (*queue.Store, error) {
	return queue.Open(ctx, db, tables.Options{Registry: l.registry})
}

// measure lets claimers, each as a separate process would, claim at the same
// time, then end what they got. The two are measured one after the other, as the
// server does not say for whom it works.
func (l *lab) measure(ctx context.Context, depth, claimers, take, calls int) (measured, error) {
	m := measured{depth: depth, claimers: claimers, take: take}
	if err := l.deepen(ctx, depth+calls*take); err != nil {
		return m, err
	}
	team := make([]*claimer, claimers)
	for i := range team {
		db, err := database.Connect(ctx, database.ConnectOptions{DSN: l.dsn, MaxConnections: 2})
		if err != nil {
			return m, err
		}
		defer db.Close()
		s, err := l.open(ctx, db)
		if err != nil {
			return m, err
		}
		team[i] = &claimer{store: s, name: fmt.Sprintf("host:%d:bench", i), take: take}
		if err := team[i].claim(ctx); err != nil { // finds its way once
			return m, err
		}
	}
	var rows, done atomic.Int64
	claimTime, wall, err := l.together(team, calls, func(c *claimer) error {
		had := len(c.held)
		err := c.claim(ctx)
		rows.Add(int64(len(c.held) - had))
		return err
	})
	if err != nil {
		return m, err
	}
	endTime, wallEnd, err := l.together(team, calls, func(c *claimer) error {
		n, err := c.end(ctx)
		done.Add(int64(n))
		return err
	})
	if err != nil {
		return m, err
	}
	m.rows = float64(rows.Load()) / float64(calls/claimers*claimers)
	m.claim = claimTime / time.Duration(calls)
	m.end = endTime * time.Duration(take) / time.Duration(max(done.Load(), 1))
	m.rate = float64(rows.Load()) / (wall + wallEnd).Seconds()
	return m, nil
}

// together lets everybody work at the same time and returns what the server and
// the clock took for it.
func (l *lab) together(team []*claimer, calls int, work func(*claimer) error) (cpu, wall time.Duration, err error) {
	var group sync.WaitGroup
	failed := make([]error, len(team))
	cpu, begun := l.server.CPU(), time.Now()
	for i, c := range team {
		group.Go(func() {
			for range calls / len(team) {
				if failed[i] = work(c); failed[i] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return l.server.CPU() - cpu, time.Since(begun), errors.Join(failed...)
}

// claimer is a worker without handlers.
type claimer struct {
	store *queue.Store
	name  string
	take  int // rows a claim, and ends a write
	held  []jobs.Claimed
}

func (c *claimer) claim(ctx context.Context) error {
	got, err := c.store.Claim(ctx, jobs.ClaimRequest{Worker: c.name, Queues: []string{"default"}, Limit: c.take,
		Lease: time.Hour})
	if err != nil && database.Classify(err).Trouble() {
		return nil // a deadlock that was not won: it asks again
	}
	c.held = append(c.held, got...)
	return err
}

func (c *claimer) end(ctx context.Context) (int, error) {
	n := min(c.take, len(c.held))
	ends := make([]jobs.Settlement, n)
	for i, held := range c.held[:n] {
		ends[i] = jobs.Settlement{Claimed: held, Outcome: jobs.Completed, Worker: c.name}
	}
	c.held = c.held[n:]
	if n == 0 {
		return 0, nil
	}
	_, err := c.store.Settle(ctx, ends)
	return n, err
}
