package doctor

import (
	_ "embed"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cmsjobs/cmsjobs/internal/display"
)

//go:embed vi.yaml
var vietnamese []byte

// Vietnamese are the sentences of findings by their English form.
func Vietnamese() (texts map[string]string, err error) {
	if err := yaml.Unmarshal(vietnamese, &texts); err != nil {
		return nil, fmt.Errorf("reading doctor's Vietnamese texts: %w", err)
	}
	return texts, nil
}

// sentence is a text with its values, so that it can be said in another language. A
// value may be a sentence, too.
type sentence struct {
	form string
	args []any
}

func say(form string, args ...any) sentence { return sentence{form, args} }

func (s sentence) String() string { return s.in(nil) }

func (s sentence) in(texts map[string]string) string {
	form, args := s.form, make([]any, len(s.args))
	if other, known := texts[form]; known {
		form = other
	}
	for i, a := range s.args {
		if part, is := a.(sentence); is {
			a = part.in(texts)
		}
		args[i] = a
	}
	return display.Sprintf(form, args...)
}

// In is the finding in another language: its sentences are looked up by their English
// form, and the title and the remedy of a condition as the pages name them
// ("condition.no_worker", "condition.no_worker.fix"). What is not known stays English, as
// does what a server or a program says.
func (f Finding) In(texts map[string]string) Finding {
	if f.what.form != "" {
		f.What = f.what.in(texts)
	}
	switch other, known := texts[f.Fix]; {
	case f.fix.form != "":
		f.Fix = f.fix.in(texts)
	case known:
		f.Fix = other
	}
	if title, known := texts["condition."+f.Check]; known && f.title != "" {
		f.What = title + strings.TrimPrefix(f.What, f.title)
		if fix, known := texts["condition."+f.Check+".fix"]; known {
			f.Fix = strings.ReplaceAll(fix, "`", "")
		}
	}
	return f
}
