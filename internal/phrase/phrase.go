package phrase

import (
	"errors"
	"fmt"
	"strings"
)

// sentence is an error that knows what its text was made of.
type sentence struct {
	form string
	args []any
	err  error
}

// Errorf is fmt.Errorf; the result can be translated.
func Errorf(form string, args ...any) error { return &sentence{form, args, fmt.Errorf(form, args...)} }

// Error implements error.
func (s *sentence) Error() string { return s.err.Error() }

// Unwrap returns what the error wraps.
func (s *sentence) Unwrap() error { return s.err }

// Translate returns the text of a form in another language; a form has %s where
// the error has %w.
type Translate func(form string, args []any) string

// Text is the text of err, translated as far as it was made by Errorf: of joined
// errors each, of an error among the values that one, too.
func Text(err error, translate Translate) string {
	text := err.Error()
	for e := err; e != nil && e.Error() == text; e = errors.Unwrap(e) {
		if s, is := e.(*sentence); is { //nolint:errorlint // this one; the loop goes on to what it wraps
			return s.text(translate)
		}
		if several, is := e.(interface{ Unwrap() []error }); is {
			return textOfEach(text, several.Unwrap(), translate)
		}
	}
	return text
}

func (s *sentence) text(translate Translate) string {
	args := make([]any, len(s.args))
	for i, arg := range s.args {
		args[i] = arg
		if err, is := arg.(error); is {
			args[i] = Text(err, translate)
		}
	}
	return translate(strings.ReplaceAll(s.form, "%w", "%s"), args)
}

// textOfEach is the text of several errors whose English together is known: a line
// each, or one of them that the others only mark.
func textOfEach(text string, all []error, translate Translate) string {
	each, texts := make([]string, len(all)), make([]string, len(all))
	for i, err := range all {
		if texts[i] = err.Error(); texts[i] == text {
			return Text(err, translate)
		}
		each[i] = Text(err, translate)
	}
	if strings.Join(texts, "\n") != text {
		return text
	}
	return strings.Join(each, "\n")
}
