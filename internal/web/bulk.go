package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// BulkSelection chooses jobs: by ids, or by any other field of a filter. An
// empty one chooses nothing unless all is set.
type BulkSelection struct {
	FilterView
	All bool `json:"all,omitempty"`
	// DryRun only counts.
	DryRun bool `json:"dry_run,omitempty"`
}

// BulkRequest is a selection and what to do with it.
type BulkRequest struct {
	BulkSelection
	Action string `json:"action"` // retry, forget, cancel, hasten
}

// BulkAnswer says what was, or would be, changed.
type BulkAnswer struct {
	Count   int64 `json:"count"` // jobs that the selection chose when it was counted
	Changed int64 `json:"changed"`
	// LeftOut is how many more it chose that the caller may not make run. A dry run
	// does not read their payloads: it counts those of types only.
	LeftOut int64 `json:"left_out,omitempty"`
	DryRun  bool  `json:"dry_run"`
	// Job is the id of the job that does the work, where there is much of it.
	Job string `json:"job,omitempty"`
}

// BulkPayload is what the job of a large change needs.
type BulkPayload struct {
	Action string     `json:"action"`
	Filter FilterView `json:"filter"`
	// At is when it was asked for: lengths of time in the filter count from it.
	At time.Time `json:"at"`
	By string    `json:"by"`
	// Count is how many jobs were there then, and at most that many are changed:
	// one that is retried and fails again is not retried for ever.
	Count int64 `json:"count"`
	// Only and Except are the types that the one who asked may, or may not, make
	// run; both empty is any.
	Only   []string `json:"only,omitempty"`
	Except []string `json:"except,omitempty"`
	// Admin says that an administrator asked, who may use every field of a payload.
	Admin bool `json:"admin,omitempty"`
}

// BulkResult says what the job of a large change did.
type BulkResult struct {
	Changed int64 `json:"changed"`
	// LeftOut is how many jobs have a payload that may not run again.
	LeftOut int64 `json:"left_out,omitempty"`
}

// Bulk changes many jobs, step by step, and reports its progress.
var Bulk = jobs.Kind[BulkPayload]{Name: "jobs.bulk", Policy: jobs.Policy{Timeout: 4 * time.Hour, Limit: 1}}

// bulkStep is how many jobs one step changes, inline how many a request does
// itself before it leaves the work to a job.
const (
	bulkStep   = 500
	bulkInline = 1000
)

// bulkActions are the states that each action works on, and its method.
var bulkActions = map[string]struct {
	status jobs.Status
	do     func(JobMutator) func(context.Context, jobs.Filter, int) (int64, error)
	runs   bool // it makes jobs run
}{
	"retry":  {jobs.StatusFailed, func(c JobMutator) func(context.Context, jobs.Filter, int) (int64, error) { return c.Retry }, true},
	"forget": {jobs.StatusFailed, func(c JobMutator) func(context.Context, jobs.Filter, int) (int64, error) { return c.Delete }, false},
	"cancel": {jobs.StatusQueued, func(c JobMutator) func(context.Context, jobs.Filter, int) (int64, error) { return c.Cancel }, false},
	"hasten": {jobs.StatusQueued, func(c JobMutator) func(context.Context, jobs.Filter, int) (int64, error) { return c.RunNow }, true},
}

// RegisterBulk lets a worker do large changes, each ordered once.
func RegisterBulk(r *jobs.Registry, book jobs.OrderBook, c JobMutator) {
	jobs.HandleInternal(r, jobs.Internal{Book: book, Maker: jobs.Service}, Bulk, func(ctx context.Context, _ jobs.Job, p BulkPayload) error {
		f, err := p.Filter.filter()
		if err != nil {
			return jobs.Permanent(err)
		}
		if f.Since, err = moment(p.Filter.Since, "since", p.At); err != nil {
			return jobs.Permanent(err)
		}
		if f.Until, err = moment(p.Filter.Until, "until", p.At); err != nil {
			return jobs.Permanent(err)
		}
		chosen := narrow(f, p.Only, p.Except)
		allow, refused := allowRows(r, p.Admin)
		chosen.Allow = allow
		changed, err := change(ctx, c, p.Action, chosen, p.Count)
		if err != nil {
			return err
		}
		return errors.Join(jobs.UseOrder(ctx), jobs.SetResult(ctx, BulkResult{changed, int64(len(refused))}))
	})
}

