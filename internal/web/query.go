package web

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
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
		return 0, fieldError(http.StatusBadRequest, name, "%s must be a number from 0, not %q.", name, clip(text, 40))
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

// maxDepth bounds how deep a body's JSON may nest.
const maxDepth = 64

// body decodes a JSON body strictly: unknown fields, a second value and bad
// UTF-8 are refused, not ignored.
func body(c echo.Context, into any) error {
	raw, err := rawBody(c)
	if err != nil {
		return err
	}
	return decodeStrictly(raw, into)
}

func rawBody(c echo.Context) ([]byte, error) {
	if t := c.Request().Header.Get(echo.HeaderContentType); t != "" && !strings.HasPrefix(t, "application/json") {
		return nil, httpError(http.StatusUnsupportedMediaType, "Send JSON (Content-Type: application/json), not %q.",
			clip(t, 60))
	}
	raw, err := io.ReadAll(c.Request().Body)
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) || errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, err
		}
		return nil, httpError(http.StatusBadRequest, "The body was cut off.")
	}
	return raw, nil
}

func decodeStrictly(raw []byte, into any) error {
	raw, err := CheckBody(raw)
	if err != nil {
		return err
	}
	return DecodeBody(raw, into)
}

// CheckBody returns a body that may be decoded: one object of bounded depth, in UTF-8,
// in which no key stands twice.
func CheckBody(raw []byte) ([]byte, error) {
	if !utf8.Valid(raw) {
		return nil, httpError(http.StatusBadRequest, "The body is not UTF-8.")
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte("{}")
	}
	if depth(raw) > maxDepth {
		return nil, httpError(http.StatusBadRequest, "The body nests deeper than %d.", maxDepth)
	}
	if trimmed := bytes.TrimSpace(raw); trimmed[0] != '{' {
		return nil, httpError(http.StatusBadRequest, "The body must be a JSON object.")
	}
	if key, twice := repeatedKey(raw); twice {
		return nil, httpError(http.StatusBadRequest, "The key %q stands twice in one object.", clip(key, 60))
	}
	return raw, nil
}

// DecodeBody decodes a body that was checked: an unknown field is an error.
func DecodeBody(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return bodyProblem(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return httpError(http.StatusBadRequest, "The body holds more than one JSON value.")
	}
	return nil
}

// repeatedKey finds a key that stands twice in one object: readers differ in
// which of them counts. At the top, where our own fields are, letter case does
// not make another key. Faulty JSON has none; the decoder says what is wrong.
func repeatedKey(raw []byte) (string, bool) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	type level struct {
		keys  map[string]bool // nil in a list
		value bool            // a value comes next, not a key
	}
	var open []level
	for {
		token, err := decoder.Token()
		if err != nil {
			return "", false
		}
		end := len(open) - 1
		if delim, is := token.(json.Delim); is {
			switch delim {
			case '{':
				open = append(open, level{keys: map[string]bool{}})
			case '[':
				open = append(open, level{})
			default:
				open = open[:end]
				end--
				if end >= 0 {
					open[end].value = false
				}
			}
			continue
		}
		if end < 0 || open[end].keys == nil {
			continue
		}
		if open[end].value {
			open[end].value = false
			continue
		}
		key, _ := token.(string)
		same := key
		if end == 0 {
			same = strings.ToLower(key)
		}
		if open[end].keys[same] {
			return key, true
		}
		open[end].keys[same], open[end].value = true, true
	}
}

func bodyProblem(err error) error {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return fieldError(http.StatusUnprocessableEntity, wrongType.Field, "%s must be %s, not a JSON %s.",
			wrongType.Field, article(wrongType.Type.Kind().String()), wrongType.Value)
	}
	if name, found := strings.CutPrefix(err.Error(), "json: unknown field "); found {
		return fieldError(http.StatusUnprocessableEntity, strings.Trim(name, `"`),
			"There is no field %s here. What the handler needs belongs into \"payload\".", clip(name, 60))
	}
	return httpError(http.StatusBadRequest, "The body is not JSON: %s.", strings.TrimPrefix(err.Error(), "json: "))
}

func article(jobType string) string {
	switch jobType {
	case "struct", "map":
		return "an object"
	case "slice", "array":
		return "a list"
	case "int", "int64", "uint", "uint64", "float64":
		return "a number"
	}
	return "a " + jobType
}

// depth is how deep JSON nests; strings are skipped.
func depth(raw []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

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
		return "", fmt.Errorf("the id %q: %w", clip(id, 64), jobs.ErrNotFound)
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
