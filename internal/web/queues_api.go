package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

func (s *Server) listQueues(c echo.Context) error {
	st, err := s.cfg.Ledger.Stats(c.Request().Context())
	if err != nil {
		return fmt.Errorf("counting jobs: %w", err)
	}
	return c.JSON(http.StatusOK, ops.ItemsOf(st.Queues, ops.Queue))
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
	return c.JSON(http.StatusOK, Affected{1})
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
	return c.JSON(http.StatusOK, Affected{changed})
}

func (s *Server) clearQueue(c echo.Context) error {
	name, err := nameParam(c, "name")
	if err != nil {
		return err
	}
	dry := c.QueryParam("dry_run")
	return s.changeMany(c, ops.Cancel, BulkSelection{Filter: ops.Filter{Queue: []string{name}}, DryRun: dry == "1" || dry == "true"})
}

func (s *Server) listWorkers(c echo.Context) error {
	list, err := s.cfg.Workers.Workers(c.Request().Context())
	if err != nil {
		return fmt.Errorf("listing workers: %w", err)
	}
	return c.JSON(http.StatusOK, ops.ItemsOf(list, s.viewer(c).Worker))
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
	return c.JSON(http.StatusOK, Affected{1})
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
	return c.JSON(http.StatusOK, Affected{int64(len(list))})
}
