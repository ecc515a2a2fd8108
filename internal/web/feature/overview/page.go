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
)

// overview is the first page: is anything working, and how has it been?
type overview struct {
	Health   healthStatus
	Actions  []web.Action
	Tiles    []tile
	Range    string
	By       string
	Spans    []choice
	Splits   []choice
	Counts   *chartView // nil while they are counted
	Waits    *chartView
	Lengths  *chartView
	Entries  []entryRow
	More     int  // entries that are not shown
	Schedule bool // configured
	Running  []runningRow
	Failures []ops.FailureGroupView
	Storage  *storageView
	Sections []*web.Section
	web.RunActions
}

// choice is a range or a split to choose.
type choice struct {
	Name    string
	Href    string
	Current bool
}

// The bounds of the page's lists.
const (
	shownCauses  = 5
	shownEntries = 8
	shownRunning = 6
)

func (h handlers) overviewPage(req *web.Request) error {
	g, err := h.inputs(req)
	if err != nil {
		return err
	}
	o := overview{Schedule: h.Schedules != nil}
	look, known := spanOf(req.QueryParam("range"))
	if !known {
		look, _ = spanOf(usualSpan)
	}
	by := jobs.SeriesSplit(req.QueryParam("by"))
	if !slices.Contains(splits, by) {
		by = jobs.ByOutcome
	}
	o.choices(look, by)
	summaries, err := h.summaries(req, &g)
	if err != nil {
		return err
	}
	series, err := h.past(req, &o, &g, look, by)
	if err != nil {
		return err
	}
	o.Health = g.evaluate()
	o.Tiles = tiles(req, g, series, look, summaries)
	o.parts(req, summaries)
	o.Running = runningRows(req, g.workers)
	if err := h.entries(req, &o, &g); err != nil {
		return err
	}
	o.Actions = quickActions(req)
	live := ""
	if o.RunActions, live = req.RunActions(); live == "" {
		live = web.LiveList
	}
	return req.Show(web.PageView{Name: "overview", Data: o, Live: live, Ready: g.ready})
}

// choices are the links of the chart's range and split.
func (o *overview) choices(look span, by jobs.SeriesSplit) {
	o.Range, o.By = look.name, string(by)
	for _, s := range spans {
		o.Spans = append(o.Spans, choice{s.name, "/admin?range=" + s.name + "&by=" + o.By, s.name == o.Range})
	}
	for _, x := range splits {
		o.Splits = append(o.Splits, choice{string(x), "/admin?range=" + o.Range + "&by=" + string(x), x == by})
	}
}

// summaries are what the other features say, with their warnings.
func (h handlers) summaries(req *web.Request, g *healthInputs) ([]web.Summary, error) {
	var all []web.Summary
	for _, f := range req.Features() {
		if f.Overview == nil {
			continue
		}
		summary, err := f.Overview(req)
		if err != nil {
			return nil, fmt.Errorf("summing up %s: %w", f.Name, err)
		}
		all, g.ready = append(all, summary), g.ready && !summary.Pending
		g.warnings = append(g.warnings, summary.Warnings...)
	}
	return all, nil
}

// parts are the storage and the sections of the features.
func (o *overview) parts(req *web.Request, summaries []web.Summary) {
	for _, s := range summaries {
		if s.Section != nil {
			o.Sections = append(o.Sections, s.Section)
		}
		if s.Storage != nil {
			o.Storage = newStorageView(req.Printer(), *s.Storage, req.Now())
		}
	}
}

// past fills in what the history tells, and gives the attempts by outcome; nil
// while they are counted.
func (h handlers) past(req *web.Request, o *overview, g *healthInputs, look span,
	by jobs.SeriesSplit) (*jobs.Series, error) {
	history := req.History()
	if history == nil {
		return nil, nil
	}
	ask := func(by jobs.SeriesSplit) (*jobs.Series, error) {
		x, ready, err := web.Cached(req, look.key(by), look.read(history, by))
		if err != nil {
			return nil, fmt.Errorf("counting attempts: %w", err)
		}
		if g.ready = g.ready && ready; !ready {
			return nil, nil
		}
		return &x, nil
	}
	outcomes, err := ask(jobs.ByOutcome)
	if err != nil {
		return nil, err
	}
	shown := outcomes
	if by != jobs.ByOutcome {
		if shown, err = ask(by); err != nil {
			return nil, err
		}
	}
	if shown != nil {
		if err := o.draw(req.Printer(), *shown, by, look); err != nil {
			return nil, err
		}
	}
	groups, grouped, err := req.FailureGroups(jobs.Filter{})
	if err != nil {
		return nil, fmt.Errorf("grouping failed jobs: %w", err)
	}
	g.ready = g.ready && grouped
	o.Failures = ops.Each(groups[:min(len(groups), shownCauses)], req.View().FailureGroup)
	return outcomes, nil
}

// warm counts what the page needs ahead of the first person.
func warm(ctx context.Context, c web.Config, cache *answers.Cache) error {
	if _, err := web.Stats(ctx, c, cache); err != nil || c.History == nil {
		return err
	}
	var all error
	for _, look := range spans {
		for _, by := range splits {
			_, err := answers.Await(ctx, cache, look.key(by), look.read(c.History, by))
			all = errors.Join(all, err)
		}
	}
	_, err := web.FailureGroups(ctx, c, cache, jobs.Filter{})
	return errors.Join(all, err)
}

// inputs asks everything that the status depends on.
func (h handlers) inputs(req *web.Request) (healthInputs, error) {
	ctx := req.Ctx()
	g := healthInputs{now: req.Now(), lang: req.Printer(), failing: h.Failing(req), conditions: h.Conditions(ctx),
		disabled: h.Disabled, hasWorkers: h.Workers != nil, ready: true,
		may: func(a web.Action) bool { return may(req, a) }}
	var err error
	if g.stats, err = req.Stats(); err != nil {
		return g, fmt.Errorf("counting jobs: %w", err)
	}
	if h.Workers != nil {
		if g.workers, err = h.Workers.Workers(ctx); err != nil {
			return g, fmt.Errorf("listing workers: %w", err)
		}
	}
	if history := req.History(); history != nil {
		flows, ready, err := web.Cached(req, "last hour", func(ctx context.Context) ([]jobs.Throughput, error) {
			return history.Throughput(ctx, 60+1, time.Minute) // and the minute that has begun
		})
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
