package jobs

import (
	"fmt"
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/compat"
)

type TypeList = ops.Items[ops.TypeView]

// dialect is whose words the route of a request speaks.
func dialect(req *web.Request) web.APIDialect { return dialectOf(req.Path()) }

func dialectOf(path string) web.APIDialect {
	switch {
	case len(path) >= 10 && path[:10] == "/api/admin":
		return web.S2Compat
	case len(path) >= 9 && path[:9] == "/api/jobs":
		return web.PocketBaseCompat
	}
	return web.V1
}

func (h handlers) listJobs(req *web.Request) error {
	f, err := req.Filter()
	if err != nil {
		return err
	}
	return h.answerJobs(req, f.WithoutSilenced(h.Silenced))
}

func (h handlers) listFailed(req *web.Request) error {
	f, err := req.Filter()
	if err != nil {
		return err
	}
	f.Statuses = []jobs.Status{jobs.StatusFailed}
	return h.answerJobs(req, f)
}

func (h handlers) answerJobs(req *web.Request, f jobs.Filter) error {
	p, err := req.ListPage()
	if err != nil {
		return err
	}
	list, err := req.Ledger().Jobs(req.Ctx(), f, p)
	if err != nil {
		return phrase.Errorf("listing jobs: %w", err)
	}
	v := req.View()
	switch dialect(req) {
	case web.S2Compat:
		return req.JSON(http.StatusOK, ops.Listed(list, p, func(r jobs.Record) compat.S2Job {
			return compat.S2(v.Job(r))
		}))
	case web.PocketBaseCompat:
		return req.JSON(http.StatusOK, ops.Listed(list, p, func(r jobs.Record) compat.S1Job {
			return compat.S1(v.Job(r))
		}))
	default:
		return req.JSON(http.StatusOK, ops.Listed(list, p, v.Job))
	}
}

// job finds the job that a request names, and notes it for the audit log.
func (h handlers) job(req *web.Request) (jobs.Record, error) {
	id, err := req.ID()
	if err != nil {
		return jobs.Record{}, err
	}
	r, err := req.Ledger().Job(req.Ctx(), id)
	if err != nil {
		return r, fmt.Errorf("looking up job %s: %w", id, err)
	}
	req.Audit(ops.IDOf(r), r.Type)
	return r, nil
}

func (h handlers) showJob(req *web.Request) error {
	r, err := h.job(req)
	if err != nil {
		return err
	}
	return h.answerJob(req, http.StatusOK, r)
}

func (h handlers) answerJob(req *web.Request, status int, r jobs.Record) error {
	v := req.View().Job(r)
	switch dialect(req) {
	case web.S2Compat:
		return req.JSON(status, compat.S2(v))
	case web.PocketBaseCompat:
		return req.JSON(status, compat.S1(v))
	default:
		return req.JSON(status, v)
	}
}

func (h handlers) stats(req *web.Request) error {
	st, err := req.Ledger().Stats(req.Ctx())
	if err != nil {
		return fmt.Errorf("counting jobs: %w", err)
	}
	v := ops.Stats(st)
	if dialect(req) == web.PocketBaseCompat {
		return req.JSON(http.StatusOK, compat.S1Figures(v))
	}
	return req.JSON(http.StatusOK, v)
}

func (h handlers) requeueJob(req *web.Request) error {
	r, err := h.job(req)
	if err != nil {
		return err
	}
	id, err := h.runAgain(req, r)
	if err != nil {
		return err
	}
	if r, err = req.Ledger().Job(req.Ctx(), id); err != nil {
		return fmt.Errorf("looking up the job that runs again: %w", err)
	}
	return h.answerJob(req, http.StatusOK, r)
}

// runAgain gives a job another run and returns the id under which it has it.
func (h handlers) runAgain(req *web.Request, r jobs.Record) (string, error) {
	if err := req.MayRunAgain(r); err != nil {
		return "", err
	}
	id, err := h.actions(req).RunAgain(req.Ctx(), r)
	if err == nil && id != ops.IDOf(r) {
		req.Audit(ops.IDOf(r), "again as "+id)
	}
	return id, err
}

func (h handlers) cancelJob(req *web.Request) error {
	r, err := h.job(req)
	if err != nil {
		return err
	}
	if err := h.actions(req).One(req.Ctx(), ops.Cancel, r); err != nil {
		return err
	}
	return req.JSON(http.StatusOK, web.Affected{Changed: 1})
}

func (h handlers) deleteJob(req *web.Request) error {
	r, err := h.job(req)
	if err != nil {
		return err
	}
	if err := h.actions(req).Remove(req.Ctx(), r); err != nil {
		return err
	}
	return req.NoContent(http.StatusNoContent)
}

// failedOnly is job for routes that speak of failed jobs only.
func (h handlers) failedOnly(req *web.Request) (jobs.Record, error) {
	r, err := h.job(req)
	if err == nil {
		err = ops.Fits(ops.Delete, r)
	}
	return r, err
}

func (h handlers) retryFailed(req *web.Request) error {
	if _, err := h.failedOnly(req); err != nil {
		return err
	}
	return h.requeueJob(req)
}

func (h handlers) deleteFailed(req *web.Request) error {
	if _, err := h.failedOnly(req); err != nil {
		return err
	}
	return h.deleteJob(req)
}

func (h handlers) jobTypes(req *web.Request) error {
	return req.JSON(http.StatusOK, TypeList{Items: h.types(req)})
}

func (h handlers) types(req *web.Request) []ops.TypeView {
	return ops.Types(req.Registry(), h.DefaultQueue, false)
}

// actions change jobs by the rules of their statuses.
func (h handlers) actions(req *web.Request) ops.Actions {
	return ops.Actions{Change: h.Mutator, Enqueue: req.Enqueuer(), Registry: req.Registry()}
}
