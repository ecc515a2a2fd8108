package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
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
	state jobs.State
	do    func(Changer) func(context.Context, jobs.Filter, int) (int64, error)
}{
	"retry":  {jobs.StateFailed, func(c Changer) func(context.Context, jobs.Filter, int) (int64, error) { return c.Revive }},
	"forget": {jobs.StateFailed, func(c Changer) func(context.Context, jobs.Filter, int) (int64, error) { return c.Forget }},
	"cancel": {jobs.StateQueued, func(c Changer) func(context.Context, jobs.Filter, int) (int64, error) { return c.Cancel }},
	"hasten": {jobs.StateQueued, func(c Changer) func(context.Context, jobs.Filter, int) (int64, error) { return c.Hasten }},
}

// RegisterBulk lets a worker do large changes.
func RegisterBulk(r *jobs.Registry, l Ledger, c Changer) {
	jobs.Handle(r, Bulk, func(ctx context.Context, _ jobs.Job, p BulkPayload) error {
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
		changed, err := change(ctx, c, p.Action, f, p.Count)
		if err != nil {
			return err
		}
		return jobs.SetResult(ctx, Changed{changed})
	})
}

// change goes through what the filter chooses, bulkStep at a time, until limit
// jobs are changed. The store takes the oldest first, so what fails anew comes last.
func change(ctx context.Context, c Changer, action string, f jobs.Filter, limit int64) (int64, error) {
	a, known := bulkActions[action]
	if !known {
		return 0, jobs.Permanent(fmt.Errorf("no bulk action is named %q", action))
	}
	f.States = []jobs.State{a.state}
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
		return BulkAnswer{}, badField(http.StatusUnprocessableEntity, "action", "The action is retry, forget, cancel or hasten, not %q.", clip(action, 40))
	}
	f, err := selection.filter()
	if err == nil {
		err = s.period(&f, selection.Since, selection.Until)
	}
	if err != nil {
		return BulkAnswer{}, err
	}
	if empty(selection.FilterView) && !selection.All {
		return BulkAnswer{}, refuse(http.StatusUnprocessableEntity, `The selection is empty. To choose all jobs say so: {"all": true}.`)
	}
	f.States = []jobs.State{a.state}
	ctx := c.Request().Context()
	count, err := s.cfg.Ledger.Count(ctx, f)
	if err != nil {
		return BulkAnswer{}, fmt.Errorf("counting the jobs to %s: %w", action, err)
	}
	answer := BulkAnswer{Count: count, DryRun: selection.DryRun}
	about(c, action, fmt.Sprintf("%d jobs %+v", count, selection.FilterView))
	if selection.DryRun {
		return answer, nil
	}
	if _, registered := s.cfg.Registry.Lookup(Bulk.Name); registered && count > bulkInline && s.cfg.Doer == nil {
		receipts, err := s.cfg.Enqueuer.Enqueue(ctx, Bulk.Of(BulkPayload{Action: action, Filter: selection.FilterView, At: s.cfg.Now(), By: who(c).Name, Count: count}))
		if err != nil {
			return answer, fmt.Errorf("enqueuing the change: %w", err)
		}
		answer.Job = receipts[0].UUID
		return answer, nil
	}
	answer.Changed, err = change(ctx, s.cfg.Changer, action, f, count)
	return answer, err
}

func empty(v FilterView) bool {
	return len(v.IDs)+len(v.Status)+len(v.Type)+len(v.Queue) == 0 && v.Text+v.Cause+v.Since+v.Until == ""
}
