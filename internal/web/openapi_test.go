package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/cmsjobs/cmsjobs/internal/web"
)

var update = flag.Bool("update", false, "write golden files anew")

// schemas turns Go types into JSON Schema and collects the named ones.
type schemas map[string]any

var (
	timeType = reflect.TypeFor[time.Time]()
	rawType  = reflect.TypeFor[json.RawMessage]()
	notWord  = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

func (s schemas) of(t reflect.Type) map[string]any {
	switch {
	case t == timeType:
		return map[string]any{"type": "string", "format": "date-time"}
	case t == rawType || t.Kind() == reflect.Interface:
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Int32:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.object(t)
	}
	panic("no schema for " + t.String())
}

func (s schemas) object(t reflect.Type) map[string]any {
	name := schemaName(t)
	ref := map[string]any{"$ref": "#/components/schemas/" + name}
	if _, done := s[name]; done {
		return ref
	}
	properties, required := map[string]any{}, []string{}
	s[name] = nil // ends cycles
	s.fields(t, properties, &required)
	sort.Strings(required)
	s[name] = map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	return ref
}

func (s schemas) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if f.Anonymous && tag == "" {
			s.fields(f.Type, properties, required)
			continue
		}
		if !f.IsExported() || tag == "-" || tag == "" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		properties[name] = s.of(f.Type)
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
}

// schemaName writes Page[…/web.JobView] as JobViewPage.
func schemaName(t reflect.Type) string {
	name, inner, generic := strings.Cut(t.Name(), "[")
	if !generic {
		return strings.TrimSuffix(name, "View")
	}
	inner = strings.TrimSuffix(inner, "]")
	inner = strings.TrimSuffix(inner[strings.LastIndex(inner, ".")+1:], "View")
	return notWord.ReplaceAllString(inner, "") + map[string]string{"Page": "Page", "Items": "List"}[name]
}

var pathParameter = regexp.MustCompile(`:([a-z]+)`)

func document() map[string]any {
	s := schemas{}
	problem := s.of(reflect.TypeFor[web.Problem]())
	paths := map[string]map[string]any{}
	for _, r := range web.Routes() {
		if r.Page {
			continue
		}
		path := pathParameter.ReplaceAllString(r.Path, "{$1}")
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		paths[path][strings.ToLower(r.Method)] = operation(s, r, problem)
	}
	return map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{"title": "cmsjobs", "version": "1", "license": map[string]any{"name": "MIT", "identifier": "MIT"},
			"description": "Background jobs of a CMS. Refusals are problem documents (RFC 9457). Three families of paths share their handlers: /api/v1 is ours, /api/jobs and /api/admin/jobs are the specifications'."},
		"paths": paths,
		"components": map[string]any{"schemas": s, "securitySchemes": map[string]any{
			"token":   map[string]any{"type": "http", "scheme": "bearer"},
			"account": map[string]any{"type": "http", "scheme": "basic"},
			"session": map[string]any{"type": "apiKey", "in": "cookie", "name": "__Host-cmsjobs"},
		}},
	}
}

