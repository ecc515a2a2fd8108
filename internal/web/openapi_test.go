package web_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	settings "github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/testgolden"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

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
		items := s.of(t.Elem())
		if t.Elem().Kind() == reflect.Pointer { // a list with gaps
			items["type"] = []any{items["type"], "null"}
		}
		return map[string]any{"type": "array", "items": items}
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
	s[name] = map[string]any{"type": "object", "properties": properties, "required": required,
		"additionalProperties": false}
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

// perType is the body of an enqueue for each type that the program has, with the
// schema of its payload, and for the types of other programs.
func (s schemas) perType(body map[string]any) map[string]any {
	registry, err := everyType()
	if err != nil {
		panic(err)
	}
	var each []any
	for _, v := range ops.Types(registry, "", false) {
		s[v.Name] = v.Schema
		each = append(each, map[string]any{"title": v.Name, "description": v.About, "properties": map[string]any{
			"type":    map[string]any{"const": v.Name},
			"payload": map[string]any{"$ref": "#/components/schemas/" + v.Name}}})
	}
	each = append(each, map[string]any{"title": "types of other programs, and aliases", "properties": map[string]any{
		"payload": map[string]any{"type": "object"}}})
	return map[string]any{"allOf": []any{body}, "anyOf": each}
}

// everyType is the registry of the program with all parts on.
func everyType() (*jobs.Registry, error) {
	l, err := settings.Load(settings.Sources{Environ: []string{"CMSJOBS_CONFIG=" + os.DevNull,
		"CMSJOBS_ANALYTICS_WEEKLY=true", "CMSJOBS_MAIL_MAILBOX_HOST=imap.example.com",
		"CMSJOBS_MAIL_MAILBOX_USERNAME=u", "CMSJOBS_MAIL_MAILBOX_PASSWORD=p"}, Flags: []settings.Flag{
		{Path: "external.commands.x.program", Value: "/bin/true", Name: "--set"},
		{Path: "external.calls.x.url", Value: "https://example.com/", Name: "--set"}}})
	if err != nil {
		return nil, err
	}
	p := &app.Process{Err: io.Discard, Now: time.Now}
	services, err := p.WithoutDatabase(l)
	if err != nil {
		return nil, err
	}
	defer services.Close()
	registry := jobs.NewRegistry()
	return registry, app.RegisterKinds(registry, services)
}

// schemaName writes ListView[…/ops.JobView] as JobPage.
func schemaName(t reflect.Type) string {
	name, inner, generic := strings.Cut(t.Name(), "[")
	if !generic {
		return strings.TrimSuffix(name, "View")
	}
	inner = strings.TrimSuffix(inner, "]")
	inner = strings.TrimSuffix(inner[strings.LastIndex(inner, ".")+1:], "View")
	return notWord.ReplaceAllString(inner, "") + map[string]string{"ListView": "Page", "Items": "List"}[name]
}

var pathParameter = regexp.MustCompile(`:([a-z]+)`)

func document() map[string]any {
	s := schemas{}
	problem := s.of(reflect.TypeFor[web.Problem]())
	paths := map[string]map[string]any{}
	for _, r := range allRoutes() {
		if r.Page {
			continue
		}
		path := pathParameter.ReplaceAllString(r.Path, "{$1}")
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		paths[path][strings.ToLower(r.Method)] = operation(s, r, problem)
	}
	if enqueue, is := s["EnqueueRequest"].(map[string]any); is {
		enqueue["examples"] = []any{enqueueExample("type")}
	}
	return map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{"title": "cmsjobs", "version": "1", "license": map[string]any{
			"name": "MIT", "identifier": "MIT"},
			"description": "Background jobs of a CMS. Refusals are problem documents (RFC 9457). Three families of " +
				"paths share their handlers: /api/v1 is ours, /api/jobs and /api/admin/jobs are the specifications'."},
		"paths": paths,
		"components": map[string]any{"schemas": s, "securitySchemes": map[string]any{
			"token":   map[string]any{"type": "http", "scheme": "bearer"},
			"account": map[string]any{"type": "http", "scheme": "basic"},
			"session": map[string]any{"type": "apiKey", "in": "cookie", "name": "__Host-cmsjobs"},
		}},
	}
}

