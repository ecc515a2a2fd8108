package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// node is a JSON Schema, as far as the document uses it.
type node struct {
	Ref                  string `json:"$ref"`
	Type                 any    // a word or a list of words
	Format               string
	Description          string
	Properties           map[string]node
	Required             []string
	Items                *node
	AdditionalProperties json.RawMessage
	Enum                 []any
	Const                any
	Default              any
	Examples             []any
	Unit                 string `json:"x-unit"`
	AllOf                []node
}

// name is that of the schema that a node refers to; "" is none.
func (n node) name() string {
	if len(n.AllOf) == 1 {
		n = n.AllOf[0]
	}
	return strings.TrimPrefix(n.Ref, "#/components/schemas/")
}

// types are the words of its type.
func (n node) types() (words []string) {
	switch t := n.Type.(type) {
	case string:
		return []string{t}
	case []any:
		for _, word := range t {
			words = append(words, fmt.Sprint(word))
		}
	}
	return words
}

// of is what the example of a schema is for: payloads and bodies are requests.
func of(name string) purpose {
	if strings.Contains(name, ".") || strings.HasSuffix(name, "Request") {
		return request
	}
	return answer
}

func (d document) schema(name string) Schema {
	n := d.Components.Schemas[name]
	s := Schema{Name: name, Example: indented(d.example("", n, example{of(name), 0}))}
	for _, field := range slices.Sorted(maps.Keys(n.Properties)) {
		p := n.Properties[field]
		f := Field{Name: field, About: p.Description, Unit: p.Unit, Required: slices.Contains(n.Required, field)}
		f.Type, f.Ref = p.written()
		if p.Default != nil {
			f.Default = fmt.Sprint(p.Default)
		}
		s.Fields = append(s.Fields, f)
	}
	return s
}

// written is a type for people, and the schema that it names.
func (n node) written() (text, ref string) {
	if ref = n.name(); ref != "" {
		return ref, ref
	}
	words := n.types()
	for i, word := range words {
		switch {
		case word == "array" && n.Items != nil:
			var inner string
			if inner, ref = n.Items.written(); inner != "" {
				words[i] = "array of " + inner
			}
		case word == "string" && n.Format != "":
			words[i] = n.Format
		}
	}
	if len(n.Enum) > 0 {
		var values []string
		for _, v := range n.Enum {
			values = append(values, fmt.Sprint(v))
		}
		return strings.Join(values, " | "), ref
	}
	if len(words) == 0 {
		return "any", ref
	}
	return strings.Join(words, " | "), ref
}

// purpose is what an example is for: an answer has all simple fields, a request those
// that it must have or that have an example.
type purpose int

const (
	answer purpose = iota
	request
)

// maxDepth is how deep an example goes.
const maxDepth = 4

// example is how an example is made.
type example struct {
	purpose
	depth int
}

func (e example) deeper() example { return example{e.purpose, e.depth + 1} }

// indented is a value as JSON for people.
func indented(value any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if e.Encode(value) != nil {
		return ""
	}
	return strings.TrimSpace(out.String())
}

// example is a value that fits a schema: an example or a default that it names, else
// one by its type and its field's name.
func (d document) example(field string, n node, e example) any {
	if ref := n.name(); ref != "" {
		n = d.Components.Schemas[ref]
	}
	switch {
	case n.Const != nil:
		return n.Const
	case len(n.Examples) > 0:
		return n.Examples[0]
	case n.Default != nil:
		return n.Default
	case len(n.Enum) > 0:
		return n.Enum[0]
	}
	words := n.types()
	if len(words) == 0 {
		return map[string]any{}
	}
	switch words[0] {
	case "object":
		return d.object(n, e)
	case "array":
		if n.Items == nil || e.depth >= maxDepth {
			return []any{}
		}
		return []any{d.example(field, *n.Items, e.deeper())}
	case "integer", "number":
		return 1
	case "boolean":
		return true
	}
	if n.Format == "date-time" {
		return "2026-11-21T12:00:00Z"
	}
	if text, known := named[field]; known {
		return text
	}
	return "text"
}

// object is an example of an object.
func (d document) object(n node, e example) map[string]any {
	value, all := map[string]any{}, e.depth == 0
	if e.purpose == request {
		for _, p := range n.Properties {
			all = all && len(p.Examples) == 0 && len(n.Required) == 0
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		p := n.Properties[name]
		simple := p.name() == "" && !slices.Contains(p.types(), "object")
		if slices.Contains(n.Required, name) || e.depth == 0 && len(p.Examples) > 0 || all && simple {
			value[name] = d.example(name, p, e.deeper())
		}
	}
	return value
}

// named are examples of texts by their field's name.
var named = map[string]string{"id": "01a207bd-24d8-722c-b15b-9e5b1228d6f4",
	"uuid": "01a207bd-24d8-722c-b15b-9e5b1228d6f4",
	"type": "mail.send", "topic": "mail.send", "jobType": "mail.send", "queue": "default", "status": "completed",
	"to": "zoe@example.com", "from": "shop@example.com", "address": "zoe@example.com",
	"url":    "https://example.com/hook",
	"worker": "web-1:4711", "host": "web-1", "error": "connection refused", "outcome": "completed",
	"cron": "0 3 * * *", "zone": "UTC", "ids": "01a207bd-24d8-722c-b15b-9e5b1228d6f4"}
