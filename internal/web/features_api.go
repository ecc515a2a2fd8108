package web

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
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
	return c.JSON(http.StatusOK, page(list, p, view))
}

// answerAgain answers with the job that does again what id did.
func (s *Server) answerAgain(c echo.Context, id, jobType string, receipt jobs.Receipt) error {
	answer := s.enqueued(c, jobs.Spec{Type: jobType}, receipt)
	setAuditTarget(c, id, "as "+receipt.UUID)
	return c.JSON(http.StatusCreated, answer)
}

func (s *Server) listSettings(c echo.Context) error {
	return c.JSON(http.StatusOK, SettingList{s.settings()})
}
