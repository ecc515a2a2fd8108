package jobs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// once enqueues under the request's Idempotency-Key, where it has one.
func (h handlers) once(req *web.Request, raw []byte, n jobs.Spec) (int, ops.Enqueued, error) {
	ctx, key, gate := req.Ctx(), req.Request().Header.Get("Idempotency-Key"), req.Gate().Store
	if key == "" {
		return h.put(req, n)
	}
	if len(key) > 255 {
		return 0, ops.Enqueued{}, web.Refuse(http.StatusBadRequest, "The Idempotency-Key may have 255 bytes.")
	}
	proposal := cmp.Or(n.UUID, uuid.NewString())
	p := req.Caller()
	reserved, err := gate.Reserve(ctx, p.Via+" "+p.Name, key, req.Path()+"\n"+string(raw), proposal)
	if err != nil {
		return 0, ops.Enqueued{}, err
	}
	if reserved.Answer != nil {
		var answer ops.Enqueued
		if err := json.Unmarshal(reserved.Answer, &answer); err != nil {
			return 0, answer, fmt.Errorf("reading the kept answer: %w", err)
		}
		req.Audit(answer.ID, answer.Type)
		answer.Existing = true
		return http.StatusOK, answer, nil
	}
	n.UUID = reserved.UUID
	status, answer, err := h.putOnce(req, n, reserved)
	if err != nil {
		return 0, answer, err
	}
	kept, err := json.Marshal(answer)
	if err == nil {
		err = gate.Remember(ctx, reserved, kept)
	}
	if err != nil { // the job is in: a repetition finds it by its UUID
		req.Log().Warn("answer for an Idempotency-Key not stored", "event", "http.idempotency_failed",
			"id", answer.ID, "error", err)
	}
	return status, answer, nil
}

// putOnce enqueues a job whose key is reserved. A request that is not the
// first may come after a crash between enqueuing and answering: the job may
// be waiting, or done.
func (h handlers) putOnce(req *web.Request, n jobs.Spec, reserved access.Reservation) (int, ops.Enqueued, error) {
	if !reserved.Fresh {
		r, err := req.Ledger().Job(req.Ctx(), n.UUID)
		if err == nil {
			return http.StatusOK, h.existing(req, r), nil
		}
		if !errors.Is(err, jobs.ErrNotFound) {
			return 0, ops.Enqueued{}, fmt.Errorf("looking up the job of the Idempotency-Key: %w", err)
		}
	}
	return h.put(req, n)
}

func (h handlers) existing(req *web.Request, r jobs.Record) ops.Enqueued {
	req.Audit(ops.IDOf(r), r.Type)
	return ops.ExistingView(r)
}

// put enqueues a job, or runs it at once where jobs are disabled.
func (h handlers) put(req *web.Request, n jobs.Spec) (int, ops.Enqueued, error) {
	if h.Inline != nil {
		return h.executeInline(req, n)
	}
	receipts, err := req.Enqueuer().Enqueue(req.Ctx(), n)
	if err != nil {
		return 0, ops.Enqueued{}, fmt.Errorf("enqueuing %s: %w", n.Type, err)
	}
	if receipts[0].Existing {
		r, err := req.Ledger().Job(req.Ctx(), receipts[0].UUID)
		if err == nil {
			return http.StatusOK, h.existing(req, r), nil
		}
		if !errors.Is(err, jobs.ErrNotFound) {
			return 0, ops.Enqueued{}, fmt.Errorf("looking up the job that is there: %w", err)
		}
		return http.StatusOK, h.enqueued(req, n, receipts[0]), nil
	}
	return http.StatusCreated, h.enqueued(req, n, receipts[0]), nil
}

func (h handlers) enqueued(req *web.Request, n jobs.Spec, r jobs.Receipt) ops.Enqueued {
	req.Audit(r.UUID, n.Type)
	return ops.EnqueuedView(n, r, req.Now())
}

// executeInline is for disabled jobs: the handler runs while the caller waits.
func (h handlers) executeInline(req *web.Request, n jobs.Spec) (int, ops.Enqueued, error) {
	now := req.Now().UTC()
	if n.Delay > 0 || n.RunAt.After(now) {
		return 0, ops.Enqueued{}, web.RefuseField(http.StatusUnprocessableEntity, "run_at",
			"Jobs are disabled, so they run at once: none can wait.")
	}
	n.UUID = cmp.Or(n.UUID, uuid.NewString())
	answer := ops.Enqueued{ID: n.UUID, Type: n.Type, Status: string(jobs.StatusCompleted), RunAt: now, EnqueuedAt: now}
	req.Audit(n.UUID, n.Type+" at once")
	result, err := h.Inline.Do(req.Ctx(), n)
	if err != nil {
		answer.Status, answer.Error = string(jobs.StatusFailed), req.View().Text(err.Error())
		return http.StatusOK, answer, nil
	}
	if len(result) > 0 {
		answer.Result = req.View().Payload(n.Type, result)
	}
	return http.StatusOK, answer, nil
}
