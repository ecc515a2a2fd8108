package announce

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/schema"
)

// Type is what a worker says of a type that it runs.
type Type struct {
	Name  string
	Title string // what it does, for people
	Queue string // "" is the default queue
	// Schema is the payload's JSON Schema (2020-12 unless it names another draft);
	// nil takes every object.
	Schema json.RawMessage
	Policy jobs.Policy
}

// The bounds of a type.
const (
	MaxSchema = 64 << 10
	MaxTitle  = 500
)

// typeName is what cannot be mistaken for a class of PHP.
var typeName = regexp.MustCompile(`^[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*$`)

// Entry is the type as a registry has it, without a handler. The error says what
// is wrong with the announcement, for the one who wrote it.
func (t Type) Entry() (jobs.Entry, error) {
	if !typeName.MatchString(t.Name) || len(t.Name) > 100 {
		return jobs.Entry{}, fmt.Errorf("%w: a type is named like shop.resize, in small letters, digits, _ and -, "+
			"with at most 100 bytes: not %q", jobs.ErrInvalid, jobs.PlainText(t.Name, 60))
	}
	refuse := func(err error) (jobs.Entry, error) {
		return jobs.Entry{}, fmt.Errorf("%w: the type %s: %w", jobs.ErrInvalid, t.Name, err)
	}
	if len(t.Title) > MaxTitle || len(t.Schema) > MaxSchema {
		return refuse(fmt.Errorf("a title has at most %d bytes and a schema %d", MaxTitle, MaxSchema))
	}
	shape, err := schema.FromJSON(t.Schema)
	if err != nil {
		return refuse(err)
	}
	check := func(json.RawMessage) error { return nil }
	if len(t.Schema) > 0 && string(t.Schema) != "null" {
		compiled, err := compile(t.Schema)
		if err != nil {
			return refuse(err)
		}
		check = func(data json.RawMessage) error { return judge(t.Name, shape, compiled, data) }
	}
	return jobs.Entry{Type: t.Name, Queue: t.Queue, Policy: t.Policy, Check: check, Schema: shape,
		Title: jobs.PlainText(t.Title, MaxTitle), Given: t.Schema}, nil
}

// noLoader refuses what a schema names outside of itself.
type noLoader struct{}

// Load implements jsonschema.URLLoader.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema may not refer to another place (%s)", jobs.PlainText(url, 100))
}

func compile(data json.RawMessage) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.AssertFormat()
	const name = "payload.json"
	if err := c.AddResource(name, document); err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %w", err)
	}
	compiled, err := c.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("the schema is not a JSON Schema: %w", err)
	}
	return compiled, nil
}

// judge says what is wrong with a payload.
func judge(jobType string, shape *schema.Object, compiled *jsonschema.Schema, data json.RawMessage) error {
	if len(bytes.TrimSpace(data)) == 0 {
		data = json.RawMessage("{}")
	}
	read, _, err := shape.Read(data)
	if err != nil {
		return jobs.Permanent(fmt.Errorf("the payload of %s: %w", jobType, err))
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(read))
	if err != nil {
		return jobs.Permanent(fmt.Errorf("the payload of %s is not JSON: %w", jobType, err))
	}
	if err := compiled.Validate(value); err != nil {
		return jobs.Permanent(fmt.Errorf("the payload of %s is not as its schema says: %s", jobType, why(err)))
	}
	return nil
}

// why is the first thing that is wrong, with the place of it.
func why(err error) string {
	var e *jsonschema.ValidationError
	if !errors.As(err, &e) {
		return jobs.PlainText(err.Error(), 300)
	}
	for len(e.Causes) > 0 {
		e = e.Causes[0]
	}
	text := e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
	if len(e.InstanceLocation) > 0 {
		text = strings.Join(e.InstanceLocation, ".") + ": " + text
	}
	return jobs.PlainText(text, 300)
}
