package web

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/compat"
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
	v := s.viewer(c)
	switch s.words(c) {
	case S2Compat:
		return c.JSON(http.StatusOK, ops.Listed(list, p, func(r jobs.Record) compat.S2Job { return compat.S2(v.Job(r)) }))
	case PocketBaseCompat:
		return c.JSON(http.StatusOK, ops.Listed(list, p, func(r jobs.Record) compat.S1Job { return compat.S1(v.Job(r)) }))
	default:
		return c.JSON(http.StatusOK, ops.Listed(list, p, v.Job))
	}
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
	setAuditTarget(c, ops.IDOf(r), r.Type)
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
	v := s.viewer(c).Job(r)
	switch s.words(c) {
	case S2Compat:
		return c.JSON(status, compat.S2(v))
	case PocketBaseCompat:
		return c.JSON(status, compat.S1(v))
	default:
		return c.JSON(status, v)
	}
}

func (s *Server) stats(c echo.Context) error {
	st, err := s.cfg.Ledger.Stats(c.Request().Context())
	if err != nil {
		return fmt.Errorf("counting jobs: %w", err)
	}
	if v := ops.Stats(st); s.words(c) == PocketBaseCompat {
		return c.JSON(http.StatusOK, compat.S1Figures(v))
	} else {
		return c.JSON(http.StatusOK, v)
	}
}

// Affected says how many things a request changed.
type Affected struct {
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
	if err := s.mayRunAgain(c, r); err != nil {
		return "", err
	}
	id, err := s.actions.RunAgain(c.Request().Context(), r)
	if err == nil && id != ops.IDOf(r) {
		setAuditTarget(c, ops.IDOf(r), "anew as "+id)
	}
	return id, err
}

func (s *Server) cancelJob(c echo.Context) error {
	r, err := s.job(c)
	if err != nil {
		return err
	}
	if err := s.actions.One(c.Request().Context(), ops.Cancel, r); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, Affected{1})
}

func (s *Server) deleteJob(c echo.Context) error {
	r, err := s.job(c)
	if err != nil {
		return err
	}
	if err := s.actions.Remove(c.Request().Context(), r); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// failedOnly is job for routes that speak of failed jobs only.
func (s *Server) failedOnly(c echo.Context) (jobs.Record, error) {
	r, err := s.job(c)
	if err == nil {
		err = ops.Fits(ops.Delete, r)
	}
	return r, err
}

func (s *Server) retryFailed(c echo.Context) error {
	if _, err := s.failedOnly(c); err != nil {
		return err
	}
	return s.requeueJob(c)
}

func (s *Server) deleteFailed(c echo.Context) error {
	if _, err := s.failedOnly(c); err != nil {
		return err
	}
	return s.deleteJob(c)
}

func (s *Server) jobTypes(c echo.Context) error {
	return c.JSON(http.StatusOK, TypeList{Items: s.types()})
}

func (s *Server) types() []ops.TypeView { return ops.Types(s.cfg.Registry, s.cfg.DefaultQueue, false) }

// isNotFound says whether err only says that nothing is there.
func isNotFound(err error) bool { return errors.Is(err, jobs.ErrNotFound) }
