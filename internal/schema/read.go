package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Unknown is a field that a payload has and its type has not.
type Unknown struct {
	Name       string // with the objects around it: dateRange.strat
	Suggestion string // the name that was probably meant; "" is none
}

// UnknownError refuses a payload with fields that its type does not have.
type UnknownError struct {
	Type   string // the job type
	Fields []Unknown
	Known  []string // names of the type's fields
}

// Error names every field, and the one that was probably meant.
func (e UnknownError) Error() string {
	texts := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		texts[i] = e.Text(f)
	}
	return strings.Join(texts, "; ")
}

// Text says of one field that it does not exist, and what to write instead.
func (e UnknownError) Text(f Unknown) string {
	text := fmt.Sprintf("the payload of %s has no field %q", e.Type, shorten(f.Name))
	switch {
	case f.Suggestion != "":
		return fmt.Sprintf("%s; did you mean %q?", text, f.Suggestion)
	case len(e.Known) == 0:
		return text + "; it has no fields"
	}
	return text + "; its fields are " + strings.Join(e.Known, ", ")
}

// shorten bounds a name that others wrote.
func shorten(name string) string {
	if len(name) > 60 {
		return strings.ToValidUTF8(name[:60], "") + "…"
	}
	return name
}

// Read returns data with the fields' own names in place of synonyms, and without
// the fields that do not exist, which it names. Data that needs no change is
// returned as it is. data must be valid JSON; what is no object is left to its
// decoder.
func (o *Object) Read(data json.RawMessage) (json.RawMessage, []Unknown, error) {
	if o == nil || o.Open {
		return data, nil, nil
	}
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' || string(trimmed) == "{}" {
		return data, nil, nil
	}
	return o.read("", data)
}

// Check refuses data with fields that the payload of jobType does not have.
func (o *Object) Check(jobType string, data json.RawMessage) error {
	_, unknown, err := o.Read(data)
	if err != nil || len(unknown) == 0 {
		return err
	}
	return UnknownError{Type: jobType, Fields: unknown, Known: o.Names()}
}

type member struct {
	name  string
	value json.RawMessage
}

func (o *Object) read(path string, data json.RawMessage) (json.RawMessage, []Unknown, error) {
	given, err := members(data)
	if err != nil {
		return nil, nil, err
	}
	r := reading{path: path, from: map[string]string{}}
	for _, m := range given {
		f, known := o.find(m.name)
		if !known {
			r.unknown = append(r.unknown, Unknown{path + m.name, o.suggest(path, m.name)})
			continue
		}
		value, deeper, err := f.read(path+f.Name, m.value)
		if err == nil {
			r.unknown = append(r.unknown, deeper...)
			r.changed = r.changed || m.name != f.Name || !bytes.Equal(value, m.value)
			err = r.put(f.Name, m.name, value)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if !r.changed && len(r.unknown) == 0 {
		return data, nil, nil
	}
	return encode(r.kept), r.unknown, nil
}

// reading is an object that is being read.
type reading struct {
	path    string
	kept    []member
	from    map[string]string // the name that each field was given by
	unknown []Unknown
	changed bool // something is not as it was given
}

// put keeps the value of a field, which was given by its own name or by another.
func (r *reading) put(name, given string, value json.RawMessage) error {
	other, twice := r.from[name]
	if !twice {
		r.kept, r.from[name] = append(r.kept, member{name, value}), given
		return nil
	}
	i := indexOf(r.kept, name)
	switch before := r.kept[i].value; {
	case other == given, string(before) == "null", same(before, value): // of equal names the last one counts
		r.kept[i].value, r.from[name] = value, given
	case string(value) != "null":
		return phrase.Errorf("%s and %s mean the same field, with two values: give one of them", r.path+other,
			r.path+given)
	}
	return nil
}

// read goes into the objects of a value.
func (v Value) read(path string, data json.RawMessage) (json.RawMessage, []Unknown, error) {
	switch {
	case v.Object != nil && data[0] == '{':
		return v.Object.read(path+".", data)
	case v.Items == nil || v.Items.Object == nil || data[0] != '[':
		return data, nil, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(data, &items); err != nil {
		return nil, nil, err
	}
	var unknown []Unknown
	for i, item := range items {
		read, deeper, err := v.Items.read(path, bytes.TrimSpace(item))
		if err != nil {
			return nil, nil, err
		}
		items[i], unknown = read, append(unknown, deeper...)
	}
	all, err := json.Marshal(items)
	if err != nil || len(unknown) == 0 && same(all, data) {
		return data, unknown, err
	}
	return all, unknown, nil
}

// members takes an object apart, in its order.
func members(data json.RawMessage) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return nil, errors.Join(errors.New("an object was expected"), err)
	}
	var all []member
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		all = append(all, member{fmt.Sprint(key), value})
	}
	return all, nil
}

func indexOf(list []member, name string) int {
	for i, m := range list {
		if m.name == name {
			return i
		}
	}
	return -1
}

// same says whether two texts of JSON say the same.
func same(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

func encode(list []member) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", m.name, m.value) // names of fields: plain ASCII
	}
	b.WriteByte('}')
	return b.Bytes()
}
