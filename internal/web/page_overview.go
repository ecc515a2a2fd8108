package web

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/chart"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// overview is the first page: is anything working, and how has it been?
type overview struct {
	Verdict  healthStatus
	Stats    ops.StatsView
	Live     int // workers
	Slots    int
	Busy     int
	Range    string
	Ranges   []string
	Plots    []chart.Plot
	Next     []upcoming
	Schedule bool // configured
	Features []Summary
	Failures []ops.FailureGroupView
}

// upcoming is a tick that comes.
type upcoming struct {
	Name, Type string
	At         time.Time
}

// span is how far the plots look back, and in which steps.
type span struct{ back, step time.Duration }

var spans = map[string]span{"1h": {time.Hour, time.Minute}, "24h": {24 * time.Hour, 30 * time.Minute}, "7d": {7 * 24 * time.Hour, 4 * time.Hour}, "30d": {30 * 24 * time.Hour, 24 * time.Hour}}

func (s *Server) overviewPage(c echo.Context) error {
	ctx, lang := c.Request().Context(), s.printer(c)
	g, err := s.healthInputs(ctx, lang)
	if err != nil {
		return err
	}
	o := overview{Stats: ops.Stats(g.stats), Range: c.QueryParam("range"), Ranges: []string{"1h", "24h", "7d", "30d"},
		Next: soonest(g.schedules, 8), Schedule: s.cfg.Schedules != nil}
	for _, f := range s.cfg.Features {
		if f.Overview == nil {
			continue
		}
		summary, err := f.Overview(&Request{c, s})
		if err != nil {
			return fmt.Errorf("summing up %s: %w", f.Name, err)
		}
		o.Features, g.ready = append(o.Features, summary), g.ready && !summary.Pending
		g.warnings = append(g.warnings, summary.Warnings...)
	}
	o.Verdict = g.evaluate()
	if _, known := spans[o.Range]; !known {
		o.Range = "24h"
	}
	for _, w := range g.workers {
		if w.Alive {
			o.Live, o.Slots, o.Busy = o.Live+1, o.Slots+w.Slots, o.Busy+len(w.Running)
		}
	}
	ready, err := s.past(ctx, lang, s.viewer(c), &o)
	if err != nil {
		return err
	}
	return s.showSoon(c, "overview", "overview.title", LiveList, ready && g.ready, o)
}

// lookBack is where a plot begins.
func (s *Server) lookBack(look span) time.Time {
	return s.cfg.Now().Add(-look.back).Truncate(look.step)
}

// past fills in what the history tells; ready is false while it is counted.
func (s *Server) past(ctx context.Context, lang locale.Printer, view ops.Viewer, o *overview) (ready bool, err error) {
	if s.cfg.History == nil {
		return true, nil
	}
	look := spans[o.Range]
	since := s.lookBack(look)
	flows, ready, err := s.flowsKept(ctx, since, look.step, o.Range)
	if err != nil {
		return false, fmt.Errorf("counting runs: %w", err)
	}
	if ready {
		o.Plots = flowPlots(lang, filled(flows, since, s.cfg.Now(), look.step), look.step)
	}
	groups, grouped, err := s.groupsKept(ctx, jobs.Filter{})
	if err != nil {
		return false, fmt.Errorf("grouping failed jobs: %w", err)
	}
	o.Failures = ops.Each(groups[:min(len(groups), 5)], view.FailureGroup)
	return ready && grouped, nil
}

// filled puts empty steps where nothing ended, so that plots show time as it went.
func filled(flows []jobs.Throughput, since, until time.Time, step time.Duration) []jobs.Throughput {
	n := min(int(until.Sub(since)/step)+1, maxSteps)
	all := make([]jobs.Throughput, n)
	for i := range all {
		all[i].At = since.Add(time.Duration(i) * step)
	}
	for _, f := range flows {
		if i := int(f.At.Sub(since) / step); i >= 0 && i < n {
			f.At = all[i].At
			all[i] = f
		}
	}
	return all
}

// soonest are the next ticks of all entries.
func soonest(entries []jobs.ScheduleRecord, n int) []upcoming {
	var all []upcoming
	for _, e := range entries {
		for _, at := range e.Next {
			all = append(all, upcoming{e.Name, e.Type, at})
		}
	}
	slices.SortFunc(all, func(a, b upcoming) int { return a.At.Compare(b.At) })
	return all[:min(len(all), n)]
}
