package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

func (s *Server) listQueues(c echo.Context) error {
	st, err := s.cfg.Ledger.Stats(c.Request().Context())
	if err != nil {
		return fmt.Errorf("counting jobs: %w", err)
	}
	return c.JSON(http.StatusOK, QueueList{each(st.Queues, queueView)})
}

// nameParam reads a path parameter that is a name and may hold any character.
func nameParam(c echo.Context, name string) (string, error) {
	value, err := url.PathUnescape(c.Param(name))
	if err != nil || value == "" || len(value) > 191 || !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' }) {
		return "", fmt.Errorf("the %s: %w", name, jobs.ErrNotFound)
	}
	setAuditTarget(c, value, "")
	return value, nil
}

func (s *Server) pauseQueue(c echo.Context) error {
	name, err := nameParam(c, "name")
	if err != nil {
		return err
	}
	if err := s.cfg.Queues.Pause(c.Request().Context(), name, who(c).Name); err != nil {
		return fmt.Errorf("pausing the queue %s: %w", name, err)
	}
	return c.JSON(http.StatusOK, Changed{1})
}

func (s *Server) continueQueue(c echo.Context) error {
	name, err := nameParam(c, "name")
	if err != nil {
		return err
	}
	if err := denied(s.effects.MayWork(who(c))); err != nil {
		return err
	}
	was, err := s.cfg.Queues.Continue(c.Request().Context(), name)
	if err != nil {
		return fmt.Errorf("continuing the queue %s: %w", name, err)
	}
	var changed int64
	if was {
		changed = 1
	}
	return c.JSON(http.StatusOK, Changed{changed})
}

func (s *Server) clearQueue(c echo.Context) error {
	name, err := nameParam(c, "name")
	if err != nil {
		return err
	}
	dry := c.QueryParam("dry_run")
	return s.changeMany(c, "cancel", BulkSelection{FilterView: FilterView{Queue: []string{name}}, DryRun: dry == "1" || dry == "true"})
}

// WorkerView is a worker and what it runs.
type WorkerView struct {
	ID          string        `json:"id"`
	Host        string        `json:"host"`
	PID         int           `json:"pid"`
	Version     string        `json:"version"`
	Status      string        `json:"status"` // running, stopping, dead
	Queues      []string      `json:"queues"`
	Slots       int           `json:"slots"`
	MemoryBytes int64         `json:"memory_bytes"`
	Done        int64         `json:"done"`
	Failed      int64         `json:"failed"`
	StartedAt   time.Time     `json:"started_at"`
	SeenAt      time.Time     `json:"seen_at"`
	Running     []RunningView `json:"running"`
}

// RunningView is a job that a worker runs.
type RunningView struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Queue    string         `json:"queue"`
	Attempt  int            `json:"attempt"`
	Since    time.Time      `json:"since"`
	Progress *jobs.Progress `json:"progress,omitempty"`
}

func (v viewer) worker(w jobs.WorkerRecord) WorkerView {
	status := w.Status
	if !w.Alive {
		status = "dead"
	}
	return WorkerView{ID: w.ID, Host: w.Host, PID: w.PID, Version: w.Version, Status: status, Queues: each(w.Queues, func(q string) string { return q }), Slots: w.Slots,
		MemoryBytes: w.MemoryBytes, Done: w.Done, Failed: w.Failed, StartedAt: utc(w.StartedAt), SeenAt: utc(w.SeenAt),
		Running: each(w.Running, func(r jobs.RunningJob) RunningView {
			return RunningView{r.UUID, r.Type, r.Queue, r.Attempt, utc(r.Since), v.progress(r.Progress)}
		})}
}

func (s *Server) listWorkers(c echo.Context) error {
	list, err := s.cfg.Workers.Workers(c.Request().Context())
	if err != nil {
		return fmt.Errorf("listing workers: %w", err)
	}
	return c.JSON(http.StatusOK, WorkerList{each(list, s.viewer(c).worker)})
}

func (s *Server) stopWorker(c echo.Context) error {
	id, err := nameParam(c, "id")
	if err != nil {
		return err
	}
	known, err := s.cfg.Workers.Stop(c.Request().Context(), id)
	if err != nil {
		return fmt.Errorf("stopping the worker %s: %w", id, err)
	}
	if !known {
		return fmt.Errorf("the worker %s: %w", id, jobs.ErrNotFound)
	}
	return c.JSON(http.StatusOK, Changed{1})
}

func (s *Server) restartWorkers(c echo.Context) error {
	list, err := s.cfg.Workers.Workers(c.Request().Context())
	if err == nil {
		err = s.cfg.Workers.Restart(c.Request().Context())
	}
	if err != nil {
		return fmt.Errorf("restarting workers: %w", err)
	}
	list = slices.DeleteFunc(list, func(w jobs.WorkerRecord) bool { return !w.Alive })
	return c.JSON(http.StatusOK, Changed{int64(len(list))})
}
