package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// BulkSelection chooses jobs: by ids, or by any other field of a filter. An
// empty one chooses nothing unless all is set.
type BulkSelection struct {
	ops.Filter
	All bool `json:"all,omitempty"`
	// DryRun only counts.
	DryRun bool `json:"dry_run,omitempty"`
}

// BulkRequest is a selection and what to do with it.
type BulkRequest struct {
	BulkSelection
	Action string `json:"action"` // retry, delete, cancel, run_now
}

// BulkPayload is what the job of a large change needs.
type BulkPayload struct {
	Action ops.Action `json:"action"`
	Filter ops.Filter `json:"filter"`
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

// bulkInline is how many jobs a request changes itself before it leaves the work
// to a job.
const bulkInline = 1000

// RegisterBulk lets a worker do large changes, each ordered once.
func RegisterBulk(r *jobs.Registry, book jobs.OrderBook, c ops.Mutator) {
	jobs.HandleInternal(r, jobs.Internal{Book: book, Maker: jobs.Service}, Bulk, func(ctx context.Context, _ jobs.Job, p BulkPayload) error {
		f, err := p.Filter.Parse(p.At)
		if err != nil {
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

// change does the action with what somebody may change of a filter, until limit
// jobs are changed, and reports how far it is.
func change(ctx context.Context, c ops.Mutator, action ops.Action, chosen runnableJobs, limit int64) (int64, error) {
	if chosen.None {
		return 0, nil
	}
	return ops.Actions{Change: c}.Many(ctx, action, chosen.Filter, limit, func(done int64) { jobs.Report(ctx, done, limit, string(action)) })
}

func (s *Server) bulk(c echo.Context) error {
	var r BulkRequest
	if err := body(c, &r); err != nil {
		return err
	}
	action, known := ops.ParseAction(r.Action)
	if !known {
		return fieldError(http.StatusUnprocessableEntity, "action", "The action is retry, delete, cancel or run_now, not %q.", clip(r.Action, 40))
	}
	return s.changeMany(c, action, r.BulkSelection)
}

func (s *Server) retryMany(c echo.Context) error { return s.selected(c, ops.Retry) }

func (s *Server) deleteMany(c echo.Context) error { return s.selected(c, ops.Delete) }

func (s *Server) selected(c echo.Context, action ops.Action) error {
	var selection BulkSelection
	if err := body(c, &selection); err != nil {
		return err
	}
	return s.changeMany(c, action, selection)
}

func (s *Server) changeMany(c echo.Context, action ops.Action, selection BulkSelection) error {
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
func (s *Server) changed(c echo.Context, action ops.Action, selection BulkSelection) (ops.Changed, error) {
	f, err := selection.Parse(s.cfg.Now())
	if err != nil {
		return ops.Changed{}, err
	}
	if selection.Empty() && !selection.All {
		return ops.Changed{}, httpError(http.StatusUnprocessableEntity, `The selection is empty. To choose all jobs say so: {"all": true}.`)
	}
	f, none := ops.Selected(action, f)
	if none {
		return ops.Changed{DryRun: selection.DryRun}, nil
	}
	chosen := runnableJobs{Filter: f}
	if action.Runs() {
		if chosen, err = s.runnable(c, f); err != nil {
			return ops.Changed{}, err
		}
	}
	ctx := c.Request().Context()
	count, leftOut, err := s.countChosen(ctx, f, chosen)
	if err != nil {
		return ops.Changed{}, fmt.Errorf("counting the jobs to %s: %w", action, err)
	}
	answer := ops.Changed{Count: count, LeftOut: leftOut, DryRun: selection.DryRun}
	setAuditTarget(c, string(action), fmt.Sprintf("%d jobs %+v", count, selection.Filter))
	if selection.DryRun {
		return answer, nil
	}
	if _, registered := s.cfg.Registry.Lookup(Bulk.Name); registered && count > bulkInline && s.cfg.Doer == nil {
		receipts, err := s.cfg.Enqueuer.Enqueue(ctx, Bulk.New(BulkPayload{Action: action, Filter: selection.Filter, At: s.cfg.Now(), By: who(c).Name, Count: count,
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
