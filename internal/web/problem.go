package web

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// Problem is how every refusal and failure is answered (RFC 9457,
// application/problem+json).
type Problem struct {
	Type   string `json:"type"` // about:blank, or a path of the documentation
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail says what went wrong here and what to do next.
	Detail string `json:"detail,omitempty"`
	// Instance is the request's id, which the log has too.
	Instance string         `json:"instance,omitempty"`
	Errors   []FieldProblem `json:"errors,omitempty"`

	form       string // Detail is made of it and args, for other languages
	args       []any
	retryAfter int // seconds
	cause      error
}

// FieldProblem is what is wrong with one field.
type FieldProblem struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// Error makes a Problem an error.
func (p *Problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Title, p.Detail) }

// Unwrap is what caused it, where that is known.
func (p *Problem) Unwrap() error { return p.cause }

func httpError(status int, format string, args ...any) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status,
		Detail: fmt.Sprintf(format, args...), form: format, args: args}
}

func fieldError(status int, field, format string, args ...any) *Problem {
	p := httpError(status, format, args...)
	p.Errors = []FieldProblem{{field, p.Detail}}
	return p
}

// notConfigured answers for a part that this installation lacks.
func notConfigured(part string) *Problem {
	return httpError(http.StatusNotFound, "This installation has no %s: the part is not configured.", part)
}

// problemOf is the one table from errors to answers.
func problemOf(err error) *Problem {
	var p *Problem
	var http400 *echo.HTTPError
	var tooLarge *http.MaxBytesError
	var throttled access.ThrottledError
	var refused *ops.Refusal
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &refused):
		return refusal(refused)
	case errors.As(err, &tooLarge):
		return httpError(http.StatusRequestEntityTooLarge, "The body has more than %d bytes. Put large things into a "+
			"file and name it.", tooLarge.Limit)
	case errors.As(err, &throttled):
		p = httpError(http.StatusTooManyRequests, "Too many wrong sign-ins: try again in %s.",
			throttled.RetryAfter.Round(time.Second))
		p.retryAfter = int(math.Ceil(throttled.RetryAfter.Seconds()))
		return p
	case errors.Is(err, access.ErrRefused):
		return httpError(http.StatusUnauthorized, "These credentials are not valid.")
	case errors.Is(err, access.ErrKeyReused):
		return httpError(http.StatusConflict, "%s", Spoken{err})
	case errors.Is(err, jobs.ErrInvalid):
		return httpError(http.StatusUnprocessableEntity, "%s", Spoken{err})
	case errors.Is(err, jobs.ErrNotFound):
		return httpError(http.StatusNotFound, "There is nothing with this id.")
	case errors.Is(err, jobs.ErrConflict):
		return httpError(http.StatusConflict, "%s", Spoken{err})
	case errors.Is(err, ErrUnavailable):
		p = httpError(http.StatusServiceUnavailable, "The backup destination is unreachable. Check its address, its "+
			"keys and the network, then try again. Cause: %s", err)
		p.retryAfter = 30
	case errors.As(err, &http400):
		return httpError(http400.Code, "%s.", strings.TrimSuffix(fmt.Sprint(http400.Message), "."))
	case errors.Is(err, context.DeadlineExceeded):
		p = httpError(http.StatusServiceUnavailable, "The answer took too long. Try again, or ask for less.")
		p.retryAfter = 5
	default:
		p = httpError(http.StatusInternalServerError, "Something went wrong here. The log has the details under this "+
			"answer's instance.")
	}
	p.cause = err
	return p
}

// refusal is the answer to what an action or a filter refuses.
func refusal(r *ops.Refusal) *Problem {
	switch {
	case errors.Is(r, jobs.ErrConflict):
		return httpError(http.StatusConflict, r.Form, r.Args...)
	case errors.Is(r, jobs.ErrNotFound):
		return fieldError(http.StatusNotFound, r.Field, r.Form, r.Args...)
	}
	if r.Field == "" {
		return httpError(http.StatusBadRequest, r.Form, r.Args...)
	}
	return fieldError(http.StatusBadRequest, r.Field, r.Form, r.Args...)
}

// Sentence gives an error's text a capital letter and a full stop.
func Sentence(text string) string {
	if text == "" {
		return text
	}
	first, size := utf8.DecodeRuneInString(text)
	text = string(unicode.ToUpper(first)) + text[size:]
	switch text[len(text)-1] {
	case '.', '!', '?':
		return text
	}
	return text + "."
}

// in is a problem's detail in a language.
func (p *Problem) in(lang locale.Printer) string {
	if p.form == "" || fmt.Sprintf(p.form, p.args...) != p.Detail {
		return p.Detail // something was added to it
	}
	args := slices.Clone(p.args)
	for i, arg := range args {
		if said, is := arg.(Spoken); is {
			args[i] = Sentence(phrase.Text(said.Err, lang.Sentence))
		}
	}
	return lang.Sentence(p.form, args)
}

// Spoken is an error among the values of a refusal: a sentence in the language of
// who reads it, as far as package phrase made the error.
type Spoken struct{ Err error }

// String is the sentence in English.
func (s Spoken) String() string { return Sentence(s.Err.Error()) }
