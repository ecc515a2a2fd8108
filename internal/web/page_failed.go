package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// failedPageData is the failed jobs by cause.
type failedPageData struct {
	Filter ops.Filter
	Groups []ops.FailureGroupView
	Total  int64
	Types  []string
	Query  string
	// Canary is the one job of a cause that is tried before the rest.
	Canary  *ops.JobView
	Cause   string
	Rest    int64 // failed jobs of the canary's cause
	Grouped bool  // the history can group
}

func (s *Server) failedPage(c echo.Context) error {
	f, err := s.filter(c)
	if err != nil {
		return err
	}
	f.Statuses = []jobs.Status{jobs.StatusFailed}
	ctx := c.Request().Context()
	v := failedPageData{Filter: written(c), Types: s.cfg.Registry.Types(), Cause: clip(c.QueryParam("cause"), 191)}
	v.Query = v.Filter.Query().Encode()
	stats, err := s.cachedStats(ctx)
	if err != nil {
		return fmt.Errorf("counting failed jobs: %w", err)
	}
	v.Total = stats.Failed
	canary, live := s.tracked(c)
	if v.Canary = canary; canary != nil && v.Cause != "" {
		if v.Rest, err = s.cfg.Ledger.Count(ctx, jobs.Filter{Statuses: f.Statuses, Cause: v.Cause}); err != nil {
			return fmt.Errorf("counting failed jobs: %w", err)
		}
		f.Cause = ""
	}
	if v.Grouped = s.cfg.History != nil; v.Grouped {
		groups, ready, err := s.groupsKept(ctx, f)
		if err != nil {
			return fmt.Errorf("grouping failed jobs: %w", err)
		}
		v.Groups = ops.Each(groups, s.viewer(c).FailureGroup)
		if v.Filter.Narrows() {
			v.Total = 0
			for _, g := range groups {
				v.Total += g.Count
			}
		}
		return s.showSoon(c, "failed", "failed.title", firstOf(live, LiveList), ready, v)
	}
	return s.showLive(c, "failed", "failed.title", firstOf(live, LiveList), v)
}

// canary retries one failed job of a cause, to see whether the cause is gone.
func (s *Server) canary(c echo.Context) error {
	cause := c.FormValue("cause")
	if cause == "" || len(cause) > 191 {
		return fieldError(http.StatusUnprocessableEntity, "cause", "Name the cause whose job is to be tried.")
	}
	ctx := c.Request().Context()
	list, err := s.cfg.Ledger.Jobs(ctx, jobs.Filter{Statuses: []jobs.Status{jobs.StatusFailed}, Cause: cause}, jobs.Page{Limit: 1, Uncounted: true})
	if err != nil {
		return fmt.Errorf("looking for a failed job: %w", err)
	}
	if len(list.Items) == 0 {
		return s.backUndone(c, "/admin/failed", "bulk.none")
	}
	r := list.Items[0]
	setAuditTarget(c, ops.IDOf(r), "as a canary")
	if err := s.mayRunAgain(c, r); err != nil {
		return err
	}
	if err := s.actions.One(ctx, ops.Retry, r); err != nil {
		return err
	}
	q := url.Values{"job": {ops.IDOf(r)}, "cause": {cause}}
	return s.back(c, "/admin/failed?"+q.Encode(), "failed.canary.done")
}

// exportLimit bounds one export; who has more narrows the filter.
const exportLimit = 200_000

// exportFailed writes failed jobs as JSON, one a line, secrets masked.
func (s *Server) exportFailed(c echo.Context) error {
	f, err := s.filter(c)
	if err != nil {
		return err
	}
	f.Statuses = []jobs.Status{jobs.StatusFailed}
	ctx := c.Request().Context()
	list, err := s.cfg.Ledger.Jobs(ctx, f, jobs.Page{Limit: s.cfg.PageLimit, Uncounted: true})
	if err != nil {
		return fmt.Errorf("listing failed jobs: %w", err)
	}
	s.auditEntry(c, "failed.export", "")
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "application/x-ndjson")
	h.Set(echo.HeaderContentDisposition, `attachment; filename="failed.jsonl"`)
	c.Response().WriteHeader(http.StatusOK)
	e := json.NewEncoder(c.Response())
	for written := 0; ; {
		for _, r := range list.Items {
			if err := e.Encode(s.viewer(c).Job(r)); err != nil {
				return nil // the reader left
			}
		}
		if written += len(list.Items); list.Next == "" || written >= exportLimit {
			return nil
		}
		if list, err = s.cfg.Ledger.Jobs(ctx, f, jobs.Page{Limit: s.cfg.PageLimit, Cursor: list.Next, Uncounted: true}); err != nil {
			s.cfg.Log.Error("export of failed jobs aborted", "event", "web.export_failed", "error", err)
			panic(http.ErrAbortHandler) // a whole file must not be taken for it
		}
	}
}
