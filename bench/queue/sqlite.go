package main

import (
	"context"
	"fmt"
	"os"

	"github.com/cmsjobs/cmsjobs/bench/servers"
)

func (b *bench) sqlite(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "cmsjobs-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := servers.SQLite(dir)
	say("backlite")
	l, err := backlite(ctx, s, dir, max(b.jobs/20, 1000))
	if err := b.without("backlite", err); err != nil {
		return err
	}
	o, err := newOurs(ctx, s, true)
	if err != nil {
		return err
	}
	defer o.db.Close()
	t := b.table("Throughput on SQLite", "One process, one file, synchronous=FULL for both; ours with a line of "+
		"history each, backlite keeps its finished tasks. All processor time is the client's.",
		append(append([]string{}, costHead...), "speed : backlite", "CPU : backlite")...)
	for _, name := range []string{"enqueue 1", "bulk", "drain tuned"} {
		if c, there := l.costs[name]; there {
			t.add(costRow("backlite: "+name, c, cost{})...)
		}
	}
	b.found["backlite"] = l.costs["drain tuned"].rate()
	for _, m := range []struct {
		name, peer, figure string
		work               func() (cost, error)
	}{
		{"cmsjobs: enqueue one by one, 1 caller", "enqueue 1", "sqlite enqueue 1", func() (cost, error) {
			return o.enqueue(ctx, b.jobs/20, 1)
		}},
		{"cmsjobs: enqueue in bulk (1,000)", "bulk", "sqlite bulk", func() (cost, error) {
			return measure(o.server, b.jobs, func() error { return o.fill(ctx, b.jobs, asItIs) })
		}},
		{"cmsjobs: 1 slot, strictly one after the other", "", "sqlite 1", func() (cost, error) {
			return o.rest(ctx, b.jobs/10, 1, 0)
		}},
		{"cmsjobs: 10 slots, nothing ahead (default)", "", "sqlite default", func() (cost, error) {
			return o.rest(ctx, b.jobs/4, 10, 0)
		}},
		{"cmsjobs: 100 slots, 2,000 ahead (best)", "drain tuned", "sqlite best", func() (cost, error) {
			return o.rest(ctx, b.jobs, 100, 2000)
		}},
	} {
		say("%s (SQLite)", m.name)
		c, err := m.work()
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		b.found[m.figure] = c.rate()
		t.add(costRow(m.name, c, l.costs[m.peer])...)
	}
	return nil
}
