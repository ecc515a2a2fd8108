package phrase_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// marked is an error that another only marks.
type marked struct{ error }

func (m marked) Unwrap() []error { return []error{m.error, io.EOF} }

// permanent is a wrapper that adds no text.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

func TestErrorsAreTranslated(t *testing.T) {
	words := map[string]string{"%d is too much": "%d quá nhiều", "of %s: %s": "của %s: %s", "a": "á"}
	upper := func(form string, args []any) string {
		if text, known := words[form]; known {
			form = text
		}
		return fmt.Sprintf(form, args...)
	}
	much := phrase.Errorf("%d is too much", 7)
	for want, err := range map[string]error{
		"7 quá nhiều":           much,
		"của x: 7 quá nhiều":    phrase.Errorf("of %s: %w", "x", much),
		"7 quá nhiều\ná":        errors.Join(much, nil, phrase.Errorf("a")),
		"của x: á\ná":           permanent{phrase.Errorf("of %s: %w", "x", errors.Join(phrase.Errorf("a"), phrase.Errorf("a")))},
		"á":                     permanent{marked{phrase.Errorf("a")}},
		"saving: 7 is too much": fmt.Errorf("saving: %w", much), // something was added
		"of x: EOF":             fmt.Errorf("of %s: %w", "x", io.EOF),
		"của x: EOF":            phrase.Errorf("of %s: %w", "x", io.EOF),
		"unknown 1":             phrase.Errorf("unknown %d", 1),
	} {
		if got := phrase.Text(err, upper); got != want {
			t.Errorf("%q became %q, want %q", err, got, want)
		}
	}
	if err := phrase.Errorf("of %s: %w", "x", io.EOF); !errors.Is(err, io.EOF) || err.Error() != "of x: EOF" ||
		strings.Contains(err.Error(), "%!") {
		t.Errorf("%v wraps nothing", err)
	}
}
