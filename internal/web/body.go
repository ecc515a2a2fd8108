package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/redact"
)

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
			redact.Clip(t, 60))
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
		return nil, httpError(http.StatusBadRequest, "The key %q stands twice in one object.", redact.Clip(key, 60))
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
			"There is no field %s here. What the handler needs belongs into \"payload\".", redact.Clip(name, 60))
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
