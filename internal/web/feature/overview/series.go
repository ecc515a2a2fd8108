package overview

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// span is how far charts look back, and in which steps.
type span struct {
	name       string
	back, step time.Duration
}

// spans are the ranges of the charts. Steps from half an hour are multiples of
// it: the history keeps them counted.
var spans = []span{{"1h", time.Hour, time.Minute}, {"24h", 24 * time.Hour, 30 * time.Minute},
	{"7d", 7 * 24 * time.Hour, 2 * time.Hour}, {"30d", 30 * 24 * time.Hour, 12 * time.Hour}}

const usualSpan = "24h"

var splits = []jobs.SeriesSplit{jobs.ByOutcome, jobs.ByType, jobs.ByQueue}

// spanOf is the range of a name; found is false for an unknown one.
func spanOf(name string) (s span, found bool) {
	i := slices.IndexFunc(spans, func(s span) bool { return s.name == cmp.Or(name, usualSpan) })
	if i < 0 {
		return span{}, false
	}
	return spans[i], true
}

// read asks the history for the series of a range.
func (s span) read(history web.History, by jobs.SeriesSplit) func(context.Context) (jobs.Series, error) {
	return func(ctx context.Context) (jobs.Series, error) {
		return history.Series(ctx, int(s.back/s.step), s.step, by)
	}
}

// key names the series among kept answers.
func (s span) key(by jobs.SeriesSplit) string { return "series " + s.name + " " + string(by) }

// SeriesView are completed and failed attempts in steps of time, oldest first.
type SeriesView struct {
	Range  string       `json:"range"`
	By     string       `json:"by"`
	Since  time.Time    `json:"since"` // of the first step
	StepMS int64        `json:"step_ms"`
	Series []SeriesItem `json:"series"` // one count a step; the name "" has all other types or queues
	// Wait and Duration have no values for steps without attempts.
	Wait     SpreadView `json:"wait"`
	Duration SpreadView `json:"duration"`
}

// SeriesItem are the attempts of an outcome, a type or a queue.
type SeriesItem struct {
	Name   string  `json:"name"`
	Counts []int64 `json:"counts"`
}

// SpreadView are percentiles in milliseconds, one a step, and those of all steps
// together.
type SpreadView struct {
	P50 []*int64   `json:"p50"`
	P95 []*int64   `json:"p95"`
	P99 []*int64   `json:"p99"`
	All SpreadItem `json:"all"`
}

// SpreadItem are percentiles in milliseconds.
type SpreadItem struct {
	Attempts int64 `json:"attempts"`
	P50      int64 `json:"p50"`
	P95      int64 `json:"p95"`
	P99      int64 `json:"p99"`
}

func (h handlers) listSeries(req *web.Request) error {
	look, known := spanOf(req.QueryParam("range"))
	if !known {
		return web.RefuseField(http.StatusBadRequest, "range", "range is 1h, 24h, 7d or 30d.")
	}
	by := jobs.SeriesSplit(cmp.Or(req.QueryParam("by"), string(jobs.ByOutcome)))
	if !slices.Contains(splits, by) {
		return web.RefuseField(http.StatusBadRequest, "by", "by is outcome, type or queue.")
	}
	x, err := look.read(req.History(), by)(req.Ctx())
	if err != nil {
		return fmt.Errorf("counting attempts: %w", err)
	}
	return req.JSON(http.StatusOK, SeriesView{Range: look.name, By: string(by), Since: ops.UTC(x.Since),
		StepMS: x.Step.Milliseconds(), Series: ops.Each(x.Counts, func(c jobs.NamedCounts) SeriesItem {
			return SeriesItem(c)
		}), Wait: spreadView(x.Waits, x.AllWaits), Duration: spreadView(x.Durations, x.AllDurations)})
}

func spreadView(steps []jobs.Percentiles, all jobs.Percentiles) SpreadView {
	v := SpreadView{All: SpreadItem{all.Attempts, all.P50.Milliseconds(), all.P95.Milliseconds(),
		all.P99.Milliseconds()}}
	for _, p := range steps {
		var p50, p95, p99 *int64
		if p.Attempts > 0 {
			p50, p95, p99 = new(p.P50.Milliseconds()), new(p.P95.Milliseconds()), new(p.P99.Milliseconds())
		}
		v.P50, v.P95, v.P99 = append(v.P50, p50), append(v.P95, p95), append(v.P99, p99)
	}
	return v
}
