package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web/format"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// functions are what templates may call, in one language.
func functions(lang locale.Printer, files assets, now func() time.Time) template.FuncMap {
	return template.FuncMap{
		"t":     func(key string, args ...any) any { return textOf(lang, key, args) },
		"asset": files.path,
		"icon":  files.icon, "entryicon": files.entryIcon, "badge": files.badge, "initials": initials,
		"ago":    func(t time.Time) template.HTML { return moments(lang, now(), t) },
		"day":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") + " UTC" },
		"ms":     func(n int64) string { return format.Duration(time.Duration(n) * time.Millisecond) },
		"num":    format.Number[int64],
		"count":  func(n int) string { return format.Number(int64(n)) },
		"bytes":  format.Bytes,
		"pretty": Pretty, "short": short, "path": url.PathEscape, "query": url.QueryEscape,
		"firstline": format.FirstLine,
		"rate":      func(share float64) string { return strconv.FormatFloat(share*100, 'f', 1, 64) },
		"percent":   format.Percent, "dict": dict, "languages": locale.Languages,
		"name": lang.Name, "join": strings.Join,
		"statuses": StatusNames,
		"list":     func(words ...string) []string { return words },
		"clock":    func(t time.Time) string { return t.UTC().Format("15:04:05") },
		"outcome":  named(lang, "outcome."), "tick": named(lang, "tick."),
		"minus": func(a, b int64) int64 { return max(a-b, 0) }, "share": shareBar,
		"since": func(t time.Time) string { return format.Duration(now().Sub(t)) },
	}
}

// textOf is a text for a page. An argument that is markup stays markup; the rest is
// escaped like any text.
func textOf(lang locale.Printer, key string, args []any) any {
	var marks []string
	plain := slices.Clone(args)
	for i, arg := range args {
		if markup, is := arg.(template.HTML); is {
			plain[i] = fmt.Sprintf("\uE000%d\uE000", i)
			marks = append(marks, fmt.Sprintf("\uE000%d\uE000", i), string(markup))
		}
	}
	text := lang.Text(key, plain...)
	if marks == nil {
		return text
	}
	return template.HTML(strings.NewReplacer(marks...).Replace(template.HTMLEscapeString(text)))
}

// dict makes the argument of a partial: dict "page" $ "job" .
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict needs pairs")
	}
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: %v is no name", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}

// moments is a time for people: how far away, with the whole of it in a title.
func moments(lang locale.Printer, now, t time.Time) template.HTML {
	if t.IsZero() || t.Unix() == 0 {
		return "–"
	}
	d := now.Sub(t)
	var text string
	switch {
	case d < -time.Second:
		text = lang.Text("time.in", format.Duration(-d))
	case d < 2*time.Second:
		text = lang.Text("time.now")
	default:
		text = lang.Text("time.ago", format.Duration(d))
	}
	t = t.UTC()
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s UTC">%s</time>`, t.Format(time.RFC3339),
		t.Format("2006-01-02 15:04:05"), template.HTMLEscapeString(text)))
}

// Pretty indents JSON; templates escape it, so it need not escape itself. JSON
// that grows too much by it, as thousands of lists in lists do, stays as it is.
func Pretty(raw json.RawMessage) string {
	if indentedSize(raw) > 8*len(raw)+64<<10 {
		return string(raw)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(raw); err != nil {
		return string(raw)
	}
	return readable(strings.TrimSpace(out.String()))
}

// readable writes <, > and & as they are; encoders escape them for the sake of HTML, and a page escapes by itself.
func readable(text string) string {
	if !strings.Contains(text, `\u00`) {
		return text
	}
	plain := map[string]byte{`\u003c`: '<', `\u003e`: '>', `\u0026`: '&'}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		if c := plain[strings.ToLower(text[i:min(i+6, len(text))])]; c != 0 {
			out = append(out, c)
			i += 5
			continue
		}
		out = append(out, text[i], text[i+1]) // any other escape, a backslash too
		i++
	}
	return string(out)
}

// indentedSize is about how many bytes JSON has when it is indented by two spaces.
func indentedSize(raw json.RawMessage) (size int) {
	depth, inText, escaped := 0, false, false
	for _, c := range raw {
		size++
		switch {
		case escaped:
			escaped = false
		case inText:
			escaped, inText = c == '\\', c != '"'
		case c == '"':
			inText = true
		case c == '{' || c == '[':
			depth++
			size += 1 + 2*depth
		case c == ',':
			size += 1 + 2*depth
		case c == '}' || c == ']':
			depth--
			size += 1 + 2*depth
		}
	}
	return size
}

// initials are the first letters of a name's first two words.
func initials(name string) string {
	var first []rune
	between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	for _, word := range strings.FieldsFunc(name, between) {
		if len(first) < 2 {
			first = append(first, unicode.ToUpper([]rune(word)[0]))
		}
	}
	return string(first)
}

func short(id string) string {
	if len(id) == 36 {
		return id[:8]
	}
	return redact.Clip(id, 20)
}

// named translates a word of another package where the catalogue has it, and
// shows the word itself where not.
func named(lang locale.Printer, prefix string) func(string) string {
	return func(word string) string {
		return lang.Name(prefix, word)
	}
}

// shareBar is a thin bar, as long as n is of top.
func shareBar(n, top int64) template.HTML {
	return template.HTML(
		fmt.Sprintf(
			`<svg class="share" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect class="low" width="%d" height="6" rx="2"/></svg>`, max(format.Percent(n, top), 1)))
}

// StatusNames are the statuses of jobs, in the order of the pages.
func StatusNames() []string {
	return []string{"queued", "processing", "completed", "failed", "cancelled"}
}
