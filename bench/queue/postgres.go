package main

import (
	"context"
	"fmt"

	"github.com/cmsjobs/cmsjobs/bench/servers"
)

// deep is what peers call a tuned drain of more jobs: it shows what does not stay as fast.
const deep = "drain tuned, 5 times as many"

func (b *bench) postgres(ctx context.Context) error {
	s, err := servers.PostgreSQL()
	if err != nil {
		return err
	}
	defer s.Stop()
	say("River")
	r, err := river(ctx, s, b.jobs)
	if err := b.without("River", err); err != nil {
		return err
	}
	say("graphile-worker")
	g, err := graphile(ctx, s, b.jobs)
	if err := b.without("graphile-worker", err); err != nil {
		return err
	}
	o, err := newOurs(ctx, s, true)
	if err != nil {
		return err
	}
	defer o.db.Close()
	t := b.table("Throughput beside River and graphile-worker, PostgreSQL", "The same server for all; ours with a "+
		"line of history each, River keeps its rows as history, graphile-worker keeps none. Ratios to the peer's "+
		"same work, above 1 in our favour.",
		append(append([]string{}, costHead...), "speed : River", "CPU : River", "speed : graphile",
			"CPU : graphile")...)
	b.found.peers(r, g)
	addPeers(t, r, g)
	if err := b.besidePeers(ctx, o, t, r, g); err != nil {
		return err
	}
	mine, err := o.pickUp(ctx, 200)
	p := b.table("Pick-up by an idle worker, PostgreSQL, ms", "", "who", "p50", "p99", "jobs")
	p.add(spread("cmsjobs", mine)...)
	p.add(spread("River, tuned (1 ms cooldown, 10 ms poll, LISTEN/NOTIFY)", r.pickUp)...)
	return err
}

// addPeers adds the lines of River and graphile-worker to a table.
func addPeers(t *table, r, g peerFigures) {
	for _, name := range []string{"enqueue 1", "enqueue 10", "bulk", "drain default 10", "drain tuned", deep} {
		for who, f := range map[string]peerFigures{"River": r, "graphile-worker": g} {
			if c, there := f.costs[name]; there {
				t.add(costRow(who+": "+name, c, cost{}, cost{})...)
			}
		}
	}
}

// besidePeers does the peers' work with ours and adds a line of each.
func (b *bench) besidePeers(ctx context.Context, o *ours, t *table, r, g peerFigures) error {
	for _, m := range []struct {
		name, peer, figure string
		work               func() (cost, error)
	}{
		{"cmsjobs: enqueue one by one, 1 caller", "enqueue 1", "postgres enqueue 1", func() (cost, error) {
			return o.enqueue(ctx, b.jobs/20, 1)
		}},
		{"cmsjobs: enqueue one by one, 10 callers", "enqueue 10", "postgres enqueue 10", func() (cost, error) {
			return o.enqueue(ctx, b.jobs/10, 10)
		}},
		{"cmsjobs: enqueue in bulk (1,000)", "bulk", "postgres bulk", func() (cost, error) {
			return measure(o.server, b.jobs, func() error { return o.fill(ctx, b.jobs, asItIs) })
		}},
		{"cmsjobs: 1 slot, strictly one after the other", "", "postgres 1", func() (cost, error) {
			return o.rest(ctx, b.jobs/20, 1, 0)
		}},
		{"cmsjobs: 10 slots, nothing ahead (default)", "drain default 10", "postgres default", func() (cost, error) {
			return o.rest(ctx, b.jobs/4, 10, 0)
		}},
		{"cmsjobs: 100 slots, 2,000 ahead (best)", "drain tuned", "postgres best", func() (cost, error) {
			return o.rest(ctx, b.jobs, 100, 2000)
		}},
		{"cmsjobs: best, 5 times as many", deep, "postgres deep", func() (cost, error) {
			return o.rest(ctx, 5*b.jobs, 100, 2000)
		}},
	} {
		say("%s (PostgreSQL)", m.name)
		c, err := m.work()
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		b.found[m.figure] = c.rate()
		t.add(costRow(m.name, c, r.costs[m.peer], g.costs[m.peer])...)
	}
	return nil
}
