package schema_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/schema"
)

type letter struct {
	To       addresses  `json:"to" synonyms:"recipient,recipients" example:"zoe@example.com"`
	Database *bool      `json:"includeDatabase,omitempty" default:"true"`
	Days     int        `json:"days,omitempty" unit:"days" required:"true"`
	Level    string     `json:"level,omitempty" choices:"low,high"`
	Range    *dayRange  `json:"dateRange,omitempty"`
	Parts    []part     `json:"parts,omitempty"`
	Data     free       `json:"data,omitempty"`
	At       *time.Time `json:"at,omitempty"`
}

type addresses []string

func (addresses) AlsoReads() string { return "string" }

func (a *addresses) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = addresses{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}

type free map[string]any

type dayRange struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

type part struct {
	Path string `json:"path"`
}

func TestReading(t *testing.T) {
	o := schema.Of(reflect.TypeFor[letter]())
	for _, c := range []struct{ data, want, unknown, refused string }{
		{`{"to":"a"}`, `{"to":"a"}`, ``, ``},
		{` { "to" : "a" } `, ` { "to" : "a" } `, ``, ``},
		{`{"recipient":"a"}`, `{"to":"a"}`, ``, ``},
		{`{"Recipients":["a"],"include_database":false}`, `{"to":["a"],"includeDatabase":false}`, ``, ``},
		{`{"INCLUDE-DATABASE":false}`, `{"includeDatabase":false}`, ``, ``},
		{`{"recipient":"a","to":"a"}`, `{"to":"a"}`, ``, ``},
		{`{"recipient":null,"to":"a"}`, `{"to":"a"}`, ``, ``},
		{`{"to":"a","recipient":null}`, `{"to":"a"}`, ``, ``},
		{`{"recipient":"a","to":"b"}`, ``, ``, `two values`},
		{`{"recipent":"a","days":1}`, `{"days":1}`, `recipent→recipient`, ``},
		{`{"dyas":1}`, `{}`, `dyas→days`, ``},
		{`{"storages":1}`, `{}`, `storages→`, ``},
		{`{"dateRange":{"strat":"x","end":"y"}}`, `{"dateRange":{"end":"y"}}`, `dateRange.strat→dateRange.start`, ``},
		{`{"parts":["x",{"path":"p","nam":1}]}`, `{"parts":["x",{"path":"p"}]}`, `parts.nam→`, ``},
		{`{"data":{"whatever":{"x":1}}}`, `{"data":{"whatever":{"x":1}}}`, ``, ``},
		{`{"to":"a","to":"b","days":2,"Days":2}`, `{"to":"b","days":2}`, ``, ``},
		{`[1]`, `[1]`, ``, ``},
	} {
		got, unknown, err := o.Read(json.RawMessage(c.data))
		var named []string
		for _, u := range unknown {
			named = append(named, u.Name+"→"+u.Suggestion)
		}
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %v, want %q", c.data, err, c.refused)
			}
			continue
		}
		if err != nil || string(got) != c.want || strings.Join(named, ",") != c.unknown {
			t.Errorf("%s is read as %s, unknown %v, %v; want %s, %s", c.data, got, named, err, c.want, c.unknown)
		}
	}
}

func TestUnknownFieldsAreNamed(t *testing.T) {
	o := schema.Of(reflect.TypeFor[letter]())
	err := o.Check("mail.send", json.RawMessage(`{"recipent":1,"zzzzzzzzzz":2}`))
	want := `the payload of mail.send has no field "recipent"; did you mean "recipient"?; the payload of mail.send has ` +
		`no field "zzzzzzzzzz"; its fields are to, includeDatabase, days, level, dateRange, parts, data, at`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	none := schema.Of(reflect.TypeFor[struct{}]())
	if err := none.Check("x.y", json.RawMessage(`{"a":1}`)); err == nil || !strings.HasSuffix(err.Error(),
		"it has no fields") {
		t.Error(err)
	}
	for _, open := range []*schema.Object{nil, schema.Of(reflect.TypeFor[map[string]any]()),
		schema.Of(reflect.TypeFor[json.RawMessage]())} {
		if err := open.Check("x.y", json.RawMessage(`{"a":1}`)); err != nil {
			t.Error(err)
		}
	}
}

func TestValuesOfAnotherTypeAreExplained(t *testing.T) {
	o := schema.Of(reflect.TypeFor[letter]())
	for data, want := range map[string]string{
		`{"includeDatabase":"yes"}`:    "includeDatabase must be true or false, or null, not a text",
		`{"days":1.5}`:                 "days must be a whole number, not a number",
		`{"dateRange":{"start":true}}`: "dateRange.start must be a text, not true or false",
	} {
		err := json.Unmarshal([]byte(data), new(letter))
		if got := o.Explain(err); got == nil || got.Error() != want {
			t.Errorf("%s: %v, want %s", data, got, want)
		}
	}
	if err := errors.New("x"); o.Explain(err) != err {
		t.Error("another error is not left as it is")
	}
}

func TestJSONSchema(t *testing.T) {
	o := schema.Of(reflect.TypeFor[letter]())
	got, err := json.Marshal(o.JSON(func(path string) string {
		return map[string]string{"dateRange.start": "The first day."}[path]
	}))
	want := `{"additionalProperties":false,"properties":{"at":{"format":"date-time","type":["string","null"]},` +
		`"data":{"type":"object"},"dateRange":{"additionalProperties":false,"properties":{"end":{"type":"string"},` +
		`"start":{"description":"The first day.","type":"string"}},"type":["object","null"]},` +
		`"days":{"type":"integer","x-unit":"days"},"includeDatabase":{"default":true,"type":["boolean","null"]},` +
		`"level":{"enum":["low","high"],"type":"string"},` +
		`"parts":{"items":{"additionalProperties":false,"properties":{"path":{"type":"string"}},"type":"object"},` +
		`"type":"array"},"to":{"examples":["zoe@example.com"],"items":{"type":"string"},"type":["array","string"],` +
		`"x-synonyms":["recipient","recipients"]}},"required":["days"],"type":"object"}`
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	if string(o.Example()) != `{"to":"zoe@example.com"}` {
		t.Errorf("the example is %s", o.Example())
	}
}

// FuzzRead: what Read returns is JSON, and reading it again changes nothing.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{`{"recipient":"a"}`, `{"dateRange":{"x":1}}`, `{"parts":[{"path":1},2]}`, `[]`} {
		f.Add([]byte(seed))
	}
	o := schema.Of(reflect.TypeFor[letter]())
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return
		}
		once, _, err := o.Read(data)
		if err != nil {
			return
		}
		twice, unknown, err := o.Read(once)
		if !json.Valid(once) || err != nil || len(unknown) > 0 || string(twice) != string(once) {
			t.Errorf("%s is read as %s, then as %s, %v, %v", data, once, twice, unknown, err)
		}
	})
}
