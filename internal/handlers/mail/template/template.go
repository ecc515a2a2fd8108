package template

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io"
	"io/fs"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Content is what a mail says. HTML may be empty; Text never is.
type Content struct{ Subject, HTML, Text string }

// Set renders mails. A template is two files, NAME.html.tmpl and
// NAME.txt.tmpl, inside layout.html.tmpl and layout.txt.tmpl; NAME.LOCALE.html.tmpl
// wins where the locale is asked for. The text file defines "subject".
//
// A template sees the payload's data and "site", plain values without
// methods: it cannot run code or open files. Its output is bounded.
type Set struct {
	Own    fs.FS
	Folder string // the operator's; "" is none
}

// maxOutput bounds one rendered text.
const maxOutput = 2 << 20

// NewSet checks that every template in own can be parsed.
func NewSet(own fs.FS, folder string) (*Set, error) {
	t := &Set{Own: own, Folder: folder}
	for _, name := range t.Names() {
		if _, err := t.parse(name, ""); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Names lists the templates, the operator's own included.
func (t *Set) Names() []string {
	var names []string
	for _, files := range t.layers() {
		found, err := fs.Glob(files, "*.txt.tmpl")
		if err != nil { // only a wrong pattern
			continue
		}
		for _, file := range found {
			name := strings.TrimSuffix(file, ".txt.tmpl")
			if name != "layout" && !strings.Contains(name, ".") {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// layers are where files are looked for, in order.
func (t *Set) layers() []fs.FS {
	if t.Folder == "" {
		return []fs.FS{t.Own}
	}
	return []fs.FS{os.DirFS(t.Folder), t.Own}
}

var templateName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,60}$`)
var localeName = regexp.MustCompile(`^[A-Za-z]{2,3}([_-][A-Za-z0-9]{2,8})?$`)

// read finds the file of a part ("html.tmpl"): the locale's, its language's,
// the plain one; in each, the operator's first.
func (t *Set) read(name, locale, part string) (string, error) {
	candidates := []string{name + "." + part}
	if localeName.MatchString(locale) {
		language, _, _ := strings.Cut(strings.ReplaceAll(locale, "_", "-"), "-")
		candidates = []string{name + "." + locale + "." + part, name + "." + language + "." + part, name + "." + part}
	}
	for _, file := range candidates {
		for _, files := range t.layers() {
			text, err := readBounded(files, file)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return text, err
		}
	}
	return "", fmt.Errorf("there is no mail template %s: known are %s", name, strings.Join(t.Names(), ", "))
}

func readBounded(files fs.FS, name string) (string, error) {
	f, err := files.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxOutput))
	return string(text), err
}

type parsed struct {
	html *htmltemplate.Template
	text *template.Template
}

func (t *Set) parse(name, locale string) (parsed, error) {
	var p parsed
	if !templateName.MatchString(name) {
		return p, fmt.Errorf("%.60q is not the name of a mail template", name)
	}
	p.html = htmltemplate.New("layout").Option("missingkey=error")
	p.text = template.New("layout").Option("missingkey=error")
	for _, file := range []string{"layout", name} {
		html, err := t.read(file, locale, "html.tmpl")
		if err != nil {
			return p, err
		}
		text, err := t.read(file, locale, "txt.tmpl")
		if err != nil {
			return p, err
		}
		if _, err := p.html.Parse(html); err != nil {
			return p, fmt.Errorf("the mail template %s: %w", file, err)
		}
		if _, err := p.text.Parse(text); err != nil {
			return p, fmt.Errorf("the mail template %s: %w", file, err)
		}
	}
	if p.text.Lookup("subject") == nil {
		return p, fmt.Errorf(`the mail template %s.txt.tmpl does not define "subject"`, name)
	}
	return p, nil
}

// Administrators is the word for the CMS's administrators as recipients.
const Administrators = "administrators"

// ToAdministrators says whether a template is for the administrators where a mail
// names no recipient: its text file, or the built-in one of that name, defines
// "to" as Administrators.
func (t *Set) ToAdministrators(name string) bool {
	for _, set := range []*Set{t, {Own: t.Own}} {
		p, err := set.parse(name, "")
		if err != nil || p.text.Lookup("to") == nil {
			continue
		}
		var to strings.Builder
		err = p.text.ExecuteTemplate(&boundedWriter{ctx: context.Background(), w: &to, left: 100}, "to", nil)
		return err == nil && strings.TrimSpace(to.String()) == Administrators
	}
	return false
}

// Render fills a template in. A missing template or value is permanent.
func (t *Set) Render(ctx context.Context, name, locale string, data map[string]any, look Branding) (Content, error) {
	if locale == "" {
		locale = look.Locale
	}
	p, err := t.parse(name, locale)
	if err != nil {
		return Content{}, jobs.Permanent(err)
	}
	values, _ := wholeNumbers(data, 0).(map[string]any)
	values["site"] = look.values()
	var c Content
	for _, part := range []struct {
		into    *string
		execute func(io.Writer) error
	}{
		{&c.Subject, func(w io.Writer) error { return p.text.ExecuteTemplate(w, "subject", values) }},
		{&c.HTML, func(w io.Writer) error { return p.html.Execute(w, values) }},
		{&c.Text, func(w io.Writer) error { return p.text.Execute(w, values) }},
	} {
		var out bytes.Buffer
		if err := part.execute(&boundedWriter{ctx: ctx, w: &out, left: maxOutput}); err != nil {
			return Content{}, jobs.Permanent(fmt.Errorf("filling in the mail template %s: %w", name, err))
		}
		*part.into = strings.TrimSpace(out.String()) + "\n"
	}
	c.Subject = strings.Join(strings.Fields(c.Subject), " ") // values may hold line breaks
	return c, nil
}

// wholeNumbers copies data so that 12345678 does not print as 1.2345678e+07,
// which JSON's only number would.
func wholeNumbers(v any, depth int) any {
	if depth > 20 {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key] = wholeNumbers(item, depth+1)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = wholeNumbers(item, depth+1)
		}
		return list
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	}
	return v
}

// boundedWriter ends a template that writes too much or too long.
type boundedWriter struct {
	ctx  context.Context
	w    io.Writer
	left int
}

func (b *boundedWriter) Write(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("its output is too long")
	}
	return b.w.Write(p)
}

// values are what templates know as .site.
func (l Branding) values() map[string]any {
	links := make([]any, len(l.Links))
	for i, link := range l.Links {
		links[i] = map[string]any{"name": link.Name, "url": link.URL}
	}
	return map[string]any{"title": l.Title, "url": l.URL, "logo": l.Logo, "logoHeight": l.LogoHeight, "email": l.Email,
		"copyright": l.Copyright, "links": links, "year": l.Now.Year()}
}
