package jobs

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/format"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// jobsPageData is the list of jobs with its filter.
type jobsPageData struct {
	Bar    filterBar
	Filter ops.Filter
	Status string
	Jobs   []ops.JobView
	// Columns are the plain ones; the page has type, status, time and payload itself.
	Columns []ops.JobColumn
	Choices []columnChoice
	// Counts are the jobs of each status under the rest of the filter; −1 where
	// counting would read the payloads of many jobs.
	Counts map[string]int64
	All    int64  // of all statuses; −1 as in Counts
	Query  string // the filter as a query, without a cursor
	Next   string // the next page's address
	Cursor string
	Bulk   []bulkChoice // with all that the filter chooses
	Chosen []bulkChoice // with the rows that are ticked
	// Silenced is how many classes of PHP's are left out.
	Silenced int
}

// bulkChoice is a bulk action that fits the filter.
type bulkChoice struct{ Action, Key, Class string }

var periods = []string{"1h", "24h", "168h", "720h"}

func (h handlers) jobsPage(req *web.Request) error {
	v := jobsPageData{Filter: req.WrittenFilter(), Cursor: req.QueryParam("cursor")}
	v.Columns, v.Choices = chosenColumns(req)
	v.Query = v.Filter.Query().Encode()
	if len(v.Filter.Status) == 1 {
		v.Status = v.Filter.Status[0]
	}
	var err error
	if v.Bar, err = h.bar(req, "jobs", ops.Qualifiers()...); err != nil {
		return err
	}
	stats, err := req.Stats()
	if err != nil {
		return fmt.Errorf("counting jobs: %w", err)
	}
	v.Bulk, v.Chosen = bulkChoices(v.Status), chosenChoices(v.Status)
	f, err := req.Filter()
	if err == nil {
		if err = h.listFor(req, f.WithoutSilenced(h.Silenced), &v); err == nil {
			v.Counts, err = countTabs(req, f, v.Filter.Narrows(), stats)
		}
	}
	if err != nil {
		if err := v.Bar.shown(req, err); err != nil {
			return err
		}
	}
	v.Bar.alsoTypes(ops.Each(v.Jobs, func(j ops.JobView) string { return j.Type }))
	for _, n := range v.Counts {
		if v.All += n; n < 0 {
			v.All = -1
			break
		}
	}
	return req.Show(web.PageView{Name: "jobs", Live: web.LiveList, Data: v, Ready: true})
}

// Tab is the address of the list with another status and the same filter.
func (v jobsPageData) Tab(status string) string {
	f := v.Filter
	f.Status = nil
	if status != "" {
		f.Status = []string{status}
	}
	query := f.Query()
	if len(query) == 0 {
		return "/admin/jobs"
	}
	return "/admin/jobs?" + query.Encode()
}

// countTabs counts the jobs of each status: without a filter as the overview
// does, else as far as counting is cheap.
func countTabs(req *web.Request, f jobs.Filter, filtered bool, stats jobs.Stats) (map[string]int64, error) {
	if !filtered {
		return map[string]int64{string(jobs.StatusQueued): stats.Waiting(),
			string(jobs.StatusProcessing): stats.Processing, string(jobs.StatusCompleted): stats.Completed,
			string(jobs.StatusFailed): stats.Failed, string(jobs.StatusCancelled): stats.Cancelled}, nil
	}
	counts := map[string]int64{}
	for _, status := range web.StatusNames() {
		f.Statuses = []jobs.Status{jobs.Status(status)}
		list, err := req.Ledger().Jobs(req.Ctx(), f, jobs.Page{Limit: 1})
		if err != nil {
			return nil, fmt.Errorf("counting jobs: %w", err)
		}
		counts[status] = list.Total
	}
	return counts, nil
}

func (h handlers) listFor(req *web.Request, f jobs.Filter, v *jobsPageData) error {
	list, err := req.Ledger().Jobs(req.Ctx(), f, jobs.Page{Limit: web.PageRows, Cursor: redact.Clip(v.Cursor, 500),
		Uncounted: true})
	if err != nil {
		return phrase.Errorf("listing jobs: %w", err)
	}
	down, err := h.down(req.Ctx())
	if err != nil {
		return err
	}
	v.Jobs = ops.Each(list.Items, func(r jobs.Record) ops.JobView {
		view := req.View().Job(r)
		if name := explain.HeldBy(r, down); name != "" && view.Error == "" {
			view.Error = req.Printer().Text("health.breaker", name)
		}
		return view
	})
	v.Silenced = len(f.Silenced)
	v.Next = web.NextPage("/admin/jobs", v.Filter.Query(), list.Next)
	return nil
}

