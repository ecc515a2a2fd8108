package trace

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// Kind is a span's part in a conversation, by OTLP's numbers.
type Kind int

// The kinds that queues have.
const (
	Internal Kind = 1
	Producer Kind = 4
	Consumer Kind = 5
)

// Span is something that has ended.
type Span struct {
	Context
	Parent     [8]byte // zero: it begins the trace
	Name       string
	Kind       Kind
	Start, End time.Time
	// Attributes are strings, int64s, float64s or bools.
	Attributes map[string]any
	Error      string // "" is success
}

// Config says where spans go.
type Config struct {
	// Endpoint takes POSTed traces: http://127.0.0.1:4318/v1/traces.
	Endpoint string
	// Header is sent along, for collectors that ask for a key.
	Header http.Header
	// Share of the traces that begin here, 0 to 1; those that others began
	// are followed as they asked.
	Share float64
	// Resource says who is speaking: service.name, service.version …
	Resource map[string]any
	Client   *http.Client // nil has a time limit of 10 s
	Now      func() time.Time
	Random   func() float64
	Log      *slog.Logger
}

// How many spans wait for the collector, how many go at once, and how often.
const (
	waiting = 4096
	batch   = 512
	every   = 5 * time.Second
)

// Tracer sends spans. It is safe for concurrent use.
type Tracer struct {
	c       Config
	spans   chan Span
	dropped atomic.Int64
}

// New returns a tracer; Run sends.
func New(c Config) *Tracer {
	if c.Client == nil {
		c.Client = &http.Client{Timeout: 10 * time.Second, Transport: transport(),
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse // the key is for this collector
			}}
	}
	return &Tracer{c: c, spans: make(chan Span, waiting)}
}

// transport bounds what a collector may send before its body, of which send
// reads little.
func transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes = 64 << 10
	t.DisableCompression = true
	return t
}

// Begin names a new span below parent, or of a new trace where parent names
// none.
func (t *Tracer) Begin(parent Context) Context {
	if parent.Trace == [16]byte{} {
		rand.Read(parent.Trace[:])
		parent.Sampled = t.c.Random() < t.c.Share
	}
	return parent.child()
}

// Ended takes a span. It never waits.
func (t *Tracer) Ended(s Span) {
	if !s.Sampled {
		return
	}
	select {
	case t.spans <- s:
	default:
		t.dropped.Add(1)
	}
}

// Run sends spans until ctx ends, and then what is left.
func (t *Tracer) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			t.flush(context.WithoutCancel(ctx))
			return nil
		case <-tick.C:
			t.flush(ctx)
		}
	}
}

// flush sends what waits. What a collector does not take is lost: spans are
// not worth more memory, and the log says it.
func (t *Tracer) flush(ctx context.Context) {
	for {
		list := t.take()
		if len(list) == 0 {
			break
		}
		if err := t.send(ctx, list); err != nil && ctx.Err() == nil {
			t.c.Log.Warn("collector refused traces", "event", "trace.send_failed",
				"endpoint", t.c.Endpoint, "spans", len(list), "error", err)
			break
		}
	}
	if n := t.dropped.Swap(0); n > 0 {
		t.c.Log.Warn("spans were dropped: the collector is slower than the jobs", "event", "trace.dropped", "spans", n)
	}
}

func (t *Tracer) take() (list []Span) {
	for len(list) < batch {
		select {
		case s := <-t.spans:
			list = append(list, s)
		default:
			return list
		}
	}
	return list
}

func (t *Tracer) send(ctx context.Context, list []Span) error {
	body, err := json.Marshal(document(t.c.Resource, list))
	if err != nil {
		return fmt.Errorf("encoding spans: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.c.Endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, values := range t.c.Header {
		request.Header[name] = values
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := t.c.Client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if answer.StatusCode/100 != 2 {
		return errors.Join(fmt.Errorf("%s: %s", answer.Status, text), err)
	}
	return err
}
