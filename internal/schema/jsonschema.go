package schema

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// JSON is the object as JSON Schema (2020-12, as OpenAPI 3.1 has it). help is what
// a field is for, by its path (dateRange.start); it may be nil.
func (o *Object) JSON(help func(path string) string) map[string]any {
	if help == nil {
		help = func(string) string { return "" }
	}
	return o.json("", help)
}

func (o *Object) json(path string, help func(string) string) map[string]any {
	if o == nil || o.Open {
		return map[string]any{"type": Map}
	}
	properties, required := map[string]any{}, []string{}
	for _, f := range o.Fields {
		p := f.json(path+f.Name, help)
		add := func(key string, value any, there bool) {
			if there {
				p[key] = value
			}
		}
		text := help(path + f.Name)
		add("description", text, text != "")
		add("default", f.Default, f.Default != nil)
		add("examples", []json.RawMessage{f.Example}, f.Example != nil)
		add("enum", f.Choices, f.Choices != nil)
		add("x-unit", f.Unit, f.Unit != "")
		add("x-synonyms", f.Synonyms, f.Synonyms != nil)
		add("x-encrypted", true, f.Encrypted)
		properties[f.Name] = p
		if f.Required {
			required = append(required, f.Name)
		}
	}
	s := map[string]any{"type": Map, "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func (v Value) json(path string, help func(string) string) map[string]any {
	s := map[string]any{}
	switch {
	case v.Object != nil:
		s = v.Object.json(path+".", help)
	case v.Type != "":
		s["type"] = v.Type
	}
	if v.Items != nil {
		s["items"] = v.Items.json(path, help)
	}
	if v.Also != "" {
		s["type"] = []string{v.Type, v.Also}
	}
	if v.Format != "" {
		s["format"] = v.Format
	}
	return s
}

// words are the types of JSON as people call them.
func words(jsonType string) string {
	jsonType, _, _ = strings.Cut(jsonType, " ") // "number 1.5" of encoding/json
	switch jsonType {
	case String:
		return "a text"
	case Integer:
		return "a whole number"
	case Number:
		return "a number"
	case Boolean, "bool":
		return "true or false"
	case Array:
		return "a list"
	case Map:
		return "an object"
	case Null:
		return Null
	}
	return "a " + jsonType
}

// Text says what the value may be, for people: "a list, or a text".
func (v Value) Text() string {
	text := "any JSON"
	switch {
	case v.Format == "date-time":
		text = "a time"
	case v.Type == Array && v.Items != nil && v.Items.Type != "":
		text = map[string]string{String: "a list of texts", Map: "a list of objects"}[v.Items.Type]
		if text == "" {
			text = "a list"
		}
	case v.Type != "":
		text = words(v.Type)
	}
	also := v.Also
	if also == "" && v.Items != nil && v.Items.Also != "" {
		also = v.Items.Also
		return text + " or of " + strings.TrimPrefix(words(also), "a ") + "s"
	}
	if also != "" && v.Type != Map {
		text += ", or " + words(also)
	}
	return text
}

// Explain puts what encoding/json says of a value of another type into words
// that name the field. Other errors stay as they are.
func (o *Object) Explain(err error) error {
	var wrong *json.UnmarshalTypeError
	if o == nil || !errors.As(err, &wrong) {
		return err
	}
	if wrong.Field == "" {
		return phrase.Errorf("it must be %s, not %s", words(Map), words(wrong.Value))
	}
	value := Value{}
	level := o
	for part := range strings.SplitSeq(wrong.Field, ".") {
		if level == nil {
			break
		}
		f, known := level.find(part)
		if !known { // the number of an item
			continue
		}
		value, level = f.Value, f.Object
		if level == nil && f.Items != nil {
			level = f.Items.Object
		}
	}
	return phrase.Errorf("%s must be %s, not %s", wrong.Field, value.Text(), words(wrong.Value))
}
