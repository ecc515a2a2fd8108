package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// The bounds of a series: its steps, and how many types or queues have their own
// name in it.
const (
	maxSeriesSteps = 1000
	maxNamed       = 5
)

// Series counts completed and failed attempts in the latest steps of equal length,
// and how long they waited and took. The last step has only begun; it is now by the
// database's clock, whatever the process' clock says. The five largest types or queues
// are named, all others are counted together. Steps of half hours or a multiple reach
// back further than the history: to 62 days.
func (s *Store) Series(ctx context.Context, steps int, step time.Duration, by jobs.SeriesSplit) (jobs.Series, error) {
	var none jobs.Series
	if steps < 1 || steps > maxSeriesSteps {
		return none, fmt.Errorf("%d steps are outside 1 to %d", steps, maxSeriesSteps)
	}
	first, err := s.firstStep(ctx, steps, step)
	if err != nil {
		return none, err
	}
	width := step.Milliseconds()
	c := seriesCounts{first: first, steps: steps, names: map[string][]int64{},
		waits: make([]spread, steps), lengths: make([]spread, steps)}
	add := func(f figure, n int64) { c.add(by, f, n) }
	from, end := first*width, (first+int64(steps))*width
	if width%flowWidth == 0 {
		until, err := s.bringFigures(ctx)
		if err == nil && until > from {
			err = s.eachKept(ctx, by, width, from, until, add)
		}
		if err != nil {
			return none, err
		}
		from = max(from, until)
	}
	if err := s.eachFigure(ctx, width, from, end, add); err != nil {
		return none, err
	}
	x := jobs.Series{Since: tables.UnixMilli(first * width), Step: step, Counts: c.named(by)}
	x.Waits, x.AllWaits = percentilesOf(c.waits)
	x.Durations, x.AllDurations = percentilesOf(c.lengths)
	x.Waiting, x.Running = c.occupancy(float64(width))
	return x, nil
}

// seriesCounts collects the figures of a series.
type seriesCounts struct {
	first          int64 // number of the first step
	steps          int
	names          map[string][]int64
	waits, lengths []spread
}

func (c *seriesCounts) add(by jobs.SeriesSplit, f figure, n int64) {
	i := f.at - c.first
	if i < 0 || i >= int64(c.steps) {
		return
	}
	switch f.kind {
	case waitFigure:
		c.waits[i].add(f.name, n)
	case lengthFigure:
		c.lengths[i].add(f.name, n)
	case string(by):
		name := f.name
		if name == jobs.CrashedOutcome && by == jobs.ByOutcome {
			name = jobs.Retried.String()
		}
		if c.names[name] == nil {
			c.names[name] = make([]int64, c.steps)
		}
		c.names[name][i] += n
	}
}

// named are the counts in the order of a chart: outcomes from good to bad, types
// and queues by their size.
func (c *seriesCounts) named(by jobs.SeriesSplit) []jobs.NamedCounts {
	if by == jobs.ByOutcome {
		var list []jobs.NamedCounts
		for _, outcome := range []jobs.Outcome{jobs.Completed, jobs.Retried, jobs.Failed} {
			counts := c.names[outcome.String()]
			if counts == nil {
				counts = make([]int64, c.steps)
			}
			list = append(list, jobs.NamedCounts{Name: outcome.String(), Counts: counts})
		}
		return list
	}
	list := make([]jobs.NamedCounts, 0, len(c.names))
	for name, counts := range c.names {
		list = append(list, jobs.NamedCounts{Name: name, Counts: counts})
	}
	slices.SortFunc(list, func(a, b jobs.NamedCounts) int {
		return cmp.Or(cmp.Compare(sum(b.Counts), sum(a.Counts)), cmp.Compare(a.Name, b.Name))
	})
	if len(list) <= maxNamed+1 {
		return list
	}
	others := jobs.NamedCounts{Counts: make([]int64, c.steps)}
	for _, x := range list[maxNamed:] {
		for i, n := range x.Counts {
			others.Counts[i] += n
		}
	}
	return append(list[:maxNamed:maxNamed], others)
}

func sum(counts []int64) (n int64) {
	for _, x := range counts {
		n += x
	}
	return n
}

// spread is how many attempts fell into each range of lengths.
type spread [lastRange + 1]int64

func (x *spread) add(name string, n int64) {
	if r, err := strconv.Atoi(name); err == nil && r >= 0 && r <= lastRange {
		x[r] += n
	}
}

// percentilesOf are those of each step and of all together.
func percentilesOf(steps []spread) (each []jobs.Percentiles, all jobs.Percentiles) {
	var together spread
	each = make([]jobs.Percentiles, len(steps))
	for i := range steps {
		each[i] = steps[i].percentiles()
		for r, n := range steps[i] {
			together[r] += n
		}
	}
	return each, together.percentiles()
}

func (x *spread) percentiles() jobs.Percentiles {
	n := sum(x[:])
	return jobs.Percentiles{Attempts: n, P50: x.percentile(50, n), P95: x.percentile(95, n), P99: x.percentile(99, n)}
}

// percentile is the middle of the range in which the percentile of n attempts
// lies.
func (x *spread) percentile(percent, n int64) time.Duration {
	rank := (n*percent + 99) / 100
	if rank == 0 {
		return 0
	}
	for r, in := range x {
		if rank -= in; rank <= 0 {
			first, width := rangeStart(r)
			return time.Duration(first+(width-1)/2) * time.Millisecond
		}
	}
	return 0
}

// occupancy is how many attempts waited and ran on average in each step. Attempts are
// counted in the step in which they ended, by the ranges of their waits and durations:
// each is taken to have ended in the middle of its step.
func (c *seriesCounts) occupancy(width float64) (waiting, running []float64) {
	waiting, running = make([]float64, c.steps), make([]float64, c.steps)
	for i := range c.steps {
		end, ran, attempts := (float64(i)+0.5)*width, 0.0, 0.0
		for r, n := range c.lengths[i] {
			if n > 0 {
				took := rangeMiddle(r)
				occupy(running, width, end-took, end, float64(n))
				ran, attempts = ran+took*float64(n), attempts+float64(n)
			}
		}
		start := end
		if attempts > 0 {
			start -= ran / attempts // which wait belongs to which duration is not known
		}
		for r, n := range c.waits[i] {
			if n > 0 {
				occupy(waiting, width, start-rangeMiddle(r), start, float64(n))
			}
		}
	}
	return waiting, running
}

// occupy adds n attempts that lasted from one moment to another to each step by its
// share; what lies before the first step is left out.
func occupy(steps []float64, width, from, to, n float64) {
	for i := max(int(from/width), 0); i < len(steps); i++ {
		begin := float64(i) * width
		if begin >= to {
			return
		}
		if share := min(to, begin+width) - max(from, begin); share > 0 {
			steps[i] += n * share / width
		}
	}
}

// rangeMiddle is the middle of a range of lengths.
func rangeMiddle(r int) float64 {
	first, width := rangeStart(r)
	return float64(first) + float64(width-1)/2
}