func operation(s schemas, r web.Route, problem map[string]any) map[string]any {
	op := map[string]any{"operationId": operationID(r), "summary": r.Summary, "tags": []string{strings.Split(r.Name, ".")[0]}}
	var parameters []any
	for _, m := range pathParameter.FindAllStringSubmatch(r.Path, -1) {
		parameters = append(parameters, map[string]any{"name": m[1], "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
	}
	for _, q := range r.Query {
		parameters = append(parameters, map[string]any{"name": q, "in": "query", "schema": map[string]any{"type": "string"}})
	}
	if r.Name == "jobs.enqueue" {
		parameters = append(parameters, map[string]any{"name": "Idempotency-Key", "in": "header", "schema": map[string]any{"type": "string", "maxLength": 255},
			"description": "The same key and body within a day make one job; another body is refused with 409."})
	}
	if parameters != nil {
		op["parameters"] = parameters
	}
	if r.Body != nil {
		op["requestBody"] = map[string]any{"content": map[string]any{"application/json": map[string]any{"schema": s.of(reflect.TypeOf(r.Body))}}}
	}
	if r.Scope != "" {
		op["description"] = "Needs the scope " + string(r.Scope) + "."
		op["security"] = []any{map[string]any{"token": []string{}}, map[string]any{"account": []string{}}, map[string]any{"session": []string{}}}
	} else {
		op["security"] = []any{}
	}
	success := map[string]any{"description": "Done."}
	switch {
	case r.Answer != nil:
		success["content"] = map[string]any{"application/json": map[string]any{"schema": s.of(reflect.TypeOf(r.Answer))}}
	case r.Type != "":
		success["content"] = map[string]any{r.Type: map[string]any{"schema": map[string]any{"type": "string"}}}
	}
	responses := map[string]any{"default": map[string]any{"description": "A problem.", "content": map[string]any{"application/problem+json": map[string]any{"schema": problem}}}}
	for _, status := range successes(r) {
		responses[strconv.Itoa(status)] = success
	}
	op["responses"] = responses
	return op
}

// successes are the statuses of success: an enqueue that finds its job there
// answers 200, a change that is left to a job 202.
func successes(r web.Route) []int {
	switch {
	case r.Name == "jobs.enqueue":
		return []int{200, 201}
	case reflect.TypeOf(r.Answer) == reflect.TypeFor[web.BulkAnswer]():
		return []int{200, 202}
	case r.Name == "health.ready":
		return []int{200, 503}
	case r.Status == 0:
		return []int{http.StatusOK}
	}
	return []int{r.Status}
}

func operationID(r web.Route) string {
	return r.Name + notWord.ReplaceAllString(strings.TrimPrefix(r.Path, "/api"), "_")
}

func TestTheDocumentIsThatOfTheRoutes(t *testing.T) {
	want, err := json.MarshalIndent(document(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Error("openapi.json is old: go test ./internal/web -run Document -update")
	}
	if err := contract().Validate(context.Background()); err != nil {
		t.Errorf("the document is no OpenAPI 3.1: %v", err)
	}
}

// contract is the document that is served.
var contract = sync.OnceValue(func() *openapi3.T {
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.json")
	if err != nil {
		panic(err)
	}
	return doc
})

// checkContract holds an answer, and the body that was accepted, against the
// document. site.do calls it for every answer of every test.
func checkContract(t testing.TB, method, path string, body any, a answer) {
	t.Helper()
	path, _, _ = strings.Cut(path, "?")
	template, item := findPath(method, path)
	if item == nil || *update {
		return
	}
	op := item.GetOperation(method)
	response := op.Responses.Status(a.status)
	if response == nil {
		response = op.Responses.Default()
		if a.status < 400 {
			t.Errorf("contract: %s %s answers %d, which the document does not know", method, template, a.status)
			return
		}
	}
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	if len(response.Value.Content) == 0 {
		if len(a.body) > 0 {
			t.Errorf("contract: %s %s %d has a body: %s", method, template, a.status, a.body)
		}
		return
	}
	media := response.Value.Content[kind]
	if media == nil {
		t.Errorf("contract: %s %s %d answers %q", method, template, a.status, kind)
		return
	}
	if !strings.HasSuffix(kind, "json") {
		return
	}
	checkSchema(t, method+" "+template+" answer", media.Schema, a.body)
	if text, ok := body.(string); ok && a.status < 300 && op.RequestBody != nil && text != "" {
		checkSchema(t, method+" "+template+" request", op.RequestBody.Value.Content["application/json"].Schema, []byte(text))
	}
}

func checkSchema(t testing.TB, what string, schema *openapi3.SchemaRef, text []byte) {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Errorf("contract: %s: %v in %s", what, err, text)
		return
	}
	if err := schema.Value.VisitJSON(value); err != nil {
		t.Errorf("contract: %s: %v\n%s", what, err, text)
	}
}

func findPath(method, path string) (string, *openapi3.PathItem) {
	var found string
	for template, item := range contract().Paths.Map() {
		if item.GetOperation(method) != nil && fits(template, path) && (found == "" || !strings.Contains(template, "{")) {
			found = template
		}
	}
	return found, contract().Paths.Value(found)
}

func fits(template, path string) bool {
	want, have := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return false
	}
	for i := range want {
		if want[i] != have[i] && !strings.HasPrefix(want[i], "{") {
			return false
		}
	}
	return true
}
