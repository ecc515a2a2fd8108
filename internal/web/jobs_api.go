package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// words are the family of the route that a request came by.
func (s *Server) words(c echo.Context) APIDialect { return familyOf(c.Path()) }

func familyOf(path string) APIDialect {
	switch {
	case len(path) >= 10 && path[:10] == "/api/admin":
		return S2Compat
	case len(path) >= 9 && path[:9] == "/api/jobs":
		return PocketBaseCompat
	}
	return V1
}

func (s *Server) listJobs(c echo.Context) error {
	f, err := s.filter(c)
	if err != nil {
		return err
	}
	return s.answerJobs(c, f)
}

func (s *Server) listFailed(c echo.Context) error {
	f, err := s.filter(c)
	if err != nil {
		return err
	}
	f.Statuses = []jobs.Status{jobs.StatusFailed}
	return s.answerJobs(c, f)
}

func (s *Server) answerJobs(c echo.Context, f jobs.Filter) error {
	p, err := s.pageOf(c)
	if err != nil {
		return err
	}
	list, err := s.cfg.Ledger.Jobs(c.Request().Context(), f, p)
	if err != nil {
		return fmt.Errorf("listing jobs: %w", err)
	}
	words := s.words(c)
	if words == S2Compat {
		return c.JSON(http.StatusOK, page(list, p, s.viewer(c).sketch))
	}
	return c.JSON(http.StatusOK, page(list, p, func(r jobs.Record) JobView { return s.viewer(c).job(r, words) }))
}

// job finds the job that a request names, and tells the trail.
func (s *Server) job(c echo.Context) (jobs.Record, error) {
	id, err := idParam(c)
	if err != nil {
		return jobs.Record{}, err
	}
	r, err := s.cfg.Ledger.Job(c.Request().Context(), id)
	if err != nil {
		return r, fmt.Errorf("looking up job %s: %w", id, err)
	}
	setAuditTarget(c, idOf(r), r.Type)
	return r, nil
}

func (s *Server) showJob(c echo.Context) error {
	r, err := s.job(c)
	if err != nil {
		return err
	}
	return s.answerJob(c, http.StatusOK, r)
}

func (s *Server) answerJob(c echo.Context, status int, r jobs.Record) error {
	if words := s.words(c); words != S2Compat {
		return c.JSON(status, s.viewer(c).job(r, words))
	}
	return c.JSON(status, s.viewer(c).sketch(r))
}

func (s *Server) stats(c echo.Context) error {
	st, err := s.cfg.Ledger.Stats(c.Request().Context())
	if err != nil {
		return fmt.Errorf("counting jobs: %w", err)
	}
	return c.JSON(http.StatusOK, statsView(st))
}

// Changed says how many things a request changed.
type Changed struct {
	Changed int64 `json:"changed"`
}

func (s *Server) requeueJob(c echo.Context) error {
	r, err := s.job(c)
	if err != nil {
		return err
	}
	id, err := s.runAgain(c, r)
	if err != nil {
		return err
	}
	if r, err = s.cfg.Ledger.Job(c.Request().Context(), id); err != nil {
		return fmt.Errorf("looking up the job that runs again: %w", err)
	}
	return s.answerJob(c, http.StatusOK, r)
}

// runAgain gives a job another run and returns the id under which it has it.
func (s *Server) runAgain(c echo.Context, r jobs.Record) (string, error) {
	ctx, id := c.Request().Context(), idOf(r)
	if err := s.mayRunAgain(c, r); err != nil {
		return "", err
	}
	switch r.Status {
	case jobs.StatusFailed:
		return id, s.one(s.cfg.Changer.Retry(ctx, only(r), 1))
	case jobs.StatusQueued:
		if r.Foreign {
			return "", foreign()
		}
		_, err := s.cfg.Changer.RunNow(ctx, only(r), 1)
		return id, err
	case jobs.StatusProcessing:
		return "", httpError(http.StatusConflict, "The job is running. Wait for its end, or cancel it first.")
	}
	n, err := s.again(r)
	if err != nil {
		return "", err
	}
	receipts, err := s.cfg.Enqueuer.Enqueue(ctx, n)
	if err != nil {
		return "", fmt.Errorf("enqueuing the job anew: %w", err)
	}
	setAuditTarget(c, id, "anew as "+receipts[0].UUID)
	return receipts[0].UUID, nil
}

