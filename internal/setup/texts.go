package setup

import (
	_ "embed"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed vi.yaml
var vietnamese []byte

// Texts are what setup says in another language, by the English form; nil is English.
// What the host's programs and the database say stays as it is.
type Texts map[string]string

// TextsFor are those of the language that an environment asks for.
func TextsFor(environ []string) (Texts, error) {
	t := Texts{}
	if Language(environ) != "vi" {
		return t, nil
	}
	if err := yaml.Unmarshal(vietnamese, &t); err != nil {
		return nil, fmt.Errorf("reading the Vietnamese texts: %w", err)
	}
	return t, nil
}

// Language is the one that an environment asks every program of a host for: that of the
// first of LC_ALL, LC_MESSAGES and LANG that is set; "" where none is.
func Language(environ []string) string {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		for _, variable := range environ {
			if value, is := strings.CutPrefix(variable, name+"="); is && value != "" {
				language, _, _ := strings.Cut(strings.ReplaceAll(value, ".", "_"), "_")
				return language
			}
		}
	}
	return ""
}

func (t Texts) form(english string) string {
	if other, known := t[english]; known {
		return other
	}
	return english
}

// Say is fmt.Sprintf in the language of the texts.
func (t Texts) Say(form string, args ...any) string { return fmt.Sprintf(t.form(form), args...) }

// Errorf is fmt.Errorf in the language of the texts.
func (t Texts) Errorf(form string, args ...any) error { return fmt.Errorf(t.form(form), args...) }
