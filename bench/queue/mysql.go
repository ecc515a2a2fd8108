package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/servers"
)

var costHead = []string{"what", "jobs/s", "client CPU µs/job", "server CPU µs/job"}

func (b *bench) mySQL(ctx context.Context) error { return b.onMySQL(ctx, servers.MySQL) }

func (b *bench) mariaDB(ctx context.Context) error { return b.onMySQL(ctx, servers.MariaDB) }

// onMySQL measures on a server of MySQL's protocol. The figures carry its name.
func (b *bench) onMySQL(ctx context.Context, start func() (*servers.Server, error)) error {
	s, err := start()
	if err != nil {
		return err
	}
	defer s.Stop()
	if err := b.setUp(ctx, s); err != nil {
		return err
	}
	o, err := newOurs(ctx, s, true)
	if err != nil {
		return err
	}
	defer o.db.Close()
	l, err := newLaravel(ctx, s)
	if err := b.without("Laravel", err); err != nil {
		return err
	}
	if err := b.besideLaravel(ctx, o, l); err != nil {
		return err
	}
	if err := b.pickUps(ctx, o, l); err != nil {
		return err
	}
	if err := b.depths(ctx, s.Name, start); err != nil {
		return err
	}
	return b.idles(ctx, o)
}

// setUp notes how a server is set up. It is an error when a commit promises something
// else than on the server before: their figures could not be compared.
func (b *bench) setUp(ctx context.Context, s *servers.Server) error {
	row, err := s.Settings(ctx)
	if err != nil {
		return err
	}
	for _, before := range b.servers {
		if before[0] == row[0] {
			return nil
		}
		for i, name := range servers.SettingNames {
			if row[i+2] != before[i+2] {
				return fmt.Errorf("%s is set up otherwise than %s: %s is %s, not %s", s.Name, before[0], name,
					row[i+2], before[i+2])
			}
		}
	}
	b.servers = append(b.servers, row)
	return nil
}

// besideLaravel measures Laravel's own commands and ours on the same server.
func (b *bench) besideLaravel(ctx context.Context, o *ours, l *laravel) error {
	name := strings.ToLower(o.server.Name)
	t := b.table("Throughput beside Laravel, "+o.server.Name, "Jobs that do nothing; ours with a line of history "+
		"each. A ratio is to Laravel's same work (one worker, one process), above 1 in our favour: by jobs a second, "+
		"and by processor time of client and server together.",
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
		b.found[name+" laravel enqueue"] = single.rate()
	}
	for _, m := range []struct {
		name   string
		peer   cost
		figure string
		work   func() (cost, error)
	}{
		{"cmsjobs: enqueue one by one, 1 caller", single, "enqueue 1", func() (cost, error) {
			return o.enqueue(ctx, b.jobs/20, 1)
		}},
		{"cmsjobs: enqueue one by one, 10 callers", single, "enqueue 10", func() (cost, error) {
			return o.enqueue(ctx, b.jobs/10, 10)
		}},
		{"cmsjobs: enqueue in bulk (1,000)", bulk, "bulk", func() (cost, error) {
			return measure(o.server, b.jobs, func() error { return o.fill(ctx, b.jobs, asItIs) })
		}},
		{"cmsjobs: 10 slots, nothing ahead (default)", drained, "default", func() (cost, error) {
			return o.rest(ctx, b.jobs/4, 10, 0)
		}},
		{"cmsjobs: 1 slot, strictly one after the other", drained, "1", func() (cost, error) {
			return o.rest(ctx, b.jobs/10, 1, 0)
		}},
		{"cmsjobs: 10 slots, 1,000 ahead", drained, "10", func() (cost, error) {
			return o.rest(ctx, b.jobs, 10, 1000)
		}},
		{"cmsjobs: 100 slots, 2,000 ahead (best)", drained, "best", func() (cost, error) {
			return o.rest(ctx, b.jobs, 100, 2000)
		}},
	} {
		say("%s", m.name)
		c, err := m.work()
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		b.found[name+" "+m.figure] = c.rate()
		t.add(costRow(m.name, c, m.peer)...)
	}
	return nil
}

