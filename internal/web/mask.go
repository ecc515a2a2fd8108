package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// masked stands where a secret was.
const masked = "•••"

// secretKey are names whose values are never shown.
var secretKey = regexp.MustCompile(`(?i)passw|passwd|secret|token|authorization|credential|api[_-]?key|private[_-]?key|cookie|^pin$|^otp$`)

// masker hides secrets in payloads before people see them.
type masker struct{ rules []maskRule }

// maskRule is one configured path: keys separated by dots, * is any key or
// index. kind, where it is set, limits it to one kind of job.
type maskRule struct {
	kind string
	path []string
}

func newMasker(paths []string) (*masker, error) {
	m := &masker{}
	for _, p := range paths {
		kind, keys, scoped := strings.Cut(p, ":")
		if !scoped {
			kind, keys = "", p
		}
		rule := maskRule{kind, strings.Split(keys, ".")}
		for _, key := range rule.path {
			if _, err := path.Match(key, ""); err != nil || key == "" {
				return nil, fmt.Errorf("the mask path %q is not keys separated by dots", p)
			}
		}
		m.rules = append(m.rules, rule)
	}
	return m, nil
}

// payload returns JSON that is fit to be shown. What is no JSON becomes a
// string of its beginning.
func (m *masker) payload(kind string, raw []byte) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage("{}")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // 64-bit ids stay as they are
	var value any
	if err := decoder.Decode(&value); err != nil || decoder.More() || !utf8.Valid(raw) {
		value = "(no JSON) " + clip(strings.ToValidUTF8(string(raw), "\uFFFD"), 200)
	}
	shown, err := json.Marshal(m.value(kind, nil, value))
	if err != nil {
		return json.RawMessage(`"(not readable)"`)
	}
	return shown
}

func (m *masker) value(kind string, at []string, value any) any {
	if len(at) > 0 && m.hides(kind, at) && value != nil && value != "" {
		return masked
	}
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = m.value(kind, append(at[:len(at):len(at)], key), inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = m.value(kind, append(at[:len(at):len(at)], "*"), inner)
		}
	}
	return value
}

func (m *masker) hides(kind string, at []string) bool {
	if secretKey.MatchString(at[len(at)-1]) {
		return true
	}
	for _, r := range m.rules {
		if (r.kind == "" || r.kind == kind) && matches(r.path, at) {
			return true
		}
	}
	return false
}

// matches compares a rule with a place; a rule may begin anywhere in it.
func matches(rule, at []string) bool {
	if len(rule) > len(at) {
		return false
	}
	for i, pattern := range rule {
		if ok, _ := path.Match(pattern, at[len(at)-len(rule)+i]); !ok {
			return false
		}
	}
	return true
}

// clip cuts text to n bytes at most, at a rune's border, and shows that it did.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
