package ops

import (
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/schema"
)

// Qualifiers are the words that begin a part of a filter's line, as in
// type:mail.send, with the field that each fills.
func Qualifiers() []string {
	return []string{"type", "status", "queue", "worker", "tag", "id", "since", "until"}
}

// synonyms of qualifiers: one of Oban Web's, and the names of the fields.
var synonyms = map[string]string{"ids": "id", "node": "worker", "tags": "tag", "after": "since", "before": "until"}

// Add adds what one line asks for: qualifiers as type:mail.send queue:default, and
// the text to search for. Values with spaces stand in double quotes; several are
// separated by commas. Values of one qualifier widen the filter, different
// qualifiers narrow it. A text, since and until replace those of before.
func (f *Filter) Add(line string) error {
	if len(line) > 2*maxText {
		return invalid("q", "The filter is too long: %d values a field at most.", maxValues)
	}
	var text []string
	for _, part := range lineParts(line) {
		name, value, qualified := strings.Cut(part.text, ":")
		name = strings.ToLower(name)
		if other, is := synonyms[name]; is {
			name = other
		}
		if part.quoted || !qualified || !f.set(name, value) {
			if near := schema.Nearest(name, Qualifiers()); qualified && !part.quoted && near != "" {
				return invalid("q", "There is no qualifier %q; did you mean %q? A text that holds a colon stands in "+
					"quotes.", shown(name), near)
			}
			text = append(text, part.text)
		}
	}
	if len(text) > 0 {
		f.Text = strings.Join(text, " ")
	}
	return nil
}

// set fills the field of a qualifier, and says whether there is one. One without a
// value asks for nothing.
func (f *Filter) set(name, value string) bool {
	words, text := f.words(name), f.text(name)
	switch {
	case words != nil:
		values := list([]string{value})
		if name == "tag" { // it may hold commas
			values = slices.DeleteFunc([]string{value}, func(v string) bool { return v == "" })
		}
		for _, word := range values {
			if !slices.Contains(*words, word) {
				*words = append(*words, word)
			}
		}
	case text != nil:
		*text = value
	}
	return words != nil || text != nil
}

// words is the field of a qualifier that takes several words; nil for any other.
func (f *Filter) words(name string) *[]string {
	return map[string]*[]string{"type": &f.Type, "status": &f.Status, "queue": &f.Queue, "worker": &f.Worker,
		"tag": &f.Tag, "id": &f.IDs}[name]
}

// text is the field of a qualifier that takes one text; nil for any other.
func (f *Filter) text(name string) *string {
	return map[string]*string{"since": &f.Since, "until": &f.Until, "cause": &f.Cause, "text": &f.Text}[name]
}

// linePart is a word of a line; quoted ones began with a quote.
type linePart struct {
	text   string
	quoted bool
}

// lineParts splits a line at spaces outside of double quotes. A quote that is not
// closed goes to the end.
func lineParts(line string) []linePart {
	var parts []linePart
	var word strings.Builder
	var inside, begun, quoted bool
	end := func() {
		if begun {
			parts = append(parts, linePart{word.String(), quoted})
		}
		word.Reset()
		begun, quoted = false, false
	}
	for _, r := range line {
		switch {
		case r == '"':
			if !begun {
				quoted = true
			}
			inside, begun = !inside, true
		case !inside && (r == ' ' || r == '\t' || r == '\n' || r == '\r'):
			end()
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	end()
	return slices.DeleteFunc(parts, func(p linePart) bool { return p.text == "" })
}

// FilterToken is one condition of a filter, as the line writes it.
type FilterToken struct {
	Name, Value string
	Without     Filter // the filter when this is taken away
}

// Tokens are the conditions of the filter, each of which can be taken away.
func (f Filter) Tokens() []FilterToken {
	var all []FilterToken
	for _, name := range []string{"type", "status", "queue", "worker", "tag", "id"} {
		values := *f.words(name)
		for i, value := range values {
			without := f
			*without.words(name) = slices.Concat(values[:i], values[i+1:])
			all = append(all, FilterToken{name, value, without})
		}
	}
	for _, name := range []string{"since", "until", "cause", "text"} {
		if value := *f.text(name); value != "" {
			without := f
			*without.text(name) = ""
			all = append(all, FilterToken{name, value, without})
		}
	}
	return all
}
