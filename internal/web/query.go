package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/compat"
)

// pageOf reads limit, offset and cursor. A limit above the configured one is
// cut to it; the answer says which was used.
func (s *Server) pageOf(c echo.Context) (jobs.Page, error) {
	limit, err := number(c, "limit", ops.DefaultLimit)
	if err != nil {
		return jobs.Page{}, err
	}
	offset, err := number(c, "offset", 0)
	if err != nil {
		return jobs.Page{}, err
	}
	if limit < 1 {
		limit = ops.DefaultLimit
	}
	cursor := c.QueryParam("cursor")
	if len(cursor) > 500 {
		return jobs.Page{}, fieldError(http.StatusBadRequest, "cursor", "The cursor is not one of ours.")
	}
	return jobs.Page{Limit: min(limit, s.cfg.PageLimit), Offset: offset, Cursor: cursor}, nil
}

func number(c echo.Context, name string, fallback int) (int, error) {
	text := c.QueryParam(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1<<31-1 {
		return 0, fieldError(http.StatusBadRequest, name, "%s must be a number from 0, not %q.", name,
			redact.Clip(text, 40))
	}
	return n, nil
}

// written is the filter of a request's query.
func written(c echo.Context) ops.Filter { return ops.FilterOf(compat.Query(c.QueryParams())) }

// filter reads the query's filter with its times.
func (s *Server) filter(c echo.Context) (jobs.Filter, error) {
	f, err := written(c).Parse(s.cfg.Now())
	// what is masked would be found letter by letter
	if err == nil && f.Text != "" && !who(c).Scopes.Has(access.Operate) {
		return f, fieldError(http.StatusForbidden, "text", "Searching the texts of jobs needs the scope %q.",
			access.Operate)
	}
	return f, err
}

// onID does something to what :id in the path names. doing says what, with a
// place for the id, where it fails.
func onID[T any](c echo.Context, doing string, do func(context.Context, string) (T, error)) (string, T, error) {
	var none T
	id, err := idParam(c)
	if err != nil {
		return id, none, err
	}
	result, err := do(c.Request().Context(), id)
	if err != nil {
		return id, none, fmt.Errorf(doing+": %w", id, err)
	}
	return id, result, nil
}

// idParam reads :id, which is a UUID, a ULID or a number.
func idParam(c echo.Context) (string, error) {
	id := c.Param("id")
	if id == "" || len(id) > 64 || strings.ContainsFunc(id, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return "", fmt.Errorf("the id %q: %w", redact.Clip(id, 64), jobs.ErrNotFound)
	}
	return id, nil
}

// nameParam reads a path parameter that is a name and may hold any character.
func nameParam(c echo.Context, name string) (string, error) {
	value, err := url.PathUnescape(c.Param(name))
	if err != nil || value == "" || len(value) > 191 || !utf8.ValidString(value) ||
		strings.ContainsFunc(value, func(r rune) bool { return r < ' ' }) {
		return "", fmt.Errorf("the %s: %w", name, jobs.ErrNotFound)
	}
	setAuditTarget(c, value, "")
	return value, nil
}

// ours says whether a path is one of the pages.
func ours(path string) bool {
	return strings.HasPrefix(path, "/admin") || inManual(path) || path == APIPage
}

// local is a path of ours to go back to, whatever the form says.
func local(path, fallback string) string {
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "" || u.Host != "" || !ours(u.Path) ||
		strings.ContainsAny(path, "\\\r\n") {
		return fallback
	}
	return u.RequestURI()
}