func operation(s schemas, r web.Route, problem map[string]any) map[string]any {
	op := map[string]any{"operationId": operationID(r), "summary": r.Summary, "tags": []string{
		strings.Split(r.Name, ".")[0]}}
	var parameters []any
	for _, m := range pathParameter.FindAllStringSubmatch(r.Path, -1) {
		parameters = append(parameters, map[string]any{"name": m[1], "in": "path", "required": true,
			"schema": map[string]any{"type": "string"}})
	}
	for _, q := range r.Query {
		about, known := parameterTexts[q]
		if of := parameterTexts[strings.Split(r.Name, ".")[0]+" "+q]; of != "" {
			about, known = of, true
		}
		if !known {
			panic("no text about the parameter " + q + " of " + r.Name)
		}
		schema := map[string]any{"type": "string"}
		if repeatedParameters[q] {
			schema = map[string]any{"type": "array", "items": schema}
		}
		parameters = append(parameters, map[string]any{"name": q, "in": "query", "description": about, "schema": schema})
	}
	if r.Name == "jobs.enqueue" {
		parameters = append(parameters, map[string]any{"name": "Idempotency-Key", "in": "header",
			"schema":      map[string]any{"type": "string", "maxLength": 255},
			"description": "The same key and body within a day make one job; another body is refused with 409."})
	}
	if parameters != nil {
		op["parameters"] = parameters
	}
	if r.Body != nil {
		body := s.of(reflect.TypeOf(r.Body))
		if r.Path == "/api/v1/jobs" {
			body = s.perType(body)
		}
		media := map[string]any{"schema": body}
		if r.Name == "jobs.enqueue" {
			media["example"] = enqueueExample(enqueuedBy[r.Dialect])
		}
		op["requestBody"] = map[string]any{"content": map[string]any{"application/json": media}}
	}
	if r.Scope != "" {
		op["description"] = "Needs the scope " + string(r.Scope) + "."
		op["security"] = []any{map[string]any{"token": []string{}}, map[string]any{"account": []string{}},
			map[string]any{"session": []string{}}}
	} else {
		op["security"] = []any{}
	}
	success := map[string]any{"description": "Done."}
	switch {
	case r.Answer != nil:
		success["content"] = map[string]any{
			"application/json": map[string]any{"schema": s.of(reflect.TypeOf(r.Answer))}}
	case r.Type != "":
		success["content"] = map[string]any{r.Type: map[string]any{"schema": map[string]any{"type": "string"}}}
	}
	responses := map[string]any{"default": map[string]any{"description": "A problem.", "content": map[string]any{
		"application/problem+json": map[string]any{"schema": problem}}}}
	for _, status := range successes(r) {
		responses[strconv.Itoa(status)] = success
	}
	op["responses"] = responses
	return op
}

// enqueuedBy is what the type of a job is called in each family of calls.
var enqueuedBy = map[web.APIDialect]string{web.V1: "type", web.PocketBaseCompat: "topic", web.S2Compat: "jobType"}

func enqueueExample(typed string) map[string]any {
	return map[string]any{typed: "mail.send", "payload": map[string]any{
		"to": "zoe@example.com", "subject": "Hello", "body": "<p>Hi</p>"}}
}

