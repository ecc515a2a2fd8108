package schema

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Object is the shape of a payload, or of an object inside one. A nil Object
// takes everything.
type Object struct {
	Fields []Field
	// Open takes every other field as well: the type does not describe them.
	Open bool
}

// Field is one field of an object.
type Field struct {
	Name string
	Value
	Synonyms []string // other names that are read
	Unit     string   // of a number: seconds
	Choices  []string // the values that exist; nil is any
	Default  json.RawMessage
	Example  json.RawMessage
	Required bool
	// Encrypted values are stored so that only who has the installation's key can read them.
	Encrypted bool
	Help      string // what it is for, where its type's texts are not known here
}

// Value says what may stand somewhere.
type Value struct {
	Type   string  // of JSON; "" is any
	Also   string  // another type of JSON that is read
	Format string  // of a string: date-time
	Items  *Value  // of an array
	Object *Object // of an object, where it is described
}

// The types of JSON.
const (
	String  = "string"
	Integer = "integer"
	Number  = "number"
	Boolean = "boolean"
	Array   = "array"
	Map     = "object"
	Null    = "null"
)

// AlsoReader is implemented by types that read themselves from JSON: by a second
// type besides the one that their Go type says.
type AlsoReader interface{ AlsoReads() string }

// Of describes a Go type. Its fields' tags say what Go cannot:
//
//	json:"name"  synonyms:"a,b"  unit:"seconds"  default:"true"  example:"5"  choices:"x,y"  required:"true"
//	encrypted:"true"
//
// A type that is no struct, or reads itself from JSON, is open.
func Of(t reflect.Type) *Object {
	if t.Kind() != reflect.Struct || readsItself(t) {
		return &Object{Open: true}
	}
	o := &Object{}
	o.add(t)
	return o
}

func (o *Object) add(t reflect.Type) {
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		if f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct {
			o.add(f.Type)
			continue
		}
		if !f.IsExported() || tag == "-" {
			continue
		}
		name, _, _ := strings.Cut(tag, ",")
		if name == "" {
			name = f.Name
		}
		v := valueOf(f.Type)
		o.Fields = append(o.Fields, Field{Name: name, Value: v, Synonyms: list(f.Tag.Get("synonyms")),
			Unit: f.Tag.Get("unit"), Choices: list(f.Tag.Get("choices")), Default: written(v, f.Tag.Get("default")),
			Example: written(v, f.Tag.Get("example")), Required: f.Tag.Get("required") == "true",
			Encrypted: f.Tag.Get("encrypted") == "true"})
	}
}

func list(tag string) []string {
	if tag == "" {
		return nil
	}
	return strings.Split(tag, ",")
}

// written is a value of a tag as JSON: texts need no quotes there.
func written(v Value, tag string) json.RawMessage {
	switch {
	case tag == "":
		return nil
	case v.Type != String && json.Valid([]byte(tag)):
		return json.RawMessage(tag)
	}
	quoted, err := json.Marshal(tag)
	if err != nil {
		return nil
	}
	return quoted
}

func readsItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

func valueOf(t reflect.Type) Value {
	if t.Kind() == reflect.Pointer { // nil is null
		v := valueOf(t.Elem())
		if v.Also == "" && v.Type != "" {
			v.Also = Null
		}
		return v
	}
	if t == reflect.TypeFor[time.Time]() {
		return Value{Type: String, Format: "date-time"}
	}
	var also string
	if r, is := reflect.Zero(t).Interface().(AlsoReader); is {
		also = r.AlsoReads()
	} else if readsItself(t) {
		return Value{}
	}
	v := Value{Also: also}
	switch t.Kind() {
	case reflect.String:
		v.Type = String
	case reflect.Bool:
		v.Type = Boolean
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.Type = Integer
	case reflect.Float32, reflect.Float64:
		v.Type = Number
	case reflect.Slice, reflect.Array:
		items := valueOf(t.Elem())
		v.Type, v.Items = Array, &items
	case reflect.Map:
		v.Type = Map
	case reflect.Struct:
		v.Type, v.Object = Map, &Object{}
		v.Object.add(t)
	}
	return v
}

// HasEncrypted says whether any field is encrypted.
func (o *Object) HasEncrypted() bool {
	return o != nil && slices.ContainsFunc(o.Fields, func(f Field) bool { return f.Encrypted })
}

// IsEncrypted says whether the values under a name are: of an encrypted field, in any of its
// spellings.
func (o *Object) IsEncrypted(name string) bool {
	f, known := o.find(name)
	return known && f.Encrypted
}

// find returns the field that a name means: its own, a synonym, or one of these
// in other capitals or with underscores.
func (o *Object) find(name string) (Field, bool) {
	for _, f := range o.Fields {
		if f.Name == name {
			return f, true
		}
	}
	folded := fold(name)
	for _, f := range o.Fields {
		for _, other := range append([]string{f.Name}, f.Synonyms...) {
			if fold(other) == folded {
				return f, true
			}
		}
	}
	return Field{}, false
}

// fold makes include_database of includeDatabase: the same name.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// OwnPath is a path of keys into a payload, * for a place in a list, with the
// fields' own names. From where the object describes nothing it stays as it is.
func (o *Object) OwnPath(at []string) []string {
	own := slices.Clone(at)
	v := Value{Object: o}
	for i, key := range at {
		if key == "*" && v.Items != nil {
			v = *v.Items
			continue
		}
		if v.Object == nil {
			break
		}
		f, known := v.Object.find(key)
		if !known {
			break
		}
		own[i], v = f.Name, f.Value
	}
	return own
}

// Names are the fields' own names, in order.
func (o *Object) Names() []string {
	if o == nil {
		return nil
	}
	names := make([]string, len(o.Fields))
	for i, f := range o.Fields {
		names[i] = f.Name
	}
	return names
}

// Example is a payload made of the fields' examples.
func (o *Object) Example() json.RawMessage {
	var b strings.Builder
	b.WriteByte('{')
	if o != nil {
		for _, f := range o.Fields {
			if f.Example == nil {
				continue
			}
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			b.WriteString(`"` + f.Name + `":` + string(f.Example))
		}
	}
	b.WriteByte('}')
	return json.RawMessage(b.String())
}
