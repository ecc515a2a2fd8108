package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/bench/servers"
)

// sideBySide drains on MySQL and on MariaDB in turns, by ours and by Laravel's
// worker, so that what else the machine does falls on all. Neither server instruments
// its statements: MySQL ships so that it does, which the part before measures.
func (b *bench) sideBySide(ctx context.Context) error {
	return withServer(servers.PlainMySQL, func(mysql *servers.Server) error {
		return withServer(servers.PlainMariaDB, func(maria *servers.Server) error {
			return b.inTurns(ctx, mysql, maria)
		})
	})
}

// rounds is how often each way to drain is measured; the median counts.
const rounds = 5

// way is one way to drain, on each server of a comparison.
type way struct {
	name, figure string
	drain        func(server int) (cost, error)
}

// inTurns measures each way to drain on each server and takes the medians.
func (b *bench) inTurns(ctx context.Context, list ...*servers.Server) error {
	t := b.table("MySQL beside MariaDB", fmt.Sprintf("The same work on both servers in turns, %d rounds; the "+
		"medians, and the slowest and the fastest round. performance_schema is off on both, as MariaDB ships; MySQL "+
		"ships with it on, as in the tables above.", rounds), "what", "MySQL jobs/s", "MariaDB jobs/s",
		"MySQL : MariaDB", "server CPU µs/job, MySQL : MariaDB", "MySQL : Laravel there", "MariaDB : Laravel there")
	var all []*ours
	var peers []*laravel
	for _, s := range list {
		if err := b.setUp(ctx, s); err != nil {
			return err
		}
		o, err := newOurs(ctx, s, true)
		if err != nil {
			return err
		}
		defer o.db.Close()
		all = append(all, o)
		l, err := newLaravel(ctx, s)
		if err := b.without("Laravel", err); err != nil {
			return err
		}
		if l != nil {
			defer l.db.Close()
			peers = append(peers, l)
		}
	}
	for _, w := range b.ways(ctx, all, peers) {
		if err := b.takeTurns(t, w, list); err != nil {
			return err
		}
	}
	return nil
}

// ways are Laravel's one worker, where it is installed, and ours.
func (b *bench) ways(ctx context.Context, all []*ours, peers []*laravel) []way {
	var list []way
	if len(peers) == len(all) {
		list = append(list, way{"Laravel: queue:work, 1 worker", "laravel", func(server int) (cost, error) {
			return peers[server].drain(ctx, b.jobs/20)
		}})
	}
	for _, m := range []struct {
		name, figure          string
		jobs, slots, prefetch int
	}{
		{"cmsjobs: 1 slot, strictly one after the other", "1", b.jobs / 10, 1, 0},
		{"cmsjobs: 10 slots, nothing ahead (default)", "default", b.jobs / 4, 10, 0},
		{"cmsjobs: 100 slots, 2,000 ahead (best)", "best", b.jobs, 100, 2000},
	} {
		list = append(list, way{m.name, m.figure, func(server int) (cost, error) {
			return all[server].rest(ctx, m.jobs, m.slots, m.prefetch)
		}})
	}
	return list
}

// takeTurns measures one way and adds its row.
func (b *bench) takeTurns(t *table, w way, list []*servers.Server) error {
	rates, spent := make([][]float64, len(list)), make([][]float64, len(list))
	for round := range rounds {
		for turn := range list {
			i := (round + turn) % len(list)
			say("%s, %s, round %d", w.name, list[i].Name, round+1)
			c, err := w.drain(i)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", w.name, list[i].Name, err)
			}
			rates[i], spent[i] = append(rates[i], c.rate()), append(spent[i], c.serverJob())
		}
	}
	row, ratios := []string{w.name}, []string{}
	for i, s := range list {
		slices.Sort(rates[i])
		slices.Sort(spent[i])
		median, name := rates[i][rounds/2], "side "+strings.ToLower(s.Name)+" "
		b.found[name+w.figure] = median
		row = append(row, fmt.Sprintf("%.0f (%.0f to %.0f)", median, rates[i][0], rates[i][rounds-1]))
		if theirs := b.found[name+"laravel"]; theirs > 0 && w.figure != "laravel" {
			ratios = append(ratios, times(median/theirs))
			continue
		}
		ratios = append(ratios, "–")
	}
	row = append(row, fmt.Sprintf("%.2f", rates[0][rounds/2]/rates[1][rounds/2]))
	row = append(row, fmt.Sprintf("%.0f : %.0f", spent[0][rounds/2], spent[1][rounds/2]))
	t.add(append(row, ratios...)...)
	return nil
}
