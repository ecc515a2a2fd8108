package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/format"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// jobsPageData is the list of jobs with its filter.
type jobsPageData struct {
	Filter ops.Filter
	Status string
	Jobs   []ops.JobView
	// Counts are the jobs of each status under the rest of the filter; −1 where
	// counting would read the payloads of many jobs.
	Counts  map[string]int64
	Types   []string
	Queues  []string
	Periods []string
	Query   string // the filter as a query, without a cursor
	Next    string // the next page's address
	Cursor  string
	Bulk    []bulkChoice // with all that the filter chooses
	Chosen  []bulkChoice // with the rows that are ticked
	Problem string
}

// bulkChoice is a bulk action that fits the filter.
type bulkChoice struct{ Action, Key, Class string }

// PageRows is how many jobs a page shows.
const PageRows = 50

var (
	statusNames = []string{"queued", "processing", "completed", "failed", "cancelled"}
	periods     = []string{"1h", "24h", "168h", "720h"}
)

func (s *Server) jobsPage(c echo.Context) error {
	ctx := c.Request().Context()
	v := jobsPageData{Filter: written(c), Types: s.cfg.Registry.Types(), Periods: periods, Cursor: c.QueryParam("cursor")}
	v.Query = v.Filter.Query().Encode()
	if len(v.Filter.Status) == 1 {
		v.Status = v.Filter.Status[0]
	}
	stats, err := s.cachedStats(ctx)
	if err != nil {
		return fmt.Errorf("counting jobs: %w", err)
	}
	for _, q := range stats.Queues {
		v.Queues = append(v.Queues, q.Queue)
	}
	v.Bulk, v.Chosen = bulkChoices(v.Status), chosenChoices(v.Status)
	f, err := s.filter(c)
	if err == nil {
		if err = s.listFor(c, f, &v); err == nil {
			v.Counts, err = s.countTabs(ctx, f, v.Filter.Narrows(), stats)
		}
	}
	if p := s.problemOf(err); err != nil && p.Status < http.StatusInternalServerError {
		v.Problem = p.in(s.printer(c)) // shown beside the form, to be mended there
	} else if err != nil {
		return err
	}
	return s.showLive(c, "jobs", "jobs.title", LiveList, v)
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
func (s *Server) countTabs(ctx context.Context, f jobs.Filter, filtered bool, stats jobs.Stats) (map[string]int64, error) {
	if !filtered {
		return map[string]int64{string(jobs.StatusQueued): stats.Waiting(), string(jobs.StatusProcessing): stats.Processing, string(jobs.StatusCompleted): stats.Completed,
			string(jobs.StatusFailed): stats.Failed, string(jobs.StatusCancelled): stats.Cancelled}, nil
	}
	counts := map[string]int64{}
	for _, status := range statusNames {
		f.Statuses = []jobs.Status{jobs.Status(status)}
		list, err := s.cfg.Ledger.Jobs(ctx, f, jobs.Page{Limit: 1})
		if err != nil {
			return nil, fmt.Errorf("counting jobs: %w", err)
		}
		counts[status] = list.Total
	}
	return counts, nil
}

func (s *Server) listFor(c echo.Context, f jobs.Filter, v *jobsPageData) error {
	list, err := s.cfg.Ledger.Jobs(c.Request().Context(), f, jobs.Page{Limit: PageRows, Cursor: clip(v.Cursor, 500), Uncounted: true})
	if err != nil {
		return fmt.Errorf("listing jobs: %w", err)
	}
	down, err := s.down(c.Request().Context())
	if err != nil {
		return err
	}
	v.Jobs = ops.Each(list.Items, func(r jobs.Record) ops.JobView {
		view := s.viewer(c).Job(r)
		if name := explain.HeldBy(r, down); name != "" && view.Error == "" {
			view.Error = s.printer(c).Text("verdict.breaker", name)
		}
		return view
	})
	v.Next = NextPage("/admin/jobs", v.Filter.Query(), list.Next)
	return nil
}

// down are the dependencies that are out now.
func (s *Server) down(ctx context.Context) ([]explain.Breaker, error) {
	if s.cfg.Breakers == nil {
		return nil, nil
	}
	list, err := s.cfg.Breakers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing breakers: %w", err)
	}
	return list, nil
}

// NextPage is the address of a list's next part, "" at its end.
func NextPage(path string, query url.Values, cursor string) string {
	if cursor == "" {
		return ""
	}
	query.Set("cursor", cursor)
	return path + "?" + query.Encode()
}

func bulkChoices(status string) []bulkChoice {
	switch status {
	case "queued":
		return []bulkChoice{{"run_now", "bulk.run_now", ""}, {"cancel", "bulk.cancel", "danger"}}
	case "failed":
		return []bulkChoice{{"retry", "bulk.retry", ""}, {"delete", "bulk.delete", "danger"}}
	}
	return nil
}

// chosenChoices are those for rows that a person ticked: each action takes those
// of them that it fits.
func chosenChoices(status string) []bulkChoice {
	waiting := []bulkChoice{{"run_now", "act.runnowchosen", ""}, {"cancel", "act.cancelchosen", "danger"}}
	failed := []bulkChoice{{"retry", "act.retrychosen", ""}, {"delete", "act.deletechosen", "danger"}}
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
func (s *Server) bulkPage(c echo.Context) error {
	form, err := c.FormParams()
	if err != nil {
		return httpError(http.StatusBadRequest, "The form cannot be read.")
	}
	action, known := ops.ParseAction(c.FormValue("action"))
	if !known {
		return fieldError(http.StatusUnprocessableEntity, "action", "The action is retry, delete, cancel or run_now, not %q.", clip(c.FormValue("action"), 40))
	}
	view := ops.FilterOf(form)
	to := local(c.FormValue("back"), "/admin/jobs")
	if c.FormValue("chosen") != "" && len(view.IDs) == 0 {
		return s.backUndone(c, to, "bulk.nothing") // and not: all of them
	}
	count, err := s.bulkCount(c, action, view)
	if err != nil {
		return err
	}
	if count == 0 {
		return s.backUndone(c, to, "bulk.none")
	}
	if yes, err := s.sure(c, s.printer(c).Text("bulk.ask."+string(action), format.Number(count), describe(s.printer(c), view)), ""); !yes || err != nil {
		return err
	}
	answer, err := s.changed(c, action, BulkSelection{Filter: view, All: true})
	if err != nil {
		return err
	}
	if answer.Job != "" {
		return s.back(c, "/admin/jobs/"+answer.Job, "bulk.started", format.Number(answer.Count))
	}
	return s.back(c, to, "bulk.done."+string(action), format.Number(answer.Changed))
}

func (s *Server) bulkCount(c echo.Context, action ops.Action, view ops.Filter) (int64, error) {
	answer, err := s.changed(c, action, BulkSelection{Filter: view, All: true, DryRun: true})
	return answer.Count, err
}

// describe says a filter in words, for questions.
func describe(lang locale.Printer, v ops.Filter) string {
	var parts []string
	add := func(key, value string) {
		if value != "" {
			parts = append(parts, lang.Text(key)+": "+clip(value, 120))
		}
	}
	add("job.type", strings.Join(v.Type, ", "))
	add("job.queue", strings.Join(v.Queue, ", "))
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