func foreign() *Problem {
	return httpError(http.StatusConflict, "The job belongs to PHP: this service shows it and never touches it. Use the CMS's own commands (php artisan queue:…).")
}

// only is the filter that chooses one job.
func only(r jobs.Record) jobs.Filter {
	return jobs.Filter{UUIDs: []string{r.UUID}, Statuses: []jobs.Status{r.Status}}
}

// one checks that a change reached its job, which another may have changed
// in between.
func (s *Server) one(n int64, err error) error {
	if err == nil && n == 0 {
		return httpError(http.StatusConflict, "The job changed at this moment. Look again.")
	}
	return err
}

func (s *Server) cancelJob(c echo.Context) error {
	r, err := s.job(c)
	if err != nil {
		return err
	}
	if r.Status != jobs.StatusQueued && r.Status != jobs.StatusProcessing {
		return httpError(http.StatusConflict, "The job has ended (%s): there is nothing to cancel.", r.Status)
	}
	if r.Foreign {
		return foreign()
	}
	if err := s.one(s.cfg.Changer.Cancel(c.Request().Context(), only(r), 1)); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, Changed{1})
}

func (s *Server) deleteJob(c echo.Context) error {
	r, err := s.job(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	switch {
	case r.Status == jobs.StatusFailed:
		err = s.one(s.cfg.Changer.Delete(ctx, only(r), 1))
	case r.Status == jobs.StatusQueued && r.Foreign:
		err = foreign()
	case r.Status == jobs.StatusQueued:
		err = s.one(s.cfg.Changer.Cancel(ctx, only(r), 1))
	case r.Status == jobs.StatusProcessing:
		err = httpError(http.StatusConflict, "A running job cannot be deleted. Cancel it first.")
	default:
		err = httpError(http.StatusConflict, "The job has ended (%s); the history is kept until its time is over.", r.Status)
	}
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// failedOnly is job for routes that speak of failed jobs only.
func (s *Server) failedOnly(c echo.Context) (jobs.Record, error) {
	r, err := s.job(c)
	if err == nil && r.Status != jobs.StatusFailed {
		err = httpError(http.StatusConflict, "The job has not failed: it is %s.", r.Status)
	}
	return r, err
}

func (s *Server) retryFailed(c echo.Context) error {
	if _, err := s.failedOnly(c); err != nil {
		return err
	}
	return s.requeueJob(c)
}

func (s *Server) forgetFailed(c echo.Context) error {
	if _, err := s.failedOnly(c); err != nil {
		return err
	}
	return s.deleteJob(c)
}

// KindView is a type that can be enqueued.
type KindView struct {
	Name        string          `json:"name"`
	Queue       string          `json:"queue"`
	MaxAttempts int             `json:"max_attempts"`
	TimeoutMS   int64           `json:"timeout_ms"`
	Limit       int             `json:"limit"` // at once in the fleet; 0 is any number
	Example     json.RawMessage `json:"example"`
}

func (s *Server) jobTypes(c echo.Context) error {
	return c.JSON(http.StatusOK, KindList{s.kindViews()})
}

func (s *Server) kindViews() []KindView {
	offered := slices.DeleteFunc(s.cfg.Registry.Types(), func(name string) bool {
		e, _ := s.cfg.Registry.Lookup(name)
		return e.Maker == jobs.Service
	})
	return each(offered, func(name string) KindView {
		e, _ := s.cfg.Registry.Lookup(name)
		if string(e.Example) == "null" { // a payload that is a map
			e.Example = json.RawMessage("{}")
		}
		return KindView{e.Type, e.Queue, e.Policy.MaxAttempts, e.Policy.Timeout.Milliseconds(), e.Policy.Limit, e.Example}
	})
}

// isNotFound says whether err only says that nothing is there.
func isNotFound(err error) bool { return errors.Is(err, jobs.ErrNotFound) }
