package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/servers"
)

var costHead = []string{"what", "jobs/s", "client CPU µs/job", "server CPU µs/job"}

func (b *bench) mariaDB(ctx context.Context) error {
	s, err := servers.MariaDB()
	if err != nil {
		return err
	}
	defer s.Stop()
	o, err := newOurs(ctx, s, true)
	if err != nil {
		return err
	}
	defer o.db.Close()
	l, err := newLaravel(ctx, s)
	if err := b.without("Laravel", err); err != nil {
		return err
	}
	for _, step := range []func(context.Context, *ours, *laravel) error{b.besideLaravel, b.pickUps, b.depths, b.idles} {
		if err := step(ctx, o, l); err != nil {
			return err
		}
	}
	return nil
}

// besideLaravel alternates, so that what else the machine does falls on both.
func (b *bench) besideLaravel(ctx context.Context, o *ours, l *laravel) error {
	t := b.table("Throughput beside Laravel, MariaDB", "Jobs that do nothing; ours with a line of history each. A ratio is to Laravel's same work (one worker, one process), above 1 in our favour: by jobs a second, and by processor time of client and server together.",
		append(append([]string{}, costHead...), "speed : Laravel", "CPU : Laravel")...)
	var single, bulk, drained cost
	if l != nil {
		var err error
		if drained, err = l.drain(ctx, b.jobs/20); err != nil {
			return err
		}
		if single, err = l.enqueue(ctx, b.jobs/20, "one"); err != nil {
			return err
		}
		if bulk, err = l.enqueue(ctx, b.jobs, "bulk"); err != nil {
			return err
		}
		t.add(costRow("Laravel: enqueue one by one", single, cost{})...)
		t.add(costRow("Laravel: enqueue in bulk (1,000)", bulk, cost{})...)
		t.add(costRow("Laravel: queue:work, 1 worker", drained, cost{})...)
		b.found["laravel"], b.found["laravel enqueue"] = drained.rate(), single.rate()
	}
	for _, m := range []struct {
		name   string
		peer   cost
		figure string
		work   func() (cost, error)
	}{
		{"cmsjobs: enqueue one by one, 1 caller", single, "mariadb enqueue 1", func() (cost, error) { return o.enqueue(ctx, b.jobs/20, 1) }},
		{"cmsjobs: enqueue one by one, 10 callers", single, "mariadb enqueue 10", func() (cost, error) { return o.enqueue(ctx, b.jobs/10, 10) }},
		{"cmsjobs: enqueue in bulk (1,000)", bulk, "mariadb bulk", func() (cost, error) {
			return measure(o.server, b.jobs, func() error { return o.fill(ctx, b.jobs, asItIs) })
		}},
		{"cmsjobs: 10 slots, nothing ahead (default)", drained, "mariadb default", func() (cost, error) { return o.rest(ctx, b.jobs/4, 10, 0) }},
		{"cmsjobs: 1 slot, strictly one after the other", drained, "mariadb 1", func() (cost, error) { return o.rest(ctx, b.jobs/10, 1, 0) }},
		{"cmsjobs: 10 slots, 1,000 ahead", drained, "mariadb 10", func() (cost, error) { return o.rest(ctx, b.jobs, 10, 1000) }},
		{"cmsjobs: 100 slots, 2,000 ahead (best)", drained, "mariadb best", func() (cost, error) { return o.rest(ctx, b.jobs, 100, 2000) }},
	} {
		say("%s", m.name)
		c, err := m.work()
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		b.found[m.figure] = c.rate()
		t.add(costRow(m.name, c, m.peer)...)
	}
	return nil
}

// rest empties the queue, then drains n fresh jobs.
func (o *ours) rest(ctx context.Context, n, slots, prefetch int) (cost, error) {
	statement := "TRUNCATE TABLE jobs"
	if o.server.Name == "SQLite" {
		statement = "DELETE FROM jobs"
	}
	if _, err := o.db.ExecContext(ctx, statement); err != nil {
		return cost{}, err
	}
	var err error
	if o.store, err = o.reopened(ctx); err != nil {
		return cost{}, err
	}
	return o.drain(ctx, n, slots, prefetch)
}

func (b *bench) pickUps(ctx context.Context, o *ours, l *laravel) error {
	say("pick-up")
	t := b.table("Pick-up by an idle worker, ms", "From the call that enqueues to the start of the handler. Ours is woken by an enqueue through the API, CLI or client on the same host; Laravel sleeps 3 s between polls (its default). An INSERT by others is found at our next poll, 0.5 to 3 s later.",
		"who", "p50", "p99", "jobs")
	if _, err := o.db.ExecContext(ctx, "TRUNCATE TABLE jobs"); err != nil {
		return err
	}
	mine, err := o.pickUp(ctx, 300)
	if err != nil {
		return err
	}
	b.found["pick-up"] = at(mine, 0.5)
	t.add(spread("cmsjobs (MariaDB)", mine)...)
	if l == nil || b.short {
		return nil
	}
	theirs, err := l.pickUp(ctx, 10)
	t.add(spread("Laravel (MariaDB)", theirs)...)
	return err
}

