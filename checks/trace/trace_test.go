package trace_test

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

	"github.com/cmsjobs/cmsjobs/internal/trace"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

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

func newTracer(c *collector, log io.Writer) *trace.Tracer {
	return trace.New(trace.Config{Endpoint: c.URL + "/v1/traces", Header: http.Header{"Authorization": {"Bearer key"}},
		Share: 1, Resource: map[string]any{"service.name": "cmsjobs"},
		Now: time.Now, Random: func() float64 { return 0.5 }, Log: slog.New(slog.NewTextHandler(log, nil))})
}

// run sends all that was ended before.
func run(t *testing.T, tracer *trace.Tracer) {
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
	above, _ := trace.Parse(parent)
	start := time.Unix(1_800_000_000, 123_456_789)
	one := trace.Span{Context: tracer.Begin(above), Parent: above.Span, Name: "mail.send", Kind: trace.Consumer,
		Start: start, End: start.Add(time.Second),
		Attributes: map[string]any{"s": "text", "i": int64(7), "f": 0.5, "b": true}, Error: "550 no such user"}
	tracer.Ended(one)
	tracer.Ended(trace.Span{Context: tracer.Begin(trace.Context{}), Name: "root", Kind: trace.Producer, Start: start,
		End: start})
	run(t, tracer)
	if len(c.faults) > 0 || len(c.spans) != 2 {
		t.Fatalf("%d spans, %v", len(c.spans), c.faults)
	}
	got := c.spans[0]
	if hex.EncodeToString(got.TraceId) != parent[3:35] || hex.EncodeToString(got.ParentSpanId) != parent[36:52] ||
		!bytes.Equal(got.SpanId, one.Span[:]) {
		t.Errorf("the span belongs to %x, below %x", got.TraceId, got.ParentSpanId)
	}
	if got.Kind != otlp.Span_SPAN_KIND_CONSUMER || got.Status.Code != otlp.Status_STATUS_CODE_ERROR ||
		got.Status.Message != "550 no such user" ||
		got.StartTimeUnixNano != uint64(start.UnixNano()) || got.EndTimeUnixNano-got.StartTimeUnixNano != uint64(
		time.Second) {
		t.Errorf("%v", got)
	}
	values := map[string]string{}
	for _, a := range got.Attributes {
		values[a.Key] = strings.ReplaceAll(a.Value.String(), " ", "")
	}
	if values["s"] != `string_value:"text"` || values["i"] != "int_value:7" || values["f"] != "double_value:0.5" ||
		values["b"] != "bool_value:true" {
		t.Errorf("attributes: %v", values)
	}
	if len(c.spans[1].ParentSpanId) != 0 || len(c.spans[1].TraceId) != 16 ||
		c.header.Get("Authorization") != "Bearer key" {
		t.Errorf("%v %v", c.spans[1], c.header)
	}
}
