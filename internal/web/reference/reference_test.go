package reference_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cmsjobs/cmsjobs/internal/web/reference"
)

func read(t *testing.T) ([]byte, *reference.Reference) {
	t.Helper()
	document, err := os.ReadFile("../openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := reference.Read(document)
	if err != nil {
		t.Fatal(err)
	}
	return document, r
}

// TestExamplesFitTheirSchemas holds every example against the document.
func TestExamplesFitTheirSchemas(t *testing.T) {
	raw, r := read(t)
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi.json", document); err != nil {
		t.Fatal(err)
	}
	checked := 0
	fits := func(where, place, example string) {
		schema, err := c.Compile("openapi.json#" + place)
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(example))
		if err == nil {
			err = schema.Validate(value)
		}
		if checked++; err != nil {
			t.Errorf("%s: %v\n%s", where, err, example)
		}
	}
	for _, s := range append(r.Schemas, r.Types...) {
		fits(s.Name, "/components/schemas/"+s.Name, s.Example)
	}
	for _, a := range append(r.Areas, r.Compat...) {
		for _, call := range a.Calls {
			if call.Body != nil {
				path := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(call.Path)
				fits(call.Method+" "+call.Path, "/paths/"+path+"/"+strings.ToLower(call.Method)+
					"/requestBody/content/application~1json/schema", call.Body.Example)
			}
		}
	}
	if checked < 150 {
		t.Errorf("only %d examples were checked", checked)
	}
}

// TestOursComesFirst separates the families.
func TestOursComesFirst(t *testing.T) {
	_, r := read(t)
	for _, a := range r.Areas {
		for _, c := range a.Calls {
			if strings.HasPrefix(c.Path, "/api/") && !strings.HasPrefix(c.Path, "/api/v1/") &&
				c.Path != "/api/docs" && c.Path != "/api/openapi.json" {
				t.Errorf("%s is among our calls", c.Path)
			}
		}
	}
	if len(r.Compat) == 0 || len(r.Areas) < 15 {
		t.Errorf("%d areas, %d older ones", len(r.Areas), len(r.Compat))
	}
}

// TestACallIsComplete looks at one with everything.
func TestACallIsComplete(t *testing.T) {
	_, r := read(t)
	found := r.Find("POST /api/v1/jobs Enqueue")
	var call reference.Call
	for _, a := range found.Areas {
		for _, c := range a.Calls {
			if c.Path == "/api/v1/jobs" {
				call = c
			}
		}
	}
	if call.Scope != "enqueue" || call.Status != "200, 201" || call.Body.Schema != "EnqueueRequest" ||
		call.Answer.Schema != "Enqueued" || call.Params[0].Name != "Idempotency-Key" ||
		call.Curl != `curl -X POST -H "Authorization: Bearer $TOKEN" --json @body.json "$URL/api/v1/jobs"` {
		t.Errorf("%+v", call)
	}
	var body struct {
		Type    string
		Payload map[string]any
	}
	if err := json.Unmarshal([]byte(call.Body.Example), &body); err != nil || body.Type != "mail.send" ||
		body.Payload["to"] == nil {
		t.Errorf("%v: %s", err, call.Body.Example)
	}
}

func TestFind(t *testing.T) {
	_, r := read(t)
	if all := r.Find(" "); all != r {
		t.Error("an empty query finds less than all")
	}
	for query, want := range map[string]string{"suppressions": "/api/v1/suppressions", "dry_run": "/api/v1/queues/{name}/clear",
		"s1": "", "replyto": ""} {
		found, there := r.Find(query), want == ""
		for _, a := range found.Areas {
			for _, c := range a.Calls {
				there = there || c.Path == want
			}
		}
		if !there || found.Count() == 0 || found.Count() > 60 {
			t.Errorf("%q finds %d things, without %s", query, found.Count(), want)
		}
	}
	if n := r.Find("nothing like it xyzzy").Count(); n != 0 {
		t.Errorf("%d things fit nonsense", n)
	}
}

func TestABrokenDocumentIsRefused(t *testing.T) {
	for _, broken := range []string{"", "[]", `{"paths":{"/x":{"get":{}}}}`, `{"paths":{"/x":{"get":7}}}`} {
		if _, err := reference.Read([]byte(broken)); err == nil {
			t.Errorf("%q is read", broken)
		}
	}
}
