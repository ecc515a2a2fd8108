package cli

import (
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// button is one of a form, with what it sends.
type button struct {
	action, text string
	values       url.Values
	empty        []string // required fields that nobody filled in
}

func (b button) kind() string {
	u, err := url.Parse(b.action)
	if err != nil {
		return b.action
	}
	return kind(u) + " " + b.values.Get("action") + b.values.Get("type") + b.values.Get("part") +
		b.values.Get("cause") + " " + b.text
}

// buttonsOf are the buttons of a page that send something.
func buttonsOf(root *html.Node, at string) []button {
	here, err := url.Parse(at)
	if err != nil {
		return nil
	}
	var all []button
	for f := range root.Descendants() {
		if f.Data != "form" || !strings.EqualFold(attribute(f, "method"), "post") {
			continue
		}
		fields := fieldsOf(root, f)
		for _, n := range fields {
			if n.Data != "button" || attribute(n, "type") == "button" {
				continue
			}
			b := button{text: textOf(n), values: url.Values{}}
			to := attribute(f, "action")
			if own := attribute(n, "formaction"); own != "" {
				to = own
			}
			if u, err := here.Parse(to); err == nil {
				b.action = u.String()
			}
			if name := attribute(n, "name"); name != "" {
				b.values.Set(name, attribute(n, "value"))
			}
			b.fill(fields)
			all = append(all, b)
		}
	}
	return all
}

// fieldsOf are what belongs to a form: inside it, or by its name.
func fieldsOf(root, form *html.Node) (fields []*html.Node) {
	id := attribute(form, "id")
	for n := range root.Descendants() {
		if !slices.Contains([]string{"input", "button", "select", "textarea"}, n.Data) || n.Type != html.ElementNode {
			continue
		}
		owner := n.Parent
		for owner != nil && owner.Data != "form" {
			owner = owner.Parent
		}
		if named := attribute(n, "form"); named != "" && named == id || named == "" && owner == form {
			fields = append(fields, n)
		}
	}
	return fields
}

// fill gives the fields the values that a person who changes nothing sends; of boxes
// that choose among many all.
func (b *button) fill(fields []*html.Node) {
	for _, n := range fields {
		name, value := attribute(n, "name"), attribute(n, "value")
		if name == "" || n.Data == "button" || has(n, "disabled") {
			continue
		}
		switch {
		case n.Data == "textarea":
			value = textOf(n)
		case n.Data == "select":
			value = chosen(n)
		case attribute(n, "type") == "checkbox" || attribute(n, "type") == "radio":
			many := name == "ids"
			if !has(n, "checked") && !has(n, "required") && !many {
				continue
			}
		case attribute(n, "type") == "file":
			continue
		}
		if text := written[name]; text != "" && (value == "" || name == "cron") {
			value = text
		}
		if has(n, "required") && value == "" {
			b.empty = append(b.empty, name)
		}
		b.values.Add(name, value)
	}
}

// written is what a person writes into fields: what must not be empty, or must change.
var written = map[string]string{"address": "nobody@demo.example", "url": "https://127.0.0.1:9/hook", "name": "mine",
	"p.to": "reader@demo.example", "p.subject": "Hello", "p.text": "Hello", "post": "2", "cron": "15 5 * * *"}

func chosen(n *html.Node) string {
	var first *html.Node
	for o := range n.Descendants() {
		if o.Data == "option" && (first == nil || has(o, "selected")) {
			first = o
		}
	}
	if first == nil {
		return ""
	}
	if has(first, "value") {
		return attribute(first, "value")
	}
	return textOf(first)
}

func has(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func textOf(n *html.Node) string {
	var text strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			text.WriteString(c.Data + " ")
		}
	}
	return strings.Join(strings.Fields(text.String()), " ")
}
