package jobs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
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

// Summary implements jobs.Summarizer.
func (r BulkResult) Summary() (s phrase.Summary) {
	s.Say("Changed %s {job|jobs}.", r.Changed)
	phrase.Count(&s, r.LeftOut, "%s {job was|jobs were} left out: the payload may not run again.")
	return s
}

// Bulk changes many jobs, step by step, and reports its progress.
var Bulk = jobs.Kind[BulkPayload]{Name: "jobs.bulk", Policy: jobs.Policy{Timeout: 4 * time.Hour, Limit: 1}}

// bulkInline is how many jobs a request changes itself before it leaves the work
// to a job.
const bulkInline = 1000

// RegisterBulk lets a worker do large changes, each ordered once.
func RegisterBulk(r *jobs.Registry, book jobs.OrderBook, c ops.Mutator) {
	jobs.HandleInternal(r, jobs.Internal{Book: book, Maker: jobs.Service}, Bulk,
		func(ctx context.Context, _ jobs.Job, p BulkPayload) error {
			f, err := p.Filter.Parse(p.At)
			if err != nil {
				return jobs.Permanent(err)
			}
			chosen := web.Narrow(f, p.Only, p.Except)
			allow, refused := web.AllowRows(r, p.Admin)
			chosen.Allow = allow
			changed, err := change(ctx, c, p.Action, chosen, p.Count)
			if err != nil {
				return err
			}
			return errors.Join(jobs.UseOrder(ctx), jobs.SetResult(ctx, BulkResult{changed, int64(len(refused))}))
		})
	jobs.Results[BulkResult](r, Bulk)
}

// change does the action with what somebody may change of a filter, until limit
// jobs are changed, and reports how far it is.
func change(ctx context.Context, c ops.Mutator, action ops.Action, chosen web.RunnableJobs, limit int64) (int64,
	error) {
	if chosen.None {
		return 0, nil
	}
	return ops.Actions{Change: c}.Many(ctx, action, chosen.Filter, limit, func(done int64) {
		jobs.Report(ctx, done, limit, string(action))
	})
}

func (h handlers) bulk(req *web.Request) error {
	var r BulkRequest
	if err := req.Decode(&r); err != nil {
		return err
	}
	action, known := ops.ParseAction(r.Action)
	if !known {
		return web.RefuseField(http.StatusUnprocessableEntity, "action", "The action is retry, delete, cancel or "+
			"run_now, not %q.", redact.Clip(r.Action, 40))
	}
	return h.changeMany(req, action, r.BulkSelection)
}

func (h handlers) retryMany(req *web.Request) error { return h.selected(req, ops.Retry) }

func (h handlers) deleteMany(req *web.Request) error { return h.selected(req, ops.Delete) }

func (h handlers) selected(req *web.Request, action ops.Action) error {
	var selection BulkSelection
	if err := req.Decode(&selection); err != nil {
		return err
	}
	return h.changeMany(req, action, selection)
}

func (h handlers) changeMany(req *web.Request, action ops.Action, selection BulkSelection) error {
	answer, err := h.changed(req, action, selection)
	if err != nil {
		return err
	}
	if answer.Job != "" {
		return req.JSON(http.StatusAccepted, answer)
	}
	return req.JSON(http.StatusOK, answer)
}

// changed does an action with all that a selection chooses, or leaves it to a
// job where that is much.
func (h handlers) changed(req *web.Request, action ops.Action, selection BulkSelection) (ops.Changed, error) {
	f, err := selection.Parse(req.Now())
	if err != nil {
		return ops.Changed{}, err
	}
	if selection.Empty() && !selection.All {
		return ops.Changed{}, web.Refuse(http.StatusUnprocessableEntity,
			`The selection is empty. To choose all jobs say so: {"all": true}.`)
	}
	f, none := ops.Selected(action, f)
	if none {
		return ops.Changed{DryRun: selection.DryRun}, nil
	}
	chosen := web.RunnableJobs{Filter: f}
	if action.Runs() {
		if chosen, err = req.Runnable(f); err != nil {
			return ops.Changed{}, err
		}
	}
	ctx := req.Ctx()
	count, leftOut, err := h.countChosen(req, f, chosen)
	if err != nil {
		return ops.Changed{}, fmt.Errorf("counting the jobs to %s: %w", action, err)
	}
	answer := ops.Changed{Count: count, LeftOut: leftOut, DryRun: selection.DryRun}
	req.Audit(string(action), fmt.Sprintf("%d jobs %+v", count, selection.Filter))
	if selection.DryRun {
		return answer, nil
	}
	if _, registered := req.Registry().Lookup(Bulk.Name); registered && count > bulkInline && h.Inline == nil {
		receipts,
			err := req.Enqueuer().Enqueue(ctx,
			Bulk.New(BulkPayload{Action: action, Filter: selection.Filter, At: req.Now(), By: req.Caller().Name,
				Count: count,
				Only:  chosen.Only, Except: chosen.Except, Admin: req.Caller().Scopes.Has(access.Admin)}))
		if err != nil {
			return answer, fmt.Errorf("enqueuing the change: %w", err)
		}
		answer.Job = receipts[0].UUID
		return answer, nil
	}
	allow, refused := web.AllowRows(req.Registry(), req.Caller().Scopes.Has(access.Admin))
	chosen.Allow = allow
	answer.Changed, err = change(ctx, h.Mutator, action, chosen, count)
	answer.Count, answer.LeftOut = answer.Count-int64(len(refused)), answer.LeftOut+int64(len(refused))
	return answer, err
}

// countChosen counts the jobs that are to be changed, and those of the whole
// selection that are left out.
func (h handlers) countChosen(req *web.Request, whole jobs.Filter, chosen web.RunnableJobs) (count, leftOut int64,
	err error) {
	if !chosen.None {
		if count, err = req.Ledger().Count(req.Ctx(), chosen.Filter); err != nil || chosen.Whole() {
			return count, 0, err
		}
	}
	all, err := req.Ledger().Count(req.Ctx(), whole)
	return count, max(all-count, 0), err
}

// clearQueue cancels what waits in a queue.
func (h handlers) clearQueue(req *web.Request) error {
	name, err := req.NameParam("name")
	if err != nil {
		return err
	}
	dry := req.QueryParam("dry_run")
	return h.changeMany(req, ops.Cancel, BulkSelection{Filter: ops.Filter{Queue: []string{name}}, DryRun: dry == "1" ||
		dry == "true"})
}
