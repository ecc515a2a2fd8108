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
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

const defaultPage = 20

// pageOf reads limit, offset and cursor. A limit above the configured one is
// cut to it; the answer says which was used.
func (s *Server) pageOf(c echo.Context) (jobs.Page, error) {
	limit, err := number(c, "limit", defaultPage)
	if err != nil {
		return jobs.Page{}, err
	}
	offset, err := number(c, "offset", 0)
	if err != nil {
		return jobs.Page{}, err
	}
	if limit < 1 {
		limit = defaultPage
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

// filterOf reads a filter from the query: status, type (topic), queue, q,
// cause, since, until. Lists are separated by commas or given repeatedly.
func filterOf(c echo.Context) (jobs.Filter, error) {
	q := c.QueryParams()
	return FilterView{Status: dialectOf(q["status"]), Type: append(dialectOf(q["type"]), dialectOf(q["topic"])...), Queue: dialectOf(q["queue"]),
		Text: q.Get("q"), Cause: q.Get("cause"), Since: q.Get("since"), Until: q.Get("until")}.filter()
}

func dialectOf(values []string) []string {
	var list []string
	for _, v := range values {
		list = append(list, strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	return list
}

// FilterView is a filter as the API writes it; empty fields choose all.
type FilterView struct {
	IDs    []string `json:"ids,omitempty"` // UUIDs
	Status []string `json:"status,omitempty"`
	Type   []string `json:"type,omitempty"`
	Queue  []string `json:"queue,omitempty"`
	Text   string   `json:"q,omitempty"`
	Cause  string   `json:"cause,omitempty"`
	Since  string   `json:"since,omitempty"` // RFC 3339, or a length like 24h
	Until  string   `json:"until,omitempty"`
}

// maxTerms bounds how many values one field of a filter may have.
const maxTerms = 1000

func (v FilterView) filter() (jobs.Filter, error) {
	f := jobs.Filter{Types: v.Type, Queues: v.Queue, UUIDs: v.IDs, Text: v.Text, Cause: v.Cause}
	if len(v.IDs) > maxTerms || len(v.Type) > maxTerms || len(v.Queue) > maxTerms || len(v.Status) > maxTerms || len(v.Text) > 1000 || len(v.Cause) > 191 {
		return f, httpError(http.StatusBadRequest, "The filter is too long: %d values a field at most.", maxTerms)
	}
	for _, text := range append([]string{v.Text, v.Cause}, slices.Concat(v.IDs, v.Type, v.Queue)...) {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return f, httpError(http.StatusBadRequest, "The filter is not UTF-8 text.")
		}
	}
	for _, word := range v.Status {
		status, ok := jobs.ParseStatus(word)
		if !ok {
			return f, fieldError(http.StatusBadRequest, "status", "No status is named %q; use queued, processing, completed, failed or cancelled.", clip(word, 40))
		}
		if !slices.Contains(f.Statuses, status) {
			f.Statuses = append(f.Statuses, status)
		}
	}
	return f, nil
}

// moment reads RFC 3339, a day, or a length of time before now.
func moment(text, field string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() > 0 && t.Year() < 10000 {
			return t.UTC(), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fieldError(http.StatusBadRequest, field, "%s must be a time as 2026-11-21T15:04:05Z, a day, or a length like 24h; not %q.", field, clip(text, 40))
}

// period puts since and until into a filter.
func (s *Server) period(f *jobs.Filter, since, until string) (err error) {
	if f.Since, err = moment(since, "since", s.cfg.Now()); err != nil {
		return err
	}
	f.Until, err = moment(until, "until", s.cfg.Now())
	return err
}

// filter reads the query's filter with its times.
func (s *Server) filter(c echo.Context) (jobs.Filter, error) {
	f, err := filterOf(c)
	if err != nil {
		return f, err
	}
	if f.Text != "" && !who(c).Scopes.Has(access.Operate) { // what is masked would be found letter by letter
		return f, fieldError(http.StatusForbidden, "q", "Searching the texts of jobs needs the scope %q.", access.Operate)
	}
	return f, s.period(&f, c.QueryParam("since"), c.QueryParam("until"))
}

// maxDepth bounds how deep a body's JSON may nest.
const maxDepth = 64

// body decodes a JSON body strictly: unknown fields, a second value and bad
// UTF-8 are told, not ignored.
func body(c echo.Context, into any) error {
	raw, err := rawBody(c)
	if err != nil {
		return err
	}
	return decodeStrictly(raw, into)
}

func rawBody(c echo.Context) ([]byte, error) {
	if t := c.Request().Header.Get(echo.HeaderContentType); t != "" && !strings.HasPrefix(t, "application/json") {
		return nil, httpError(http.StatusUnsupportedMediaType, "Send JSON (Content-Type: application/json), not %q.", clip(t, 60))
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
	if !utf8.Valid(raw) {
		return httpError(http.StatusBadRequest, "The body is not UTF-8.")
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte("{}")
	}
	if depth(raw) > maxDepth {
		return httpError(http.StatusBadRequest, "The body nests deeper than %d.", maxDepth)
	}
	if trimmed := bytes.TrimSpace(raw); trimmed[0] != '{' {
		return httpError(http.StatusBadRequest, "The body must be a JSON object.")
	}
	if key, twice := repeatedKey(raw); twice {
		return httpError(http.StatusBadRequest, "The key %q stands twice in one object.", clip(key, 60))
	}
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
		return fieldError(http.StatusUnprocessableEntity, wrongType.Field, "%s must be %s, not a JSON %s.", wrongType.Field, article(wrongType.Type.Kind().String()), wrongType.Value)
	}
	if name, found := strings.CutPrefix(err.Error(), "json: unknown field "); found {
		return fieldError(http.StatusUnprocessableEntity, strings.Trim(name, `"`), "There is no field %s here. What the handler needs belongs into \"payload\".", clip(name, 60))
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

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

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
