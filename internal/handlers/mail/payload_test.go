package mail

import (
	"encoding/json"
	"slices"
	"testing"
)

// What PHP writes: empty arrays for empty objects, null, lists of arrays with
// address and name.
func TestPayloadsAsPHPWritesThem(t *testing.T) {
	for text, want := range map[string]struct {
		to   []string
		from string
	}{
		`{"to":"a@b.c","cc":[],"bcc":null,"data":[],"attachments":[],"from":null,"body":"b"}`: {
			[]string{"a@b.c"}, ""},
		`{"to":["a@b.c","d@e.f"],"from":{"address":"x@y.z","name":"N \"q\" \\ m"},"data":{"a":1},"body":"b"}`: {
			[]string{"a@b.c", "d@e.f"}, `"N \"q\" \\ m" <x@y.z>`},
		`{"to":[{"email":"a@b.c","name":"An, Nguyễn"},{"address":"d@e.f","name":null}],"from":"x@y.z","body":"b"}`: {
			[]string{`"An, Nguyễn" <a@b.c>`, "d@e.f"}, "x@y.z"},
		`{"to":"\"An, Nguyễn\" <a@b.c>, d@e.f","body":"b","unknown":true}`: {
			[]string{`"An, Nguyễn" <a@b.c>`, " d@e.f"}, ""},
	} {
		var p SendPayload
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if err := p.Validate(); err != nil || !slices.Equal(p.To, want.to) || string(p.From) != want.from {
			t.Errorf("%s: to %q, from %q, %v", text, p.To, p.From, err)
		}
	}
	for _, text := range []string{`{"to":1,"body":"b"}`, `{"to":"a@b.c","data":"x","body":"b"}`,
		`{"to":"a@b.c","data":[1],"body":"b"}`} {
		var p SendPayload
		if json.Unmarshal([]byte(text), &p) == nil && p.Validate() == nil {
			t.Errorf("%s is taken", text)
		}
	}
	for _, text := range []string{`{"to":"a@b.c"}`, `{"to":"a@b.c","body":"b","template":"t"}`,
		`{"to":"a@b.c","body":"b","format":"pdf"}`, `{"to":"a@b.c","body":"b","maxAge":-1}`,
		`{"to":"nobody","body":"b"}`} {
		var p SendPayload
		if err := json.Unmarshal([]byte(text), &p); err != nil || p.Validate() == nil {
			t.Errorf("%s is taken (%v)", text, err)
		}
	}
}