func (b *bench) depths(ctx context.Context, _ *ours, _ *laravel) error {
	return onItsOwnMariaDB(func(server *servers.Server) error {
		t := b.table("One claim over a deep queue, MariaDB, ms", "A fresh process claims and settles one job at a time. Its first claim finds the way past what is not due or not ours; a claim that finds nothing in reach goes on where it stopped.",
			"before the jobs", "index", "first", "p50", "p99")
		for _, indexed := range []bool{true, false} {
			o, err := newOurs(ctx, server, indexed)
			if err != nil {
				return err
			}
			for _, s := range scenes {
				if b.short && s.n > 100_000 || s.n > 1_000_000 && !indexed {
					continue
				}
				say("%s, index %v", s.name, indexed)
				first, rest, err := o.claims(ctx, s, 300)
				if err != nil {
					return fmt.Errorf("%s: %w", s.name, err)
				}
				if indexed {
					b.found["p99 "+s.name] = at(rest, 0.99)
				}
				t.add(s.name, map[bool]string{true: "offered", false: "Laravel's own"}[indexed], fmt.Sprintf("%.2f", float64(first.Microseconds())/1000),
					fmt.Sprintf("%.2f", at(rest, 0.5)), fmt.Sprintf("%.2f", at(rest, 0.99)))
			}
			if err := o.db.Close(); err != nil {
				return err
			}
		}
		b.found.ratio("deep", "p99 5,000,000 waiting", "p99 1,000 waiting")
		b.found.ratio("snapshot", "p99 100,000 waiting, a long transaction open", "p99 100,000 waiting")
		return nil
	})
}

// onItsOwnMariaDB runs work on a MariaDB of its own, so that what was deleted there
// does not slow down others.
func onItsOwnMariaDB(work func(*servers.Server) error) error {
	s, err := servers.MariaDB()
	if err != nil {
		return err
	}
	defer s.Stop()
	return work(s)
}

func (b *bench) idles(ctx context.Context, o *ours, _ *laravel) error {
	if b.short {
		return nil
	}
	say("idle")
	i, err := o.idling(ctx, 15*time.Second)
	if err != nil {
		return err
	}
	b.found["idle queries"], b.found["idle cpu"], b.found["idle memory"], b.found["idle own"], b.found["idle touched"] = i.queries, i.client, i.memory, i.own, i.touched
	t := b.table("An idle `cmsjobs work`", "Resident is with the pages of the program's file that were touched since the start, which all its processes share and the system takes back when it wants.",
		"queries/s", "client, % of a core", "server, % of a core", "resident MiB", "of it the program's own memory", "of it touched in 15 idle seconds")
	t.add(fmt.Sprintf("%.1f", i.queries), fmt.Sprintf("%.2f", i.client), fmt.Sprintf("%.2f", i.server), fmt.Sprintf("%.1f", i.memory), fmt.Sprintf("%.1f", i.own), fmt.Sprintf("%.1f", i.touched))
	return nil
}

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
	t := b.table("Throughput beside River and graphile-worker, PostgreSQL", "The same server for all; ours with a line of history each, River keeps its rows as history, graphile-worker keeps none. Ratios to the peer's same work, above 1 in our favour.",
		append(append([]string{}, costHead...), "speed : River", "CPU : River", "speed : graphile", "CPU : graphile")...)
	b.found.peers(r, g)
	for _, name := range []string{"enqueue 1", "enqueue 10", "bulk", "drain default 10", "drain tuned"} {
		for who, f := range map[string]peerFigures{"River": r, "graphile-worker": g} {
			if c, there := f.costs[name]; there {
				t.add(costRow(who+": "+name, c, cost{}, cost{})...)
			}
		}
	}
	for _, m := range []struct {
		name, peer, figure string
		work               func() (cost, error)
	}{
		{"cmsjobs: enqueue one by one, 1 caller", "enqueue 1", "postgres enqueue 1", func() (cost, error) { return o.enqueue(ctx, b.jobs/20, 1) }},
		{"cmsjobs: enqueue one by one, 10 callers", "enqueue 10", "postgres enqueue 10", func() (cost, error) { return o.enqueue(ctx, b.jobs/10, 10) }},
		{"cmsjobs: enqueue in bulk (1,000)", "bulk", "postgres bulk", func() (cost, error) {
			return measure(o.server, b.jobs, func() error { return o.fill(ctx, b.jobs, asItIs) })
		}},
		{"cmsjobs: 1 slot, strictly one after the other", "", "postgres 1", func() (cost, error) { return o.rest(ctx, b.jobs/20, 1, 0) }},
		{"cmsjobs: 10 slots, nothing ahead (default)", "drain default 10", "postgres default", func() (cost, error) { return o.rest(ctx, b.jobs/4, 10, 0) }},
		{"cmsjobs: 100 slots, 2,000 ahead (best)", "drain tuned", "postgres best", func() (cost, error) { return o.rest(ctx, b.jobs, 100, 2000) }},
	} {
		say("%s (PostgreSQL)", m.name)
		c, err := m.work()
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		b.found[m.figure] = c.rate()
		t.add(costRow(m.name, c, r.costs[m.peer], g.costs[m.peer])...)
	}
	mine, err := o.pickUp(ctx, 200)
	p := b.table("Pick-up by an idle worker, PostgreSQL, ms", "", "who", "p50", "p99", "jobs")
	p.add(spread("cmsjobs", mine)...)
	p.add(spread("River, tuned (1 ms cooldown, 10 ms poll, LISTEN/NOTIFY)", r.pickUp)...)
	return err
}