// parameterTexts say what parameters of queries mean, by name, or by area and name.
var parameterTexts = map[string]string{
	"limit":  "How many items an answer has at most.",
	"known":  "The state of the figures that a page shows, as the page has it: no event of that state.",
	"cursor": "Where the list goes on: next of the answer before.",
	"offset": "How many items are left out; cursor is faster.",
	"since":  "From this moment on: a time (RFC 3339), a date, or a length of time before now (24h, 7d).",
	"until":  "Before this moment, written as since.",
	"status": "Only with this status; several are separated by commas.",
	"type":   "Only of this type; several are separated by commas.",
	"queue":  "Only in this queue; several are separated by commas.",
	"text":   "Only with this text in payload or error. Needs the scope operate.",
	"worker": "Only run by this worker, or on this host; several are separated by commas.",
	"tag":    "Only PHP's jobs with this tag; several are separated by commas.",
	"q":      "The filter as one line, as the pages take it: type:mail.send status:failed since:24h.",
	"ids":    "Only these jobs, separated by commas.",
	"cause":  "Only jobs that failed by this cause, as /failed/groups names it.",
	"site":   "Only of this site.", "actor": "Only by this person or token.", "action": "Only this action: area.verb.",
	"target": "Only about this thing.", "files": "A pattern of names, with *; the answer lists the files that fit.",
	"into": "The name of a new database on the site's server; absent is the site.",
	"name": "The file's path in the backup.", "dry_run": "1 says what would happen, and changes nothing.",
	"force": "1 pauses a queue although no job and no worker names it.", "range": "How far back: 1h, 24h, 7d or 30d.",
	"by": "What the attempts are split by: outcome, type or queue.", "step": "The length of one step, such as 15m; from 1s.",
	"analytics since": "The first day: 2026-11-21.", "analytics until": "The last day: 2026-11-21.",
	"filter": "Only visits that fit, such as page:/news, goal:Order or referrer: (direct). Repeated, all must fit. Before the " +
		"colon: goal, event, channel, referrer, campaign, term, content, page, entry, exit, country, device, browser or system.",
	"outcome": "Only runs that ended so: completed, retried, failed, crashed, released or cancelled.", "check": "Only these conditions, separated by commas.",
}

// repeatedParameters may stand in a query several times.
var repeatedParameters = map[string]bool{"filter": true}

// successes are the statuses of success: an enqueue that finds its job there
// answers 200, a change that is left to a job 202.
func successes(r web.Route) []int {
	switch {
	case r.Name == "jobs.enqueue":
		return []int{200, 201}
	case reflect.TypeOf(r.Answer) == reflect.TypeFor[ops.Changed]():
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
	testgolden.Check(t, "openapi.json", want)
}

func TestMain(m *testing.M) {
	code := m.Run()
	if theChecker.program != nil {
		jobstest.EndProgram(theChecker.program)
	}
	os.Exit(code)
}

// checker is the program that knows OpenAPI, of the module checks. It runs until the
// last test has ended.
type checker struct {
	program *exec.Cmd // nil while it does not run
	mu      sync.Mutex
	ask     *json.Encoder
	answers *json.Decoder
	valid   []string // what is wrong with the document
	said    bytes.Buffer
	err     error
}

var (
	startChecker sync.Once
	theChecker   checker
)

func contract(t testing.TB) *checker {
	t.Helper()
	c := &theChecker
	startChecker.Do(func() { c.start(t) })
	if c.err != nil {
		t.Fatalf("the program that checks the contract: %v\n%s", c.err, c.said.String())
	}
	return c
}

func (c *checker) start(t testing.TB) {
	document, err := filepath.Abs("openapi.json")
	if err != nil {
		c.err = err
		return
	}
	cmd := jobstest.CheckProgram(t, "contract", document)
	cmd.Stderr = &c.said
	in, err := cmd.StdinPipe()
	if err != nil {
		c.err = err
		return
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.err = err
		return
	}
	if c.err = cmd.Start(); c.err != nil {
		return
	}
	c.program = cmd
	c.ask, c.answers = json.NewEncoder(in), json.NewDecoder(out)
	if c.err = c.answers.Decode(&c.valid); c.err != nil {
		_ = cmd.Wait() // what it said tells why
		c.program = nil
	}
}

// checkContract holds an answer, and the body that was accepted, against the
// document. site.do calls it for every answer of every test.
func checkContract(t testing.TB, method, path string, body any, a answer) {
	t.Helper()
	if testgolden.Updating() || a.status == 0 {
		return
	}
	c := contract(t)
	request, _ := body.(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.ask.Encode(map[string]any{
		"method": method, "path": path, "status": a.status, "type": a.header.Get("Content-Type"), "request": request,
		"answer": string(a.body),
	})
	var faults []string
	if err == nil {
		err = c.answers.Decode(&faults)
	}
	if err != nil {
		t.Fatalf("asking for the contract: %v", err)
	}
	for _, fault := range faults {
		t.Errorf("contract: %s", fault)
	}
}