// empty empties the queue. New rows' numbers begin below the cursor, so that goes, too.
func (o *ours) empty(ctx context.Context) error {
	empty := "TRUNCATE TABLE "
	if o.server.Name == "SQLite" {
		empty = "DELETE FROM "
	}
	for _, table := range []string{"jobs", "cmsjobs_cursors"} {
		if _, err := o.db.ExecContext(ctx, empty+table); err != nil {
			return err
		}
	}
	return nil
}

// rest empties the queue, then drains n fresh jobs.
func (o *ours) rest(ctx context.Context, n, slots, prefetch int) (cost, error) {
	if err := o.empty(ctx); err != nil {
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
	t := b.table("Pick-up by an idle worker, "+o.server.Name+", ms", "From the call that enqueues to the start of "+
		"the handler. Ours is woken by an enqueue through the API, CLI or client on the same host; Laravel sleeps 3 "+
		"s between polls (its default). An INSERT by others: [see below](#other-programs-inserts).",
		"who", "p50", "p99", "jobs")
	if err := o.empty(ctx); err != nil {
		return err
	}
	mine, err := o.pickUp(ctx, 300)
	if err != nil {
		return err
	}
	b.found[strings.ToLower(o.server.Name)+" pick-up"] = at(mine, 0.5)
	t.add(spread("cmsjobs", mine)...)
	if l == nil || b.short {
		return nil
	}
	theirs, err := l.pickUp(ctx, 10)
	t.add(spread("Laravel", theirs)...)
	return err
}

// depths starts its own server, so that what was deleted there does not slow
// down the other measurements.
func (b *bench) depths(ctx context.Context, name string, start func() (*servers.Server, error)) error {
	return withServer(start, func(server *servers.Server) error {
		t := b.table("One claim over a deep queue, "+name+", ms", "A fresh process claims and settles one job at a "+
			"time. Its first claim finds the way past what is not due or not ours; a claim that finds nothing in "+
			"reach goes on where it stopped.",
			"before the jobs", "index", "first", "p50", "p99")
		figure := strings.ToLower(name)
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
					b.found[figure+" p99 "+s.name] = at(rest, 0.99)
				}
				t.add(s.name, map[bool]string{true: "offered", false: "Laravel's own"}[indexed],
					fmt.Sprintf("%.2f", float64(first.Microseconds())/1000),
					fmt.Sprintf("%.2f", at(rest, 0.5)), fmt.Sprintf("%.2f", at(rest, 0.99)))
			}
			if err := o.db.Close(); err != nil {
				return err
			}
		}
		b.found.ratio(figure+" deep", figure+" p99 5,000,000 waiting", figure+" p99 1,000 waiting")
		b.found.ratio(figure+" snapshot", figure+" p99 100,000 waiting, a long transaction open",
			figure+" p99 100,000 waiting")
		return nil
	})
}

// withServer runs work on a server that ends with it.
func withServer(start func() (*servers.Server, error), work func(*servers.Server) error) error {
	s, err := start()
	if err != nil {
		return err
	}
	defer s.Stop()
	return work(s)
}

func (b *bench) idles(ctx context.Context, o *ours) error {
	if b.short {
		return nil
	}
	say("idle")
	i, err := o.idling(ctx, 15*time.Second)
	if err != nil {
		return err
	}
	for name, value := range map[string]float64{"queries": i.queries, "cpu": i.client, "memory": i.memory,
		"own": i.own, "touched": i.touched} {
		b.found[strings.ToLower(o.server.Name)+" idle "+name] = value
	}
	t := b.table("An idle `cmsjobs work`, "+o.server.Name, "Resident is with the pages of the program's file that "+
		"were touched since the start, which all its processes share and the system takes back when it wants.",
		"queries/s", "client, % of a core", "server, % of a core", "resident MiB", "of it the program's own memory",
		"of it touched in 15 idle seconds")
	t.add(fmt.Sprintf("%.1f", i.queries), fmt.Sprintf("%.2f", i.client), fmt.Sprintf("%.2f", i.server),
		fmt.Sprintf("%.1f", i.memory), fmt.Sprintf("%.1f", i.own), fmt.Sprintf("%.1f", i.touched))
	return nil
}
