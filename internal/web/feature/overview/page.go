package overview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/answers"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/chart"
)

// overview is the first page: is anything working, and how has it been?
type overview struct {
	Health   healthStatus
	Stats    ops.StatsView
	Live     int // workers
	Slots    int
	Busy     int
	Range    string
	Ranges   []string
	Plots    []chart.Plot
	Next     []upcoming
	Schedule bool // configured
	Features []web.Summary
	Failures []ops.FailureGroupView
}

// upcoming is a tick that comes.
type upcoming struct {
	Name, Type string
	At         time.Time
}

// span is how far the plots look back, and in which steps.
type span struct{ back, step time.Duration }

var spans = map[string]span{"1h": {time.Hour, time.Minute}, "24h": {24 * time.Hour, 30 * time.Minute},
	"7d": {7 * 24 * time.Hour, 4 * time.Hour}, "30d": {30 * 24 * time.Hour, 24 * time.Hour}}

func (h handlers) overviewPage(req *web.Request) error {
	g, err := h.inputs(req)
	if err != nil {
		return err
	}
	o := overview{Stats: ops.Stats(g.stats), Range: req.QueryParam("range"), Ranges: []string{"1h", "24h", "7d", "30d"},
		Next: soonest(g.schedules, 8), Schedule: h.Schedules != nil}
	for _, f := range req.Features() {
		if f.Overview == nil {
			continue
		}
		summary, err := f.Overview(req)
		if err != nil {
			return fmt.Errorf("summing up %s: %w", f.Name, err)
		}
		o.Features, g.ready = append(o.Features, summary), g.ready && !summary.Pending
		g.warnings = append(g.warnings, summary.Warnings...)
	}
	o.Health = g.evaluate()
	if _, known := spans[o.Range]; !known {
		o.Range = "24h"
	}
	for _, w := range g.workers {
		if w.Alive {
			o.Live, o.Slots, o.Busy = o.Live+1, o.Slots+w.Slots, o.Busy+len(w.Running)
		}
	}
	ready, err := past(req, &o)
	if err != nil {
		return err
	}
	return req.Show(web.PageView{Name: "overview", Data: o, Live: web.LiveList, Ready: ready && g.ready})
}

// lookBack is where a plot begins.
func lookBack(now time.Time, look span) time.Time { return now.Add(-look.back).Truncate(look.step) }

// past fills in what the history tells; ready is false while it is counted.
func past(req *web.Request, o *overview) (ready bool, err error) {
	if req.History() == nil {
		return true, nil
	}
	flows, since, ready, err := throughput(req, o.Range)
	if err != nil {
		return false, fmt.Errorf("counting runs: %w", err)
	}
	if step := spans[o.Range].step; ready {
		o.Plots = flowPlots(req.Printer(), filled(flows, since, req.Now(), step), step)
	}
	groups, grouped, err := req.FailureGroups(jobs.Filter{})
	if err != nil {
		return false, fmt.Errorf("grouping failed jobs: %w", err)
	}
	o.Failures = ops.Each(groups[:min(len(groups), 5)], req.View().FailureGroup)
	return ready && grouped, nil
}

// throughput are the runs that ended in a range, and since when.
func throughput(req *web.Request, name string) (flows []jobs.Throughput, since time.Time, ready bool, err error) {
	look := spans[name]
	since = lookBack(req.Now(), look)
	flows, ready, err = web.Cached(req, "flows "+name, func(ctx context.Context) ([]jobs.Throughput, error) {
		return req.History().Throughput(ctx, since, look.step)
	})
	return flows, since, ready, err
}

// warm counts what the page needs ahead of the first person.
func warm(ctx context.Context, c web.Config, cache *answers.Cache) error {
	if _, err := web.Stats(ctx, c, cache); err != nil || c.History == nil {
		return err
	}
	var all error
	for name, look := range spans {
		_, err := answers.Await(ctx, cache, "flows "+name, func(ctx context.Context) ([]jobs.Throughput, error) {
			return c.History.Throughput(ctx, lookBack(c.Now(), look), look.step)
		})
		all = errors.Join(all, err)
	}
	_, err := web.FailureGroups(ctx, c, cache, jobs.Filter{})
	return errors.Join(all, err)
}

// maxSteps bounds how many steps of time a plot has.
const maxSteps = 1000

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

// inputs asks everything that the status depends on.
func (h handlers) inputs(req *web.Request) (healthInputs, error) {
	ctx := req.Ctx()
	g := healthInputs{now: req.Now(), lang: req.Printer(), failing: h.Failing(req), conditions: h.Conditions(ctx),
		disabled: h.Disabled, hasWorkers: h.Workers != nil, ready: true}
	var err error
	if g.stats, err = req.Stats(); err != nil {
		return g, fmt.Errorf("counting jobs: %w", err)
	}
	if h.Workers != nil {
		if g.workers, err = h.Workers.Workers(ctx); err != nil {
			return g, fmt.Errorf("listing workers: %w", err)
		}
	}
	if req.History() != nil {
		flows, _, ready, err := throughput(req, "1h") // as the plots of an hour count it
		g.ready = g.ready && ready
		if err != nil {
			return g, fmt.Errorf("counting runs: %w", err)
		}
		for _, f := range flows {
			g.lastHour.Completed += f.Completed
			g.lastHour.Failed += f.Failed
			g.lastHour.FailedAttempts += f.FailedAttempts
		}
	}
	if h.Schedules != nil {
		if g.schedules, err = h.Schedules.Schedules(ctx); err != nil {
			return g, fmt.Errorf("listing the schedule: %w", err)
		}
	}
	return g, nil
}
