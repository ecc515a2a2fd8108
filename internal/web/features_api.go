package web

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

func same[T any](v T) T { return v }

// answerList is the shape of most lists: ask a room, answer its page.
func answerList[T any](s *Server, c echo.Context, what string, view func(T) T, ask func(jobs.Page) (jobs.List[T], error)) error {
	p, err := s.pageOf(c)
	if err != nil {
		return err
	}
	list, err := ask(p)
	if err != nil {
		return fmt.Errorf("listing %s: %w", what, err)
	}
	return c.JSON(http.StatusOK, ops.Listed(list, p, view))
}

func (s *Server) listSettings(c echo.Context) error {
	return c.JSON(http.StatusOK, SettingList{Items: s.settings()})
}
