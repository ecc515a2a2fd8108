package jobs

import (
	"encoding/json"
	"maps"
	"testing"
)

func FuzzTopLevel(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, ` { "a" : "x\\"y" , "b":[1,{"c":"}"}] ,"d":null}`, `{}`, `[1]`, `null`,
		`{"a":1,"a":2}`, `{"\u0061":-1.5e3}`, `{"a"`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		found, err := topLevel(raw, nil)
		got := map[string]json.RawMessage{}
		for _, m := range found {
			got[string(m.name)] = m.value
		}
		var want map[string]json.RawMessage
		wrong := json.Unmarshal(raw, &want)
		if (err == nil) != (wrong == nil && want != nil) {
			t.Fatalf("error %v, Unmarshal says %v", err, wrong)
		}
		same := func(a, b json.RawMessage) bool { return string(a) == string(b) }
		if err == nil && !maps.EqualFunc(got, want, same) {
			t.Fatalf("%q, want %q", got, want)
		}
		for name, value := range want {
			if err == nil && !same(found.value(name), value) {
				t.Fatalf("%q is %q, want %q", name, found.value(name), value)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	raw, err := EncodePayload(Spec{Type: "mail.send", UUID: "01939b5c-7b0c-7b0c-8b0c-7b0c7b0c7b0c",
		Data: json.RawMessage(`{"to":"a@b.c"}`)})
	if err != nil {
		b.Fatal(err)
	}
	known := func(k string) bool { return k == "mail.send" }
	b.ReportAllocs()
	for b.Loop() {
		if _, origin, err := Parse(raw, known); origin != Ours {
			b.Fatal(err)
		}
	}
}
