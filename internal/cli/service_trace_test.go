package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// sentSpan is what a collector got; internal/trace's tests hold the shape
// against the published schema.
type sentSpan struct {
	TraceID      string `json:"traceId"`
	SpanID       string `json:"spanId"`
	ParentSpanID string `json:"parentSpanId"`
	Name         string
}

// TestAJobIsTracedFromItsEnqueueToItsEnd follows a caller's trace over HTTP,
// through the table, into the worker.
func TestAJobIsTracedFromItsEnqueueToItsEnd(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var spans []sentSpan
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []sentSpan } }
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Errorf("the collector cannot read it: %v", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, rs := range body.ResourceSpans {
			for _, scope := range rs.ScopeSpans {
				spans = append(spans, scope.Spans...)
			}
		}
	}))
	defer collector.Close()
	s := startService(t, fmt.Sprintf("schedule: {enabled: false}\ntelemetry: {traces: %q}\n", collector.URL+
		"/v1/traces"), newDatabase(t, jobstest.MySQL, tables.Extended))
	header := bearer(s.token("admin"))
	header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	var made struct{ ID, Status string }
	s.ask(201, "POST", "/api/v1/jobs", `{"type":"cmsjobs.probe"}`, header, &made)
	for deadline := time.Now().Add(time.Minute); made.Status != "completed" &&
		time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		s.ask(200, "GET", "/api/v1/jobs/"+made.ID, "", header, &made)
	}
	s.stop() // sends what is left

	find := func(name string) sentSpan {
		i := slices.IndexFunc(spans, func(x sentSpan) bool { return x.Name == name })
		if i < 0 {
			t.Fatalf("no span %q in %+v\n%s", name, spans, s.log())
		}
		if spans[i].TraceID != "4bf92f3577b34da6a3ce929d0e0e4736" {
			t.Errorf("%s belongs to another trace: %+v", name, spans[i])
		}
		return spans[i]
	}
	enqueue, run := find("enqueue cmsjobs.probe"), find("cmsjobs.probe")
	if enqueue.ParentSpanID != "00f067aa0ba902b7" || run.ParentSpanID != enqueue.SpanID {
		t.Errorf("caller → %+v → %+v", enqueue, run)
	}
}
