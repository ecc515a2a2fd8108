package template

import (
	"strings"
	"testing"
)

func FuzzSubstitute(f *testing.F) {
	f.Add("Hi {{ name }}, {{x|e}} {{ y }", "<b>{{ name }}</b>", false)
	f.Add("{% if x %}{{ 'a' | trans }}{% endif %}", "x", true)
	f.Fuzz(func(t *testing.T, text, name string, twig bool) {
		vars := map[string]value{"name": {plain: name}}
		out, err := substitute(text, vars, escapeHTML, strictness(twig))
		if err != nil {
			return
		}
		if strings.Count(out, "<") > strings.Count(text, "<") {
			t.Fatalf("%q with %q became %q: a tag came from a value", text, name, out)
		}
		if len(out) > len(text)+(strings.Count(text, "{{")+1)*6*len(name) {
			t.Fatalf("%q grew to %d bytes", text, len(out))
		}
	})
}
