package jobs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// failedPageData is the failed jobs by cause.
type failedPageData struct {
	Bar    filterBar
	Groups []ops.FailureGroupView
	Total  int64
	Query  string
	// Canary is the one job of a cause that is tried before the rest.
	Canary  *web.Tracked
	Cause   string
	Rest    int64 // failed jobs of the canary's cause
	Grouped bool  // the history can group
}

func (h handlers) failedPage(req *web.Request) error {
	ctx := req.Ctx()
	v := failedPageData{Cause: redact.Clip(req.QueryParam("cause"), 191)}
	var err error
	if v.Bar, err = h.bar(req, "failed", "type", "queue", "worker", "tag", "since", "until"); err != nil {
		return err
	}
	v.Query = v.Bar.Query
	f, err := req.Filter()
	if err != nil {
		if err := v.Bar.shown(req, err); err != nil {
			return err
		}
		return req.Show(web.PageView{Name: "failed", Live: web.LiveList, Data: v, Ready: true})
	}
	f.Statuses = []jobs.Status{jobs.StatusFailed}
	stats, err := req.Stats()
	if err != nil {
		return fmt.Errorf("counting failed jobs: %w", err)
	}
	v.Total = stats.Failed
	tracked, live := req.RunActions()
	if v.Canary = tracked.Tracked; v.Canary != nil && v.Cause != "" {
		if v.Rest, err = req.Ledger().Count(ctx, jobs.Filter{Statuses: f.Statuses, Cause: v.Cause}); err != nil {
			return fmt.Errorf("counting failed jobs: %w", err)
		}
		f.Cause = ""
	}
	if v.Grouped = req.History() != nil; v.Grouped {
		groups, ready, err := req.FailureGroups(f)
		if err != nil {
			return fmt.Errorf("grouping failed jobs: %w", err)
		}
		v.Groups = ops.Each(groups, req.View().FailureGroup)
		v.Bar.alsoTypes(ops.Each(v.Groups, func(g ops.FailureGroupView) string { return g.Type }))
		if v.Bar.Filter.Narrows() {
			v.Total = 0
			for _, g := range groups {
				v.Total += g.Count
			}
		}
		return req.Show(web.PageView{Name: "failed", Live: cmp.Or(live, web.LiveList), Data: v, Ready: ready})
	}
	return req.Show(web.PageView{Name: "failed", Live: cmp.Or(live, web.LiveList), Data: v, Ready: true})
}

// canary retries one failed job of a cause, to see whether the cause is gone.
func (h handlers) canary(req *web.Request) error {
	cause := req.FormValue("cause")
	if cause == "" || len(cause) > 191 {
		return web.RefuseField(http.StatusUnprocessableEntity, "cause", "Name the cause whose job is to be tried.")
	}
	ctx := req.Ctx()
	list, err := req.Ledger().Jobs(ctx, jobs.Filter{Statuses: []jobs.Status{jobs.StatusFailed}, Cause: cause},
		jobs.Page{Limit: 1, Uncounted: true})
	if err != nil {
		return fmt.Errorf("looking for a failed job: %w", err)
	}
	if len(list.Items) == 0 {
		return req.BackUndone("/admin/failed", "bulk.none")
	}
	r := list.Items[0]
	req.Audit(ops.IDOf(r), "as a canary")
	if err := req.MayRunAgain(r); err != nil {
		return err
	}
	if err := h.actions(req).One(ctx, ops.Retry, r); err != nil {
		return err
	}
	q := url.Values{"job": {ops.IDOf(r)}, "cause": {cause}}
	return req.Back("/admin/failed?"+q.Encode(), "failed.canary.done")
}

// exportLimit bounds one export; who has more narrows the filter.
const exportLimit = 200_000

// exportFailed writes failed jobs as JSON, one a line, secrets masked.
func (h handlers) exportFailed(req *web.Request) error {
	f, err := req.Filter()
	if err != nil {
		return err
	}
	f.Statuses = []jobs.Status{jobs.StatusFailed}
	ctx := req.Ctx()
	list, err := req.Ledger().Jobs(ctx, f, jobs.Page{Limit: req.PageLimit(), Uncounted: true})
	if err != nil {
		return fmt.Errorf("listing failed jobs: %w", err)
	}
	req.AuditNow("failed.export", "")
	header := req.Response().Header()
	header.Set(echo.HeaderContentType, "application/x-ndjson")
	header.Set(echo.HeaderContentDisposition, `attachment; filename="failed.jsonl"`)
	req.Response().WriteHeader(http.StatusOK)
	e := json.NewEncoder(req.Response())
	for written := 0; ; {
		for _, r := range list.Items {
			if err := e.Encode(req.View().Job(r)); err != nil {
				return nil // the reader left
			}
		}
		if written += len(list.Items); list.Next == "" || written >= exportLimit {
			return nil
		}
		if list, err = req.Ledger().Jobs(ctx, f, jobs.Page{Limit: req.PageLimit(), Cursor: list.Next,
			Uncounted: true}); err != nil {
			req.Log().Error("export of failed jobs aborted", "event", "web.export_failed", "error", err)
			panic(http.ErrAbortHandler) // a whole file must not be taken for it
		}
	}
}
