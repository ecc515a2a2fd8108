package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reference is the API for a page.
type Reference struct {
	Areas   []Area // ours
	Compat  []Area // in the shapes of specifications
	Schemas []Schema
	// Types are the payloads of job types.
	Types []Schema
}

// Area is calls that belong together.
type Area struct {
	Name  string
	Calls []Call
}

// Call is a method of a path.
type Call struct {
	ID, Method, Path, Summary, Scope string
	Params                           []Param
	Body, Answer                     *Content
	Status                           string // of success: "200, 202"
	Curl                             string
}

// Param is a parameter of a call.
type Param struct {
	Name, In, About string
	Required        bool
}

// Content is the body of a request or an answer.
type Content struct {
	Media   string
	Schema  string // the name of its schema; "" has none
	Example string
}

// Schema is a named type.
type Schema struct {
	Name, Example string
	Fields        []Field
}

// Field is one of a schema.
type Field struct {
	Name, Type, About, Default, Unit string
	Ref                              string // the schema that its type, or its items' type, is
	Required                         bool
}

type operation struct {
	ID, Summary string
	Tags        []string
	Security    []map[string][]string
	Description string
	Parameters  []struct {
		Name, In, Description string
		Required              bool
	}
	RequestBody *struct {
		Content map[string]media
	}
	Responses map[string]struct {
		Content map[string]media
	}
}

type media struct {
	Schema  node
	Example any
}

type document struct {
	Paths      map[string]map[string]json.RawMessage
	Components struct{ Schemas map[string]node }
}

// Read makes the reference of a document.
func Read(openapi []byte) (*Reference, error) {
	var d document
	if err := json.Unmarshal(openapi, &d); err != nil {
		return nil, fmt.Errorf("reading the description of the API: %w", err)
	}
	r := &Reference{}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			raw, there := d.Paths[path][method]
			if !there {
				continue
			}
			var o operation
			if err := json.Unmarshal(raw, &o); err != nil {
				return nil, fmt.Errorf("reading %s %s: %w", method, path, err)
			}
			if len(o.Tags) == 0 {
				return nil, fmt.Errorf("%s %s has no tag", method, path)
			}
			into := &r.Areas
			if compat(path) {
				into = &r.Compat
			}
			add(into, o.Tags[0], d.call(method, path, o))
		}
	}
	slices.SortStableFunc(r.Areas, func(a, b Area) int { return place[a.Name] - place[b.Name] })
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.schema(name)
		if strings.Contains(name, ".") {
			r.Types = append(r.Types, s)
		} else {
			r.Schemas = append(r.Schemas, s)
		}
	}
	return r, nil
}

// place is where an area stands that is not in the order of paths.
var place = map[string]int{"jobs": -2, "failed": -1, "openapi": 1, "health": 2}

// compat says whether a path speaks the words of a specification.
func compat(path string) bool {
	for _, of := range []string{"/api/jobs", "/api/admin/", "/api/cron/"} {
		if strings.HasPrefix(path, of) {
			return true
		}
	}
	return false
}

func add(areas *[]Area, name string, call Call) {
	i := slices.IndexFunc(*areas, func(a Area) bool { return a.Name == name })
	if i < 0 {
		*areas, i = append(*areas, Area{Name: name}), len(*areas)
	}
	(*areas)[i].Calls = append((*areas)[i].Calls, call)
}

func (d document) call(method, path string, o operation) Call {
	c := Call{ID: method + strings.NewReplacer("/", "-", "{", "", "}", "").Replace(path),
		Method: strings.ToUpper(method), Path: path, Summary: o.Summary}
	if scope, says := strings.CutPrefix(o.Description, "Needs the scope "); says {
		c.Scope = strings.TrimSuffix(scope, ".")
	}
	for _, p := range o.Parameters {
		c.Params = append(c.Params, Param{Name: p.Name, In: p.In, About: p.Description, Required: p.Required})
	}
	if o.RequestBody != nil {
		for name, content := range o.RequestBody.Content {
			c.Body = d.content(name, content, request)
		}
	}
	var statuses []string
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		if status == "default" {
			continue
		}
		statuses = append(statuses, status)
		for name, content := range o.Responses[status].Content {
			c.Answer = d.content(name, content, answer)
		}
	}
	c.Status = strings.Join(statuses, ", ")
	c.Curl = c.curl()
	return c
}

func (d document) content(name string, m media, of purpose) *Content {
	c := &Content{Media: name, Schema: m.Schema.name()}
	switch {
	case m.Example != nil:
		c.Example = indented(m.Example)
	case strings.HasSuffix(name, "json"):
		c.Example = indented(d.example("", m.Schema, example{of, 0}))
	}
	return c
}

// curl is the call by the program curl.
func (c Call) curl() string {
	var b strings.Builder
	b.WriteString("curl")
	if c.Method != "GET" {
		b.WriteString(" -X " + c.Method)
	}
	if c.Scope != "" {
		b.WriteString(` -H "Authorization: Bearer $TOKEN"`)
	}
	if c.Body != nil {
		b.WriteString(" --json @body.json")
	}
	path := c.Path
	for _, p := range c.Params {
		if p.In == "path" {
			path = strings.ReplaceAll(path, "{"+p.Name+"}", strings.ToUpper(p.Name))
		}
	}
	return b.String() + ` "$URL` + path + `"`
}

// Find keeps what has every word of a query; "" keeps all.
func (r *Reference) Find(query string) *Reference {
	words := strings.Fields(strings.ToLower(query))
	if len(words) == 0 {
		return r
	}
	fits := func(texts ...string) bool {
		all := strings.ToLower(strings.Join(texts, " "))
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(all, w) })
	}
	schemas := func(list []Schema) []Schema {
		return keep(list, func(s Schema) bool {
			texts := []string{s.Name}
			for _, f := range s.Fields {
				texts = append(texts, f.Name, f.About)
			}
			return fits(texts...)
		})
	}
	areas := func(list []Area) (found []Area) {
		for _, a := range list {
			calls := keep(a.Calls, func(c Call) bool {
				texts := []string{a.Name, c.Method, c.Path, c.Summary, c.Scope}
				for _, p := range c.Params {
					texts = append(texts, p.Name, p.About)
				}
				return fits(texts...)
			})
			if len(calls) > 0 {
				found = append(found, Area{a.Name, calls})
			}
		}
		return found
	}
	return &Reference{areas(r.Areas), areas(r.Compat), schemas(r.Schemas), schemas(r.Types)}
}

func keep[T any](list []T, fits func(T) bool) (kept []T) {
	for _, item := range list {
		if fits(item) {
			kept = append(kept, item)
		}
	}
	return kept
}

// Count is how many calls and schemas there are.
func (r *Reference) Count() int {
	n := len(r.Schemas) + len(r.Types)
	for _, a := range slices.Concat(r.Areas, r.Compat) {
		n += len(a.Calls)
	}
	return n
}
