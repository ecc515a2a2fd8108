package ops

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/schema"
	"github.com/cmsjobs/cmsjobs/internal/schema/texts"
)

// TypeView is a type that can be enqueued.
type TypeView struct {
	Name        string   `json:"name"`
	Aliases     []string `json:"aliases,omitempty"`
	About       string   `json:"about,omitempty"`
	Queue       string   `json:"queue"`
	MaxAttempts int      `json:"max_attempts"`
	TimeoutMS   int64    `json:"timeout_ms"`
	Limit       int      `json:"limit"` // at once in the fleet; 0 is any number
	// Rates are how many begin in a length of time: "10/s", "500/h".
	Rates []string `json:"rates,omitempty"`
	// Example is a payload.
	Example json.RawMessage `json:"example"`
	// Schema is the payload's JSON Schema, with the units and synonyms of fields as
	// x-unit and x-synonyms.
	Schema json.RawMessage `json:"schema"`
	// Elsewhere says that the workers of another program run it.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// Types shows the types of a registry, those of other programs last; those that only the service makes are
// among them where all is set. Types without a queue use the given one.
func Types(registry *jobs.Registry, queue string, all bool) []TypeView {
	views := []TypeView{}
	for _, name := range registry.Types() {
		e, _ := registry.Lookup(name)
		if e.Maker == jobs.Service && !all {
			continue
		}
		views = append(views, TypeView{Name: e.Type, Aliases: registry.Aliases(name),
			About: texts.Of("en", e.Type, texts.About),
			Queue: cmp.Or(e.Queue, queue), MaxAttempts: e.Policy.MaxAttempts,
			TimeoutMS: e.Policy.Timeout.Milliseconds(), Limit: e.Policy.Limit, Rates: e.Policy.RateTexts(),
			Example: e.Schema.Example(), Schema: schemaOf(e)})
	}
	for _, e := range registry.Elsewhere() {
		views = append(views, TypeView{Name: e.Type, About: e.Title, Queue: cmp.Or(e.Queue, queue),
			MaxAttempts: e.Policy.MaxAttempts, TimeoutMS: e.Policy.Timeout.Milliseconds(), Limit: e.Policy.Limit,
			Rates: e.Policy.RateTexts(), Example: e.Schema.Example(), Schema: schemaOf(e), Elsewhere: true})
	}
	return views
}

// schemaOf is the JSON Schema of a type's payload.
func schemaOf(e jobs.Entry) json.RawMessage {
	if e.Given != nil {
		return e.Given
	}
	data, err := json.Marshal(e.Schema.JSON(func(path string) string { return texts.Of("en", e.Type, path) }))
	if err != nil { // a default in a tag that is no JSON, which tests would see
		return json.RawMessage("{}")
	}
	return data
}

// UnknownType refuses a type that no program here knows, and names the one that
// was probably meant.
func UnknownType(registry *jobs.Registry, name string) error {
	names := append(registry.Names(), registry.KnownTypes()...)
	if near := schema.Nearest(name, names); near != "" {
		return invalid("type", "There is no type %q here; did you mean %q?", shown(name), near)
	}
	return invalid("type", "There is no type %q here. Known are %s.", shown(name),
		strings.Join(registry.KnownTypes(), ", "))
}
