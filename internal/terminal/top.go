package terminal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// Top is a frame of the figures: what is wrong, how much waits and runs, where.
func Top(f Figures, v View) string {
	c := &canvas{View: v}
	c.line(headline("cmsjobs top", f.Site, v))
	c.health(f)
	c.line(nil)
	c.wrapped(totals(f))
	c.line(lastHour(f.Hour))
	c.blocks([]block{
		{heading: "Running", lines: running(f, v.Now), heads: true, empty: "No job runs."},
		{heading: "Queues", lines: queues(f.Stats.Queues), heads: true},
		{heading: "Workers", lines: workers(f.Workers, v.Now), heads: true},
		{heading: "Failed jobs by cause", lines: failures(f.Failures, v.Now), heads: true},
		{heading: "Next by the schedule", lines: schedules(f.Schedules, v.Now), heads: true},
	}, 2)
	c.foot()
	return c.String()
}

// headline names the program, the site and the time.
func headline(name, site string, v View) line {
	l := painted(bold, name)
	if site != "" {
		l = l.add(plain, "  "+site)
	}
	return l.add(faint, "  "+v.Now.UTC().Format("2006-01-02 15:04:05")+" UTC")
}

// foot says what keys do, in the last row; before it, why the figures are old.
func (c *canvas) foot() {
	for len(c.rows) < c.Height-1 {
		c.line(nil)
	}
	keys := painted(faint, "q quit · space pause")
	switch {
	case c.Err != nil:
		keys = painted(red, "No answer since "+display.Span(c.Now.Sub(c.At))+": "+c.Err.Error())
	case c.Paused:
		keys = painted(yellow, "Paused, figures of "+c.At.UTC().Format(time.TimeOnly)).add(faint,
			" · space goes on · q quit")
	}
	c.rows = append(c.rows[:min(len(c.rows), max(c.Height-1, 0))], keys)
}

// maxConditions is how many conditions are named.
const maxConditions = 3

// health is what is wrong, worst first, and what to do about it.
func (c *canvas) health(f Figures) {
	active := slices.Clone(f.Conditions)
	if len(active) == 0 {
		c.line(painted(green, "All systems running"))
		return
	}
	slices.SortStableFunc(active, func(a, b Condition) int { return strings.Compare(a.Severity, b.Severity) })
	for i, x := range active {
		if i == maxConditions {
			c.line(painted(faint, fmt.Sprintf("and %d more: cmsjobs doctor", len(active)-i)))
			return
		}
		look := yellow
		if x.Severity == "failing" {
			look = red
		}
		l := painted(look, x.Name).add(plain, " "+x.Title)
		if x.Detail != "" {
			l = l.add(plain, ": "+x.Detail)
		}
		if !x.Since.IsZero() {
			l = l.add(faint, " (since "+display.Span(c.Now.Sub(x.Since))+")")
		}
		c.line(l.add(faint, "  "+x.Fix))
	}
}

// totals are the figures of the overview's tiles.
func totals(f Figures) []line {
	s := f.Stats
	waiting := text("Waiting ").add(bold, count(s.Waiting))
	if s.OldestMS > 0 {
		waiting = waiting.add(faint, " oldest "+display.Span(milliseconds(s.OldestMS)))
	}
	slots, live := 0, 0
	for _, w := range f.Workers {
		if w.Status != "dead" {
			slots, live = slots+w.Slots, live+1
		}
	}
	running := text("Running ").add(bold, count(s.Processing)).add(faint, fmt.Sprintf(" of %d slots, ", slots)+
		display.Sprintf("%d {worker|workers}", live))
	look := plain
	if s.Failed > 0 {
		look = red
	}
	failed := text("Failed ").add(look, count(s.Failed))
	if s.Ended > 0 {
		failed = failed.add(faint, fmt.Sprintf(" %.1f %% succeed", 100*s.SuccessRate))
	}
	return []line{waiting, running, text("Completed ").add(bold, count(s.Completed)), failed}
}

// lastHour are the attempts of an hour as a row of bars, with their sums.
func lastHour(h Hour) line {
	var minutes []int64
	sums := map[string]int64{}
	for _, s := range h.Series {
		for i, n := range s.Counts {
			if i == len(minutes) {
				minutes = append(minutes, 0)
			}
			minutes[i] += n
			sums[s.Name] += n
		}
	}
	l := text("Last hour ").add(green, bars(minutes)).add(plain, fmt.Sprintf(" %s completed", count(sums["completed"])))
	l = l.add(plain, " · "+count(sums["retried"])+" retried · ")
	bad := plain
	if sums["failed"] > 0 {
		bad = red
	}
	l = l.add(bad, count(sums["failed"])+" failed")
	if h.Wait.All.Attempts > 0 {
		l = l.add(faint, " · wait p95 "+display.Span(milliseconds(h.Wait.All.P95)))
	}
	return l
}

