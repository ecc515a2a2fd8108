package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/bench/servers"
)

// sideBySide drains on MySQL and on MariaDB in turns, so that what else the machine
// does falls on both.
func (b *bench) sideBySide(ctx context.Context) error {
	return withServer(servers.MySQL, func(mysql *servers.Server) error {
		return withServer(servers.MariaDB, func(maria *servers.Server) error {
			return b.inTurns(ctx, mysql, maria)
		})
	})
}

// inTurns measures each way to drain five times a server and takes the median.
func (b *bench) inTurns(ctx context.Context, list ...*servers.Server) error {
	const rounds = 5
	t := b.table("MySQL beside MariaDB", fmt.Sprintf("The same work on both servers in turns, %d rounds; the "+
		"medians, and the slowest and the fastest round. A ratio is MySQL's to MariaDB's.", rounds),
		"what", "MySQL jobs/s", "MariaDB jobs/s", "MySQL : MariaDB")
	var all []*ours
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
	}
	for _, m := range []struct {
		name, figure          string
		jobs, slots, prefetch int
	}{
		{"1 slot, strictly one after the other", "1", b.jobs / 10, 1, 0},
		{"10 slots, nothing ahead (default)", "default", b.jobs / 4, 10, 0},
		{"100 slots, 2,000 ahead (best)", "best", b.jobs, 100, 2000},
	} {
		rates := make([][]float64, len(all))
		for round := range rounds {
			for turn := range all {
				i := (round + turn) % len(all)
				say("%s, %s, round %d", m.name, all[i].server.Name, round+1)
				c, err := all[i].rest(ctx, m.jobs, m.slots, m.prefetch)
				if err != nil {
					return fmt.Errorf("%s on %s: %w", m.name, all[i].server.Name, err)
				}
				rates[i] = append(rates[i], c.rate())
			}
		}
		row := []string{m.name}
		for i, o := range all {
			slices.Sort(rates[i])
			b.found["side "+strings.ToLower(o.server.Name)+" "+m.figure] = rates[i][rounds/2]
			row = append(row, fmt.Sprintf("%.0f (%.0f to %.0f)", rates[i][rounds/2], rates[i][0], rates[i][rounds-1]))
		}
		t.add(append(row, fmt.Sprintf("%.2f", rates[0][rounds/2]/rates[1][rounds/2]))...)
	}
	return nil
}
