package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// Lock is shown as access keeps it.
type Lock = access.Lock

// LockList is a list of locks.
type LockList struct {
	Items []Lock `json:"items"`
}

func (s *Server) listLocks(c echo.Context) error {
	list, err := s.cfg.Gate.Store.Locks(c.Request().Context())
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, LockList{list})
}

func (s *Server) unlock(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	if err := s.lift(c.Request().Context(), id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) unlockByForm(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	if err := s.lift(c.Request().Context(), id); err != nil {
		return err
	}
	return s.back(c, "/admin/audit", "locks.lifted")
}

// lift lifts a lock. One that ended meanwhile is lifted.
func (s *Server) lift(ctx context.Context, id string) error {
	if err := s.cfg.Gate.Store.Unlock(ctx, id); !errors.Is(err, jobs.ErrNotFound) {
		return err
	}
	return nil
}
