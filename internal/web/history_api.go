package web

import (
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

func (s *Server) listRuns(c echo.Context) error {
	f, err := s.filter(c)
	if err != nil {
		return err
	}
	return s.answerRuns(c, f)
}

func (s *Server) jobRuns(c echo.Context) error {
	r, err := s.job(c)
	if err != nil {
		return err
	}
	return s.answerRuns(c, jobs.Filter{UUIDs: []string{r.UUID}})
}

func (s *Server) answerRuns(c echo.Context, f jobs.Filter) error {
	p, err := s.pageOf(c)
	if err != nil {
		return err
	}
	list, err := s.cfg.History.Runs(c.Request().Context(), f, p)
	if err != nil {
		return fmt.Errorf("listing runs: %w", err)
	}
	return c.JSON(http.StatusOK, ops.Listed(list, p, s.viewer(c).Run))
}

func (s *Server) jobLog(c echo.Context) error {
	r, err := s.job(c)
	if err != nil {
		return err
	}
	lines, err := s.cfg.History.Log(c.Request().Context(), r.UUID, ops.MaxLogLines)
	if err != nil {
		return fmt.Errorf("reading the job's log: %w", err)
	}
	return c.JSON(http.StatusOK, ops.LogView{Lines: s.viewer(c).Lines(lines)})
}

func (s *Server) failureGroups(c echo.Context) error {
	f, err := s.filter(c)
	if err != nil {
		return err
	}
	groups, err := s.cfg.History.Groups(c.Request().Context(), f)
	if err != nil {
		return fmt.Errorf("grouping failed jobs: %w", err)
	}
	return c.JSON(http.StatusOK, ops.ItemsOf(groups, s.viewer(c).FailureGroup))
}

// ThroughputView is what ended in steps of time, oldest first.
type ThroughputView struct {
	StepMS int64            `json:"step_ms"`
	Items  []ThroughputItem `json:"items"`
}

// ThroughputItem is one step.
type ThroughputItem struct {
	At             time.Time `json:"at"`
	Completed      int64     `json:"completed"`       // attempts
	FailedAttempts int64     `json:"failed_attempts"` // those that are tried again included
	Failed         int64     `json:"failed"`          // jobs: failed attempts that ended one
	DurationMS     int64     `json:"duration_ms"`     // average
	WaitMS         int64     `json:"wait_ms"`         // average
}

// maxSteps bounds how many steps of time one answer has.
const maxSteps = 1000

func (s *Server) throughput(c echo.Context) error {
	now := s.cfg.Now()
	since, err := ops.ParseTime(firstOf(c.QueryParam("since"), "24h"), "since", now)
	if err != nil {
		return err
	}
	step, err := time.ParseDuration(firstOf(c.QueryParam("step"), "15m"))
	if err != nil || step < time.Second || now.Sub(since) > maxSteps*step {
		return fieldError(http.StatusBadRequest, "step", "step is a length like 15m, from 1s, and gives %d steps at most.", maxSteps)
	}
	list, err := s.cfg.History.Throughput(c.Request().Context(), since, step)
	if err != nil {
		return fmt.Errorf("counting runs: %w", err)
	}
	return c.JSON(http.StatusOK, ThroughputView{step.Milliseconds(), ops.Each(list, func(t jobs.Throughput) ThroughputItem {
		return ThroughputItem{ops.UTC(t.At), t.Completed, t.FailedAttempts, t.Failed, t.Duration.Milliseconds(), t.Wait.Milliseconds()}
	})})
}

func (s *Server) explainJob(c echo.Context) error {
	r, err := s.job(c)
	if err != nil {
		return err
	}
	snapshot, err := s.snapshot(c, r)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, s.viewer(c).Explanation(snapshot))
}

// snapshot collects what an explanation depends on.
func (s *Server) snapshot(c echo.Context, r jobs.Record) (explain.Snapshot, error) {
	e := ops.Explainer{Ledger: s.cfg.Ledger, Registry: s.cfg.Registry, Now: s.cfg.Now, Breakers: s.cfg.Breakers, JobsDisabled: s.cfg.Doer != nil}
	if s.cfg.Workers != nil {
		e.Workers = s.cfg.Workers.Workers
	}
	return e.Snapshot(c.Request().Context(), r)
}
