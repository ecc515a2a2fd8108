package web

import (
	"fmt"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

type queuesPageData struct {
	Queues  []ops.QueueView
	Control bool // they can be paused here
}

func (s *Server) queuesPage(c echo.Context) error {
	st, err := s.cachedStats(c.Request().Context())
	if err != nil {
		return fmt.Errorf("counting jobs: %w", err)
	}
	return s.showLive(c, "queues", "queues.title", LiveList, queuesPageData{ops.Each(st.Queues, ops.Queue), s.cfg.Queues != nil})
}

// queueNamed finds a queue's figures; an empty queue has none and is no error.
func (s *Server) queueNamed(c echo.Context, name string) (jobs.QueueStats, error) {
	st, err := s.cachedStats(c.Request().Context())
	if err != nil {
		return jobs.QueueStats{}, fmt.Errorf("counting jobs: %w", err)
	}
	for _, q := range st.Queues {
		if q.Queue == name {
			return q, nil
		}
	}
	return jobs.QueueStats{Queue: name}, nil
}

func (s *Server) pauseByForm(c echo.Context) error {
	name, err := nameParam(c, "name")
	if err != nil {
		return err
	}
	q, err := s.queueNamed(c, name)
	if err != nil {
		return err
	}
	if yes, err := s.sure(c, s.printer(c).Text("queues.pause.ask", name, q.Waiting(), q.Processing), ""); !yes || err != nil {
		return err
	}
	if err := s.cfg.Queues.Pause(c.Request().Context(), name, who(c).Name); err != nil {
		return fmt.Errorf("pausing the queue %s: %w", name, err)
	}
	return s.back(c, "/admin/queues", "queues.pause.done", name)
}

func (s *Server) continueByForm(c echo.Context) error {
	name, err := nameParam(c, "name")
	if err != nil {
		return err
	}
	if err := denied(s.effects.MayWork(who(c))); err != nil {
		return err
	}
	if _, err := s.cfg.Queues.Continue(c.Request().Context(), name); err != nil {
		return fmt.Errorf("continuing the queue %s: %w", name, err)
	}
	return s.back(c, "/admin/queues", "queues.continue.done", name)
}

type workersPageData struct {
	Configured bool
	Workers    []ops.WorkerView
	Live       int
}

func (s *Server) workers(c echo.Context) (workersPageData, error) {
	v := workersPageData{Configured: s.cfg.Workers != nil}
	if !v.Configured {
		return v, nil
	}
	list, err := s.cfg.Workers.Workers(c.Request().Context())
	if err != nil {
		return v, fmt.Errorf("listing workers: %w", err)
	}
	v.Workers = ops.Each(list, s.viewer(c).Worker)
	for _, w := range list {
		if w.Alive {
			v.Live++
		}
	}
	return v, nil
}

func (s *Server) workersPage(c echo.Context) error {
	v, err := s.workers(c)
	if err != nil {
		return err
	}
	return s.showLive(c, "workers", "workers.title", LiveList, v)
}

func (s *Server) stopByForm(c echo.Context) error {
	v, err := s.workers(c)
	if err != nil {
		return err
	}
	id, err := nameParam(c, "id")
	if err != nil {
		return err
	}
	for _, w := range v.Workers {
		if w.ID != id {
			continue
		}
		if yes, err := s.sure(c, s.printer(c).Text("workers.stop.ask", id, len(w.Running), max(v.Live-1, 0)), ""); !yes || err != nil {
			return err
		}
		known, err := s.cfg.Workers.Stop(c.Request().Context(), id)
		if err == nil && !known {
			err = jobs.ErrNotFound
		}
		if err != nil {
			return fmt.Errorf("stopping the worker %s: %w", id, err)
		}
		return s.back(c, "/admin/workers", "workers.stop.done")
	}
	return fmt.Errorf("the worker %s: %w", id, jobs.ErrNotFound)
}

func (s *Server) restartByForm(c echo.Context) error {
	v, err := s.workers(c)
	if err != nil {
		return err
	}
	running := 0
	for _, w := range v.Workers {
		running += len(w.Running)
	}
	if yes, err := s.sure(c, s.printer(c).Text("workers.restart.ask", v.Live, running), ""); !yes || err != nil {
		return err
	}
	if err := s.cfg.Workers.Restart(c.Request().Context()); err != nil {
		return fmt.Errorf("restarting workers: %w", err)
	}
	return s.back(c, "/admin/workers", "workers.restart.done")
}