// down are the dependencies that are out now.
func (h handlers) down(ctx context.Context) ([]explain.Breaker, error) {
	if h.Breakers == nil {
		return nil, nil
	}
	list, err := h.Breakers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing breakers: %w", err)
	}
	return list, nil
}

func bulkChoices(status string) []bulkChoice {
	switch status {
	case "queued":
		return []bulkChoice{{"run_now", "bulk.run_now", ""}, {"cancel", "bulk.cancel", "risk"}}
	case "failed":
		return []bulkChoice{{"retry", "bulk.retry", ""}, {"delete", "bulk.delete", "risk"}}
	}
	return nil
}

// chosenChoices are those for rows that a person ticked: each action takes those
// of them that it fits.
func chosenChoices(status string) []bulkChoice {
	waiting := []bulkChoice{{"run_now", "act.runnowchosen", ""}, {"cancel", "act.cancelchosen", "risk"}}
	failed := []bulkChoice{{"retry", "act.retrychosen", ""}, {"delete", "act.deletechosen", "risk"}}
	switch status {
	case "queued":
		return waiting
	case "failed":
		return failed
	case "":
		return append(failed, waiting...)
	}
	return nil
}

// bulkPage counts what a filter chooses, says what will happen, and after a
// yes does it.
func (h handlers) bulkPage(req *web.Request) error {
	form, err := req.FormParams()
	if err != nil {
		return web.Refuse(http.StatusBadRequest, "The form cannot be read.")
	}
	action, known := ops.ParseAction(req.FormValue("action"))
	if !known {
		return web.RefuseField(http.StatusUnprocessableEntity, "action", "The action is retry, delete, cancel or "+
			"run_now, not %q.", redact.Clip(req.FormValue("action"), 40))
	}
	view := ops.FilterOf(form)
	to := req.BackTo("/admin/jobs")
	if req.FormValue("chosen") != "" && len(view.IDs) == 0 {
		return req.BackUndone(to, "bulk.nothing") // and not: all of them
	}
	count, err := h.bulkCount(req, action, view)
	if err != nil {
		return err
	}
	if count == 0 {
		return req.BackUndone(to, "bulk.none")
	}
	if yes, err := req.Sure(req.Printer().Text("bulk.ask."+string(action), format.Number(count),
		describe(req.Printer(), view)), ""); !yes || err != nil {
		return err
	}
	answer, err := h.changed(req, action, BulkSelection{Filter: view, All: true})
	if err != nil {
		return err
	}
	if answer.Job != "" {
		return req.Back("/admin/jobs/"+answer.Job, "bulk.started", format.Number(answer.Count))
	}
	return req.Back(to, "bulk.done."+string(action), format.Number(answer.Changed))
}

func (h handlers) bulkCount(req *web.Request, action ops.Action, view ops.Filter) (int64, error) {
	answer, err := h.changed(req, action, BulkSelection{Filter: view, All: true, DryRun: true})
	return answer.Count, err
}

// describe says a filter in words, for questions.
func describe(lang locale.Printer, v ops.Filter) string {
	var parts []string
	add := func(key, value string) {
		if value != "" {
			parts = append(parts, lang.Text(key)+": "+redact.Clip(value, 120))
		}
	}
	add("job.type", strings.Join(v.Type, ", "))
	add("job.queue", strings.Join(v.Queue, ", "))
	add("job.worker", strings.Join(v.Worker, ", "))
	add("php.tags", strings.Join(v.Tag, ", "))
	add("jobs.text", v.Text)
	add("failed.cause", v.Cause)
	add("jobs.since", v.Since)
	add("jobs.until", v.Until)
	if len(v.IDs) > 0 {
		add("job.id", strings.Join(v.IDs, ", "))
	}
	if parts == nil {
		return lang.Text("bulk.everything")
	}
	return strings.Join(parts, " · ")
}
