package jobs

import (
	"encoding/json"
	"testing"
)

func TestParseReadsEveryShape(t *testing.T) {
	known := func(k string) bool { return k == "sitemap.generate" || k == "mail.send" }
	for _, c := range []struct {
		name, raw, kind, data string
		origin                Origin
	}{
		{"flat", `{"type":"sitemap.generate","force":true}`, "sitemap.generate", `{"force":true}`, Ours},
		{"enveloped", `{"type":"sitemap.generate","data":{"force":true},"metadata":{"userId":1}}`, "sitemap.generate",
			`{"force":true}`, Ours},
		{"Queue::push",
			`{"uuid":"u","displayName":"sitemap.generate","job":"sitemap.generate","maxTries":null,"data":{"force":true},"createdAt":1}`, "sitemap.generate", `{"force":true}`, Ours},
		{"after queue:retry", `{"job":"sitemap.generate","type":"sitemap.generate","data":[],"metadata":[]}`,
			"sitemap.generate", `{}`, Ours},
		{"topic", `{"topic":"mail.send","payload":{"to":"a@b.c"}}`, "mail.send", `{"to":"a@b.c"}`, Ours},
		{"jobType", `{"jobType":"mail.send","payload":{"to":"a@b.c"}}`, "mail.send", `{"to":"a@b.c"}`, Ours},
		{"a flat mail whose template has data", `{"type":"mail.send","to":"a@b.c","data":{"name":"N"}}`, "mail.send",
			`{"data":{"name":"N"},"to":"a@b.c"}`, Ours},
		{"flat, with a separate id and tags", `{"type":"mail.send","id":7,"tags":["a"]}`, "mail.send",
			`{"id":7,"tags":["a"]}`, Ours},
		{"its type said twice", `{"type":"mail.send","data":{"type":"mail.send","to":"a@b.c"}}`, "mail.send",
			`{"to":"a@b.c"}`, Ours},
		{"a field named type", `{"type":"mail.send","data":{"type":"html","to":"a@b.c"}}`, "mail.send",
			`{"type":"html","to":"a@b.c"}`, Ours},
		{"PHP", `{"job":"Illuminate\\Queue\\CallQueuedHandler@call","data":{"command":"O:1"}}`,
			`Illuminate\Queue\CallQueuedHandler@call`, ``, Foreign},
		{"PHP that calls itself ours", `{"job":"App\\Jobs\\X","type":"mail.send","data":{}}`, `App\Jobs\X`, ``,
			Foreign},
		{"unknown type", `{"type":"shop.sync"}`, "shop.sync", `{}`, Unknown},
		{"no type", `{}`, "", `{}`, Unknown},
		{"null", `null`, "", ``, Malformed},
		{"array", `[1]`, "", ``, Malformed},
		{"cut off", `{"type":"mail.send"`, "", ``, Malformed},
		{"not UTF-8", "{\"type\":\"mail.send\",\"x\":\"\xff\"}", "", ``, Malformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, origin, err := Parse([]byte(c.raw), known)
			if origin != c.origin || e.Type != c.kind || string(e.Data) != c.data {
				t.Errorf("Parse = type %q, data %s, origin %d (%v); want %q, %s, %d", e.Type, e.Data, origin, err,
					c.kind, c.data, c.origin)
			}
			if (err == nil) != (origin == Ours) {
				t.Errorf("error %v with origin %d", err, origin)
			}
		})
	}
}

func TestEncodedPayloadIsReadBack(t *testing.T) {
	raw, err := EncodePayload(Spec{Type: "mail.send", UUID: "u1", Data: json.RawMessage(`{"to":"a@b.c"}`),
		MaxAttempts: 7})
	if err != nil {
		t.Fatal(err)
	}
	e, origin, err := Parse(raw, func(k string) bool { return k == "mail.send" })
	if err != nil || origin != Ours || e.UUID != "u1" || e.MaxTries != 7 || string(e.Data) != `{"to":"a@b.c"}` {
		t.Errorf("Parse(%s) = %+v, %d, %v", raw, e, origin, err)
	}
}

func TestRetryPayloadKeepsWhatIsThereAndWrapsWhatIsNoJSON(t *testing.T) {
	var keys map[string]any
	if err := json.Unmarshal(RetryPayload([]byte(`{"type":"mail.send","to":"x","uuid":"mine"}`), "u", "mail.send"),
		&keys); err != nil {
		t.Fatal(err)
	}
	if keys["uuid"] != "mine" || keys["job"] != "mail.send" || keys["displayName"] != "mail.send" || keys["to"] != "x" {
		t.Errorf("flat payload became %v", keys)
	}
	if err := json.Unmarshal(RetryPayload([]byte("\xff{"), "u", "broken"), &keys); err != nil {
		t.Fatalf("a broken payload must still be stored as JSON: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"type":"mail.send","data":{"a":1}}`))
	f.Add([]byte(`{"job":"X","data":[]}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, origin, err := Parse(raw, func(k string) bool { return k == "mail.send" })
		if (origin == Ours) != (err == nil) {
			t.Fatalf("origin %d with error %v", origin, err)
		}
		if origin == Ours && !json.Valid(e.Data) {
			t.Fatalf("data %q is not JSON", e.Data)
		}
		if !json.Valid(RetryPayload(raw, "u", "mail.send")) {
			t.Fatal("RetryPayload made something that is not JSON")
		}
	})
}
