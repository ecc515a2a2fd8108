package trace

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestParse(t *testing.T) {
	for text, good := range map[string]bool{
		parent: true,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00":       true,
		"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later": true, // of a later version
		"": false, "x": false,
		parent + "-more": false,
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": false,
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01":  false,
		"00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01": false,
	} {
		c, ok := Parse(text)
		if ok != good {
			t.Errorf("Parse(%q) = %t", text, ok)
		}
		if ok && strings.HasPrefix(text, "00-") && c.String() != text {
			t.Errorf("%q becomes %q", text, c)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(parent)
	f.Fuzz(func(t *testing.T, text string) {
		if c, ok := Parse(text); ok {
			if again, ok := Parse(c.String()); !ok || again != c {
				t.Errorf("%q becomes %q", text, c)
			}
		}
	})
}

// collector is one as OpenTelemetry's: it decodes by the published schema and
// refuses what is not in it.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	spans  []*otlp.Span
	faults []string
	status int
	header http.Header
}

// In OTLP/JSON ids are hexadecimal, in Protobuf's own JSON they are base64.
var id = regexp.MustCompile(`"(traceId|spanId|parentSpanId)":"([0-9a-f]+)"`)

func newCollector(t *testing.T) *collector {
	c := &collector{status: http.StatusOK}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		body = id.ReplaceAllFunc(body, func(m []byte) []byte {
			parts := id.FindSubmatch(m)
			raw, _ := hex.DecodeString(string(parts[2])) // the expression lets nothing else in
			return []byte(`"` + string(parts[1]) + `":"` + base64.StdEncoding.EncodeToString(raw) + `"`)
		})
		var data otlp.TracesData
		c.mu.Lock()
		defer c.mu.Unlock()
		c.header = r.Header
		if err == nil {
			err = protojson.Unmarshal(body, &data)
		}
		if err != nil {
			c.faults = append(c.faults, err.Error())
		}
		if c.status == http.StatusOK {
			for _, resource := range data.ResourceSpans {
				c.spans = append(c.spans, resource.ScopeSpans[0].Spans...)
			}
		}
		w.WriteHeader(c.status)
	}))
	t.Cleanup(c.Close)
	return c
}

func newTracer(c *collector, log io.Writer) *Tracer {
	return New(Config{Endpoint: c.URL + "/v1/traces", Header: http.Header{"Authorization": {"Bearer key"}}, Share: 1, Resource: map[string]any{"service.name": "cmsjobs"},
		Now: time.Now, Random: func() float64 { return 0.5 }, Log: slog.New(slog.NewTextHandler(log, nil))})
}

// run sends all that was ended before.
func run(t *testing.T, tracer *Tracer) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tracer.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestSpansArriveAsTheSchemaSays(t *testing.T) {
	c := newCollector(t)
	tracer := newTracer(c, io.Discard)
	above, _ := Parse(parent)
	start := time.Unix(1_800_000_000, 123_456_789)
	one := Span{Context: tracer.Begin(above), Parent: above.Span, Name: "mail.send", Kind: Consumer, Start: start, End: start.Add(time.Second),
		Attributes: map[string]any{"s": "text", "i": int64(7), "f": 0.5, "b": true}, Error: "550 no such user"}
	tracer.Ended(one)
	tracer.Ended(Span{Context: tracer.Begin(Context{}), Name: "root", Kind: Producer, Start: start, End: start})
	run(t, tracer)
	if len(c.faults) > 0 || len(c.spans) != 2 {
		t.Fatalf("%d spans, %v", len(c.spans), c.faults)
	}
	got := c.spans[0]
	if hex.EncodeToString(got.TraceId) != parent[3:35] || hex.EncodeToString(got.ParentSpanId) != parent[36:52] || !bytes.Equal(got.SpanId, one.Span[:]) {
		t.Errorf("the span belongs to %x, below %x", got.TraceId, got.ParentSpanId)
	}
	if got.Kind != otlp.Span_SPAN_KIND_CONSUMER || got.Status.Code != otlp.Status_STATUS_CODE_ERROR || got.Status.Message != "550 no such user" ||
		got.StartTimeUnixNano != uint64(start.UnixNano()) || got.EndTimeUnixNano-got.StartTimeUnixNano != uint64(time.Second) {
		t.Errorf("%v", got)
	}
	values := map[string]string{}
	for _, a := range got.Attributes {
		values[a.Key] = strings.ReplaceAll(a.Value.String(), " ", "")
	}
	if values["s"] != `string_value:"text"` || values["i"] != "int_value:7" || values["f"] != "double_value:0.5" || values["b"] != "bool_value:true" {
		t.Errorf("attributes: %v", values)
	}
	if len(c.spans[1].ParentSpanId) != 0 || len(c.spans[1].TraceId) != 16 || c.header.Get("Authorization") != "Bearer key" {
		t.Errorf("%v %v", c.spans[1], c.header)
	}
}

func TestNobodyIsTracedAgainstHisWill(t *testing.T) {
	c := newCollector(t)
	tracer := newTracer(c, io.Discard)
	tracer.c.Share = 0.4 // the dice always show 0.5
	quiet, _ := Parse(strings.TrimSuffix(parent, "01") + "00")
	tracer.Ended(Span{Context: tracer.Begin(quiet)})
	tracer.Ended(Span{Context: tracer.Begin(Context{})})
	run(t, tracer)
	if len(c.spans) != 0 {
		t.Errorf("%d spans were sent", len(c.spans))
	}
}

func TestASlowCollectorHarmsNothing(t *testing.T) {
	c := newCollector(t)
	var log bytes.Buffer
	tracer := newTracer(c, &log)
	for range waiting + 10 { // must not block: nobody sends
		tracer.Ended(Span{Context: tracer.Begin(Context{}), Name: "x", Start: time.Unix(1, 0), End: time.Unix(2, 0)})
	}
	c.status = http.StatusServiceUnavailable
	run(t, tracer)
	if !strings.Contains(log.String(), "not taken") || !strings.Contains(log.String(), "spans=10") {
		t.Errorf("the log says %s", log.String())
	}
	c.status = http.StatusOK
	run(t, tracer)
	if len(c.faults) > 0 || len(c.spans) != waiting-batch { // the refused batch is lost, the rest is not
		t.Errorf("%d spans arrived, %v", len(c.spans), c.faults)
	}
}
