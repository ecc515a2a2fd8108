package template

import (
	"errors"
	"fmt"
	"html"
	"maps"
	"strconv"
	"strings"
	"time"
)

// substitute replaces {{ name }} in text by its value. It is no language: no
// conditions, no calls, no access to anything but vars. Values are escaped;
// what was put in is not looked at again. Unknown names become nothing, as in
// the CMS.
//
// strict refuses what only the CMS's own Twig can do; lenient leaves it as it
// stands.
func substitute(text string, vars map[string]value, escape func(string) string, mode strictness) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{{")
		if mode == strict && strings.Contains(before, "{%") {
			return "", errTwig
		}
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		inside, after, closed := strings.Cut(rest, "}}")
		name, simple := variable(inside)
		switch {
		case closed && simple:
			b.WriteString(vars[name].text(escape))
			text = after
		case mode == strict:
			return "", errTwig
		default:
			b.WriteString("{{")
			text = rest
		}
	}
}

// FillIn replaces {{ name }} in a text of a mail by its value, which is escaped
// where the text is HTML. What is not understood stays as it stands.
func FillIn(text string, data map[string]any, look Branding, html bool) string {
	escape := plain
	if html {
		escape = escapeHTML
	}
	filled, _ := substitute(text, variables(data, look), escape, lenient) // lenient refuses nothing
	return filled
}

// variablesIn lists the names that text uses, each once for each use.
func variablesIn(text string) []string {
	var names []string
	for {
		_, rest, found := strings.Cut(text, "{{")
		if !found {
			return names
		}
		inside, after, closed := strings.Cut(rest, "}}")
		if name, simple := variable(inside); closed && simple {
			names = append(names, name)
		}
		text = after
	}
}

type strictness bool

const (
	strict  strictness = true
	lenient strictness = false
)

var errTwig = errors.New("it uses conditions, loops or filters of Twig, which only the CMS can run: let the CMS " +
	"render it and send its HTML as body")

// variable reads "name", "user.name" or "name|e" and "name | raw" – both of
// which are escaped here all the same.
func variable(inside string) (string, bool) {
	name, filter, filtered := strings.Cut(strings.Trim(inside, " \t\r\n-"), "|")
	name, filter = strings.TrimSpace(name), strings.TrimSpace(filter)
	if filtered && filter != "e" && filter != "escape" && filter != "raw" {
		return "", false
	}
	if name == "" || len(name) > 100 ||
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") != "" {
		return "", false
	}
	return name, true
}

// value is what a variable stands for. Trusted values are the service's HTML.
type value struct {
	plain   string
	trusted bool
}

func (v value) text(escape func(string) string) string {
	if v.trusted {
		return v.plain
	}
	return escape(v.plain)
}

func plain(text string) string { return text }

func escapeHTML(text string) string { return html.EscapeString(text) }

// variables are the names that a body may use: the payload's data, nested ones
// with dots, and those about the site that the CMS's own mails have.
func variables(data map[string]any, look Branding) map[string]value {
	vars := map[string]value{}
	flatten(vars, "", data, 0)
	maps.Copy(vars, look.variables())
	return vars
}

func flatten(into map[string]value, prefix string, data map[string]any, depth int) {
	for name, v := range data {
		switch v := v.(type) {
		case nil:
			into[prefix+name] = value{}
		case map[string]any:
			if depth < 5 {
				flatten(into, prefix+name+".", v, depth+1)
			}
		case string:
			into[prefix+name] = value{plain: v}
		case float64: // JSON's only number: whole ones without an exponent
			into[prefix+name] = value{plain: strconv.FormatFloat(v, 'f', -1, 64)}
		default:
			into[prefix+name] = value{plain: fmt.Sprint(v)}
		}
	}
}

// variables are the names that the CMS gives all its mails.
func (l Branding) variables() map[string]value {
	return map[string]value{
		"site_title":       {plain: l.Title},
		"site_url":         {plain: l.URL},
		"site_logo":        {plain: l.Logo},
		"site_email":       {plain: l.Email},
		"site_admin_email": {plain: l.AdminEmail},
		"site_copyright":   {plain: l.Copyright},
		"date_time":        {plain: l.Now.Format(time.DateTime)},
		"date_year":        {plain: strconv.Itoa(l.Now.Year())},
		"now":              {plain: l.Now.Format(time.DateTime)},
		"header":           {plain: l.header(), trusted: true},
		"footer":           {plain: l.footer(), trusted: true},
		"css":              {}, "html_attributes": {}, "body_attributes": {}, "site_social_links": {},
	}
}

// header and footer stand in for the CMS's own, which are Twig.
func (l Branding) header() string {
	title := html.EscapeString(l.Title)
	if l.Logo != "" {
		title = fmt.Sprintf(`<img src="%s" alt="%s" style="max-height:%dpx">`, html.EscapeString(l.Logo), title,
			l.LogoHeight)
	}
	return fmt.Sprintf(
		`<!DOCTYPE html><html><body style="font-family:sans-serif;color:#222"><p><a href="%s">%s</a></p>`,
		html.EscapeString(l.URL), title)
}

func (l Branding) footer() string {
	return `<hr><p style="color:#666;font-size:12px">` + html.EscapeString(l.Copyright) + `</p></body></html>`
}
