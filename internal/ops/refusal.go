package ops

import (
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/redact"
)

// Refusal says why something that a person asked for is not done. Its text is
// made of Form and Args, for who says it in another language.
type Refusal struct {
	// Kind is jobs.ErrInvalid, jobs.ErrNotFound, or jobs.ErrConflict where things
	// forbid it now.
	Kind error
	// Field is what is wrong of the input, "" where it is no single field.
	Field string
	Form  string
	Args  []any
}

// Error is a whole sentence.
func (r *Refusal) Error() string { return fmt.Sprintf(r.Form, r.Args...) }

// Unwrap is the kind.
func (r *Refusal) Unwrap() error { return r.Kind }

func invalid(field, form string, args ...any) error {
	return &Refusal{Kind: jobs.ErrInvalid, Field: field, Form: form, Args: args}
}

func notFound(field, form string, args ...any) error {
	return &Refusal{Kind: jobs.ErrNotFound, Field: field, Form: form, Args: args}
}

func conflict(form string, args ...any) error {
	return &Refusal{Kind: jobs.ErrConflict, Form: form, Args: args}
}

// shown is what a person wrote, cut to be repeated in an answer.
func shown(text string) string { return redact.Clip(text, 40) }
