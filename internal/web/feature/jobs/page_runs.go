package jobs

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// runsPageData is the list of runs with its filter.
type runsPageData struct {
	Bar    filterBar
	Runs   []ops.RunView
	Tabs   []runTab
	Next   string
	Cursor string
}

// runTab is an outcome, and the list with it; "" is any.
type runTab struct {
	Outcome, Path string
	Current       bool
	N             int64 // −1 where counting is expensive
}

// runOutcomes are those that a person asks for.
var runOutcomes = []string{"completed", "retried", "failed", "crashed", "released", "cancelled"}

// runFilter is the filter of runs as a request has it: a job has a status, a run an
// outcome.
func runFilter(req *web.Request) (jobs.Filter, error) {
	f, err := req.Filter()
	outcome := req.QueryParam("outcome")
	if err == nil && outcome != "" {
		if !slices.Contains(runOutcomes, outcome) {
			return f, web.RefuseField(http.StatusBadRequest, "outcome", "No outcome is named %q; use completed, "+
				"retried, failed, crashed, released or cancelled.", redact.Clip(outcome, 40))
		}
		f.Outcomes = []string{outcome}
	}
	return f, err
}

func (h handlers) runsPage(req *web.Request) error {
	v := runsPageData{Cursor: redact.Clip(req.QueryParam("cursor"), 500)}
	var err error
	if v.Bar, err = h.bar(req, "runs", "type", "queue", "worker", "tag", "id", "since", "until"); err != nil {
		return err
	}
	f, err := runFilter(req)
	if err == nil {
		err = h.fillRuns(req, f, &v)
	}
	if err != nil {
		if err := v.Bar.shown(req, err); err != nil {
			return err
		}
	}
	return req.Show(web.PageView{Name: "runs", Live: web.LiveList, Data: v, Ready: true})
}

// fillRuns lists the runs and counts them by outcome, as far as counting is cheap.
func (h handlers) fillRuns(req *web.Request, f jobs.Filter, v *runsPageData) error {
	list, err := req.History().Runs(req.Ctx(), f, jobs.Page{Limit: web.PageRows, Cursor: v.Cursor, Uncounted: true})
	if err != nil {
		return fmt.Errorf("listing runs: %w", err)
	}
	v.Runs = ops.Each(list.Items, req.View().Run)
	v.Bar.alsoTypes(ops.Each(v.Runs, func(r ops.RunView) string { return r.Type }))
	v.Next = web.NextPage("/admin/runs", v.Bar.values(v.Bar.Filter), list.Next)
	for _, outcome := range append([]string{""}, runOutcomes...) {
		bar := v.Bar
		bar.Outcome = outcome
		f.Outcomes = nil
		if outcome != "" {
			f.Outcomes = []string{outcome}
		}
		counted, err := req.History().Runs(req.Ctx(), f, jobs.Page{Limit: 1})
		if err != nil {
			return fmt.Errorf("counting runs: %w", err)
		}
		v.Tabs = append(v.Tabs, runTab{outcome, bar.at(bar.query(bar.Filter)), outcome == v.Bar.Outcome, counted.Total})
	}
	return nil
}