// bars draws counts, two in a column: the eighth of the largest that they reach.
func bars(counts []int64) string {
	const signs = " ▁▂▃▄▅▆▇█"
	levels := []rune(signs)
	var pairs []int64
	for i := 0; i < len(counts); i += 2 {
		sum := counts[i]
		if i+1 < len(counts) {
			sum += counts[i+1]
		}
		pairs = append(pairs, sum)
	}
	var top int64 = 1
	for _, n := range pairs {
		top = max(top, n)
	}
	var b strings.Builder
	for _, n := range pairs {
		at := (n*int64(len(levels)-1) + top - 1) / top // a single one is seen, too
		b.WriteRune(levels[at])
	}
	return b.String()
}

func running(f Figures, now time.Time) []line {
	var rows [][]cell
	for _, j := range f.Running {
		rows = append(rows, []cell{{id(j), plain}, {j.Type, bold}, {j.Queue, plain}, {attempt(j), plain},
			{since(j.StartedAt, now), plain}, {progress(j), blue}, {j.Worker, faint}})
	}
	return table([]column{{head: "ID", right: true, most: 14}, {head: "TYPE", most: 30}, {head: "QUEUE", most: 16},
		{head: "TRY", right: true}, {head: "FOR", right: true}, {head: "PROGRESS", most: 34},
		{head: "WORKER", most: 30}}, rows)
}

func queues(list []ops.QueueView) []line {
	var rows [][]cell
	for _, q := range list {
		name, look := q.Name, plain
		if q.Paused {
			name, look = name+" (paused)", yellow
		}
		rows = append(rows, []cell{{name, look}, {count(q.Queued), plain}, {count(q.Delayed), plain},
			{count(q.Processing), plain}, {count(q.Foreign), plain}, {display.Span(milliseconds(q.OldestMS)), plain},
			{strconv.Itoa(q.Workers), plain}})
	}
	return table([]column{{head: "QUEUE", most: 30}, {head: "QUEUED", right: true}, {head: "DELAYED", right: true},
		{head: "RUNNING", right: true}, {head: "PHP'S OWN", right: true}, {head: "OLDEST", right: true},
		{head: "WORKERS", right: true}}, rows)
}

func workers(list []ops.WorkerView, now time.Time) []line {
	var rows [][]cell
	for _, w := range list {
		look := plain
		if w.Status != "running" {
			look = yellow
		}
		rows = append(rows, []cell{{fmt.Sprintf("%s:%d", w.Host, w.PID), plain}, {w.Status, look},
			{fmt.Sprintf("%d/%d", len(w.Running), w.Slots), plain}, {strconv.Itoa(len(w.PHP)), plain},
			{fmt.Sprintf("%d MB", w.MemoryBytes>>20), plain}, {count(w.Done), plain}, {count(w.Failed), plain},
			{since(w.StartedAt, now), plain}})
	}
	return table([]column{{head: "WORKER", most: 34}, {head: "STATUS"}, {head: "SLOTS", right: true},
		{head: "PHP", right: true}, {head: "MEMORY", right: true}, {head: "DONE", right: true},
		{head: "FAILED", right: true}, {head: "FOR", right: true}}, rows)
}

func failures(list []ops.FailureGroupView, now time.Time) []line {
	var rows [][]cell
	for _, g := range list {
		rows = append(rows, []cell{{count(g.Count), red}, {g.Type, bold}, {display.Ago(g.LastSeen, now), plain},
			{g.Message, plain}})
	}
	return table([]column{{head: "JOBS", right: true}, {head: "TYPE", most: 30}, {head: "LAST", right: true},
		{head: "CAUSE"}}, rows)
}

func schedules(list []ops.ScheduleView, now time.Time) []line {
	list = slices.DeleteFunc(slices.Clone(list), func(s ops.ScheduleView) bool { return len(s.Next) == 0 || s.Paused })
	slices.SortStableFunc(list, func(a, b ops.ScheduleView) int { return a.Next[0].Compare(b.Next[0]) })
	var rows [][]cell
	for _, s := range list {
		last, look := "–", plain
		if s.Last != nil {
			if last = s.Last.Outcome; last == "failed" || last == "missed" || last == "partial" {
				look = red
			}
		}
		rows = append(rows, []cell{{display.Ago(s.Next[0], now), plain}, {s.Name, bold}, {s.Cron, faint}, {last, look}})
	}
	return table([]column{{head: "NEXT", right: true}, {head: "ENTRY", most: 34}, {head: "CRON"}, {head: "LAST"}}, rows)
}

// TopLines is one line of the figures, for a file or a pipe.
func TopLines(f Figures, _ *Figures) []string {
	c := &canvas{View: View{Width: 400}}
	l := text(f.At.UTC().Format(time.TimeOnly) + "  ")
	for _, t := range append(totals(f), lastHour(f.Hour)) {
		l = append(l, t...).add(plain, "   ")
	}
	for _, x := range f.Conditions {
		l = l.add(plain, x.Severity+": "+x.Name+"   ")
	}
	return []string{c.written(l)}
}
