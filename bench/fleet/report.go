package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/bench/page"
)

// peersBest says how the peers are set up, and why no better way is known.
const peersBest = `How the peers are set up, and why no better way is known:

- **Laravel**: ` + "`queue:work --sleep=0 --stop-when-empty`" + ` on the same table, without what PHP needs to
  start. It has no option that makes it faster: it claims one job at a time, and opcache and JIT change nothing
  ([PHP's own jobs](#phps-own-jobs)).
- **River**: its own benchmark (cmd/river/riverbench) has FetchCooldown 2 ms, FetchPollInterval 20 ms and 2,000
  workers, and says that about 1,000 were best where its author tried. MaxWorkers is also how many jobs a client
  fetches at once; 1 ms is the least FetchCooldown that it accepts; many processes may do better if each asks less
  often. MaxWorkers and FetchCooldown in ms here: %s; FetchPollInterval is ten times as long. Each is tried at each
  number of processes, and the best is in the table. River ends jobs in batches without an option.
  It has GOMAXPROCS=1, as our worker of one slot has: it does more jobs so at every number of processes.
- **graphile-worker**: its own measurement (perfTest/graphile.config.js) has 24 jobs at once, a local queue of
  500, 10 ms between fetches that bring too little, and batches of completions without a delay; its
  documentation begins with a local queue of one more than there are jobs at once. Jobs at once and local queue
  here: %s, each tried at each number of processes, and the best is in the table. It keeps no history.
- On PostgreSQL all tables, ours too, are vacuumed and analysed before each measurement.

`

// short is a cell without places, which a peer's history does not tell.
func (f figures) short() string { return fmt.Sprintf("%.0f · %.0f+%.0f", f.rate, f.server, f.client) }

func (o *options) report(head string, r *results) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: `make bench-fleet`, %d jobs with one process, %d with 64, of one slot with nothing ahead a "+
		"third.\n\n", head, o.count(1), o.count(64))
	if o.short {
		b.WriteString("A short run: it shows that the measurement works, and its figures mean little.\n\n")
	}
	for _, line := range slices.Compact(r.absent) {
		fmt.Fprintf(&b, "Not measured: %s.\n\n", line)
	}
	var aims [][]string
	for _, a := range r.aims() {
		aims = append(aims, a.Cells())
	}
	table(&b, "Many processes against the aims", "Each line is judged by the worst number of processes of this run.",
		page.AimHead[:], aims)
	for _, server := range []string{"MariaDB", "MySQL", "PostgreSQL"} {
		r.processes(&b, o, server)
	}
	if len(r.series) > 0 && o.peers != "none" {
		fmt.Fprintf(&b, peersBest, tried(riverTries), tried(graphileTries))
	}
	r.beside(&b, o.rounds)
	return b.String()
}

// tried lists settings.
func tried(all [][2]int) string {
	var names []string
	for _, x := range all {
		names = append(names, fmt.Sprintf("%d and %d", x[0], x[1]))
	}
	return strings.Join(names, "; ")
}

func table(b *strings.Builder, title, note string, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "### %s\n\n%s\n\n| %s |\n|%s\n", title, note, strings.Join(head, " | "),
		strings.Repeat("---|", len(head)))
	for _, row := range rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
	b.WriteString("\n")
}

// processes is the table of a server by the number of processes.
func (r *results) processes(b *strings.Builder, o *options, server string) {
	head := []string{"processes"}
	var columns []*series
	for _, s := range r.series {
		if s.server == server {
			head, columns = append(head, s.who), append(columns, s)
		}
	}
	if len(columns) == 0 {
		return
	}
	var rows [][]string
	for _, n := range o.processes {
		row := []string{fmt.Sprint(n)}
		for _, s := range columns {
			row = append(row, r.cell(s, n))
		}
		rows = append(rows, row)
	}
	table(b, "Many processes, "+server, "jobs/s · processor time of server + clients, µs a job · of ours by how many "+
		"places 99 of 100 jobs are overtaken at most, of a peer how it was set up. Each of the bare loops has "+
		"separate rows, and ends "+fmt.Sprint(loopRows)+" in a transaction.", head, rows)
}

func (r *results) cell(s *series, n int) string {
	f, there := s.at(n)
	if !there {
		return "–"
	}
	if strings.Contains(s.who, "slot") {
		return f.cell()
	}
	for _, c := range r.settings {
		if c.peer == s.who && c.processes == n {
			return f.short() + " · " + c.how
		}
	}
	return f.short()
}

// beside is the table of the bare loop.
func (r *results) beside(b *strings.Builder, rounds int) {
	var lines [][]string
	for _, l := range r.limits {
		lines = append(lines, []string{l.server, fmt.Sprint(l.rows), l.loop.short(), l.name, l.ours.short(),
			fmt.Sprintf("%.2f", l.ours.rate/max(l.loop.rate, 1e-9))})
	}
	table(b, "Beside a bare loop", fmt.Sprintf("One process that does nothing but the statements that a job needs: "+
		"the next rows are read by their key, 256 at once; in one transaction, on MariaDB and PostgreSQL one "+
		"statement and on MySQL one packet, the rows before them are deleted under the condition that they are still "+
		"its own, their lines of history are written, and the next are reserved. It ends as many rows in a "+
		"transaction as ours claims ahead, at most 200. In turns, the median of %d; jobs/s · processor time of server "+
		"+ client, µs a job.",
		rounds), []string{"server", "rows a transaction", "bare loop", "cmsjobs, 1 process", "cmsjobs",
		"cmsjobs : loop, jobs/s"}, lines)
}