// change goes through what the filter chooses, bulkStep at a time, until limit
// jobs are changed. The store takes the oldest first, so what fails anew comes last.
func change(ctx context.Context, c JobMutator, action string, chosen runnableJobs, limit int64) (int64, error) {
	a, known := bulkActions[action]
	if !known {
		return 0, jobs.Permanent(fmt.Errorf("no bulk action is named %q", action))
	}
	if chosen.None {
		return 0, nil
	}
	f := chosen.Filter
	f.Statuses = []jobs.Status{a.status}
	var total int64
	for total < limit && ctx.Err() == nil {
		n, err := a.do(c)(ctx, f, int(min(limit-total, bulkStep)))
		if err != nil {
			return total, fmt.Errorf("%s after %d jobs: %w", action, total, err)
		}
		if n == 0 { // others were quicker
			break
		}
		total += n
		jobs.Report(ctx, total, limit, action)
	}
	return total, ctx.Err()
}

func (s *Server) bulk(c echo.Context) error {
	var r BulkRequest
	if err := body(c, &r); err != nil {
		return err
	}
	return s.changeMany(c, r.Action, r.BulkSelection)
}

func (s *Server) retryMany(c echo.Context) error { return s.selected(c, "retry") }

func (s *Server) forgetMany(c echo.Context) error { return s.selected(c, "forget") }

func (s *Server) selected(c echo.Context, action string) error {
	var selection BulkSelection
	if err := body(c, &selection); err != nil {
		return err
	}
	return s.changeMany(c, action, selection)
}

func (s *Server) changeMany(c echo.Context, action string, selection BulkSelection) error {
	answer, err := s.changed(c, action, selection)
	if err != nil {
		return err
	}
	if answer.Job != "" {
		return c.JSON(http.StatusAccepted, answer)
	}
	return c.JSON(http.StatusOK, answer)
}

// changed does an action with all that a selection chooses, or leaves it to a
// job where that is much.
func (s *Server) changed(c echo.Context, action string, selection BulkSelection) (BulkAnswer, error) {
	a, known := bulkActions[action]
	if !known {
		return BulkAnswer{}, fieldError(http.StatusUnprocessableEntity, "action", "The action is retry, forget, cancel or hasten, not %q.", clip(action, 40))
	}
	f, err := selection.filter()
	if err == nil {
		err = s.period(&f, selection.Since, selection.Until)
	}
	if err != nil {
		return BulkAnswer{}, err
	}
	if empty(selection.FilterView) && !selection.All {
		return BulkAnswer{}, httpError(http.StatusUnprocessableEntity, `The selection is empty. To choose all jobs say so: {"all": true}.`)
	}
	f.Statuses = []jobs.Status{a.status}
	chosen := runnableJobs{Filter: f}
	if a.runs {
		if chosen, err = s.runnable(c, f); err != nil {
			return BulkAnswer{}, err
		}
	}
	ctx := c.Request().Context()
	count, leftOut, err := s.countChosen(ctx, f, chosen)
	if err != nil {
		return BulkAnswer{}, fmt.Errorf("counting the jobs to %s: %w", action, err)
	}
	answer := BulkAnswer{Count: count, LeftOut: leftOut, DryRun: selection.DryRun}
	setAuditTarget(c, action, fmt.Sprintf("%d jobs %+v", count, selection.FilterView))
	if selection.DryRun {
		return answer, nil
	}
	if _, registered := s.cfg.Registry.Lookup(Bulk.Name); registered && count > bulkInline && s.cfg.Doer == nil {
		receipts, err := s.cfg.Enqueuer.Enqueue(ctx, Bulk.New(BulkPayload{Action: action, Filter: selection.FilterView, At: s.cfg.Now(), By: who(c).Name, Count: count,
			Only: chosen.Only, Except: chosen.Except, Admin: who(c).Scopes.Has(access.Admin)}))
		if err != nil {
			return answer, fmt.Errorf("enqueuing the change: %w", err)
		}
		answer.Job = receipts[0].UUID
		return answer, nil
	}
	allow, refused := allowRows(s.cfg.Registry, who(c).Scopes.Has(access.Admin))
	chosen.Allow = allow
	answer.Changed, err = change(ctx, s.cfg.Changer, action, chosen, count)
	answer.Count, answer.LeftOut = answer.Count-int64(len(refused)), answer.LeftOut+int64(len(refused))
	return answer, err
}

// countChosen counts the jobs that are to be changed, and those of the whole
// selection that are left out.
func (s *Server) countChosen(ctx context.Context, whole jobs.Filter, chosen runnableJobs) (count, leftOut int64, err error) {
	if !chosen.None {
		if count, err = s.cfg.Ledger.Count(ctx, chosen.Filter); err != nil || chosen.Whole() {
			return count, 0, err
		}
	}
	all, err := s.cfg.Ledger.Count(ctx, whole)
	return count, max(all-count, 0), err
}

func empty(v FilterView) bool {
	return len(v.IDs)+len(v.Status)+len(v.Type)+len(v.Queue) == 0 && v.Text+v.Cause+v.Since+v.Until == ""
}
