package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
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

// collector counts the spans that it was sent. What is in them is held against
// the published schema by the module checks.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	spans  int
	faults []string
	status int
}

func newCollector(t *testing.T) *collector {
	c := &collector{status: http.StatusOK}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var data struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []json.RawMessage }
			}
		}
		err := json.NewDecoder(r.Body).Decode(&data)
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil {
			c.faults = append(c.faults, err.Error())
		}
		if c.status == http.StatusOK {
			for _, resource := range data.ResourceSpans {
				c.spans += len(resource.ScopeSpans[0].Spans)
			}
		}
		w.WriteHeader(c.status)
	}))
	t.Cleanup(c.Close)
	return c
}

func newTracer(c *collector, log io.Writer) *Tracer {
	return New(Config{Endpoint: c.URL + "/v1/traces", Header: http.Header{"Authorization": {"Bearer key"}}, Share: 1,
		Resource: map[string]any{"service.name": "cmsjobs"},
		Now:      time.Now, Random: func() float64 { return 0.5 }, Log: slog.New(slog.NewTextHandler(log, nil))})
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

func TestNobodyIsTracedAgainstHisWill(t *testing.T) {
	c := newCollector(t)
	tracer := newTracer(c, io.Discard)
	tracer.c.Share = 0.4 // the dice always show 0.5
	quiet, _ := Parse(strings.TrimSuffix(parent, "01") + "00")
	tracer.Ended(Span{Context: tracer.Begin(quiet)})
	tracer.Ended(Span{Context: tracer.Begin(Context{})})
	run(t, tracer)
	if c.spans != 0 {
		t.Errorf("%d spans were sent", c.spans)
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
	if !strings.Contains(log.String(), "collector refused traces") || !strings.Contains(log.String(), "spans=10") {
		t.Errorf("the log says %s", log.String())
	}
	c.status = http.StatusOK
	run(t, tracer)
	if len(c.faults) > 0 || c.spans != waiting-batch { // the refused batch is lost, the rest is not
		t.Errorf("%d spans arrived, %v", c.spans, c.faults)
	}
}
