package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// fieldName is what a field of a given schema may be called: a form and a
// command line can write it.
var fieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// maxFields bounds what a form shows.
const maxFields = 100

// given are the keywords of a JSON Schema that a form can show.
type given struct {
	Type        json.RawMessage   `json:"type"`
	Format      string            `json:"format"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Default     json.RawMessage   `json:"default"`
	Examples    []json.RawMessage `json:"examples"`
	Enum        []json.RawMessage `json:"enum"`
	Unit        string            `json:"x-unit"`
	Encrypted   bool              `json:"x-encrypted"`
	Properties  json.RawMessage   `json:"properties"`
	Required    []string          `json:"required"`
	Additional  json.RawMessage   `json:"additionalProperties"`
}

// FromJSON describes the payload of a JSON Schema that others wrote, as far as a
// form can show it: its fields, without what lies inside of them. It does not
// judge values; who has the schema does. Nothing is an open object.
func FromJSON(data json.RawMessage) (*Object, error) {
	if len(data) == 0 || string(data) == "null" {
		return &Object{Open: true}, nil
	}
	var g given
	if err := json.Unmarshal(data, &g); err != nil {
		return nil, fmt.Errorf("the schema is not a JSON Schema: %w", err)
	}
	if kind, _ := typeOf(g.Type); kind != Map {
		return nil, errors.New(`the schema's type must be "object", as a payload is one`)
	}
	o := &Object{Open: string(g.Additional) != "false"}
	if len(g.Properties) == 0 {
		return o, nil
	}
	properties, err := members(g.Properties)
	if err != nil {
		return nil, fmt.Errorf("the schema's properties: %w", err)
	}
	if len(properties) > maxFields {
		return nil, fmt.Errorf("the schema has %d properties, %d are allowed", len(properties), maxFields)
	}
	for _, p := range properties {
		f, err := fieldOf(p)
		if err != nil {
			return nil, err
		}
		for _, name := range g.Required {
			f.Required = f.Required || name == p.name
		}
		o.Fields = append(o.Fields, f)
	}
	return o, nil
}

// fieldOf reads one property.
func fieldOf(p member) (Field, error) {
	if !fieldName.MatchString(p.name) {
		return Field{}, fmt.Errorf("the property %q needs a name of letters, digits, _ and -", shorten(p.name))
	}
	f := Field{Name: p.name}
	var g given
	if json.Unmarshal(p.value, &g) != nil { // true and false are schemas, too
		return f, nil
	}
	f.Type, f.Also = typeOf(g.Type)
	f.Format, f.Unit, f.Default, f.Encrypted = g.Format, g.Unit, g.Default, g.Encrypted
	if f.Help = g.Description; f.Help == "" {
		f.Help = g.Title
	}
	if len(g.Examples) > 0 {
		f.Example = g.Examples[0]
	}
	for _, choice := range g.Enum {
		var text string
		if json.Unmarshal(choice, &text) != nil || f.Type != String { // a form writes what is no text as JSON
			f.Choices = nil
			break
		}
		f.Choices = append(f.Choices, text)
	}
	return f, nil
}

// typeOf reads the keyword: a type, or a list of which the first two count.
func typeOf(data json.RawMessage) (first, second string) {
	if json.Unmarshal(data, &first) == nil {
		return first, ""
	}
	var list []string
	if json.Unmarshal(data, &list) != nil || len(list) == 0 {
		return "", ""
	}
	if len(list) > 1 {
		second = list[1]
	}
	return list[0], second
}
