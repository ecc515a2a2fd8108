package breaker_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/breaker"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// guarded is a server whose answer the test chooses, and a client that watches it.
type guarded struct {
	*httptest.Server
	status atomic.Int64
	asked  atomic.Int64
	client *http.Client
}

func newHost(t *testing.T, b *breaker.Breakers) *guarded {
	h := &guarded{}
	h.status.Store(200)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h.asked.Add(1)
		w.WriteHeader(int(h.status.Load()))
	}))
	t.Cleanup(h.Close)
	h.client = &http.Client{
		Transport: &breaker.HTTP{Base: http.DefaultTransport, Breakers: b, Logger: slog.New(slog.DiscardHandler),
			Name: func(r *http.Request) string {
				if r.Method == http.MethodGet {
					return ""
				}
				return "host:" + r.URL.Host
			}}}
	return h
}

func (h *guarded) post() error {
	answer, err := h.client.Post(h.URL, "text/plain", strings.NewReader("x"))
	if err == nil {
		err = answer.Body.Close()
	}
	return err
}

func TestAnIllHostIsLeftAlone(t *testing.T) {
	onEach(t, breaker.Config{Failures: 3}, func(t *testing.T, db *jobstest.Database, b *breaker.Breakers) {
		h := newHost(t, b)
		for _, status := range []int64{404, 403, 429, 409} { // it lives
			h.status.Store(status)
			for range 4 {
				if err := h.post(); err != nil {
					t.Fatalf("%d: %v", status, err)
				}
			}
		}
		h.status.Store(503)
		for range 3 {
			if err := h.post(); err != nil {
				t.Fatal(err)
			}
		}
		asked := h.asked.Load()
		err := h.post()
		if wait, ok := jobs.AsRetryAfter(err); !ok || wait <= 0 || !errors.Is(err, breaker.ErrOpen) ||
			h.asked.Load() != asked {
			t.Errorf("after three failures: %v (%s), %d more requests", err, wait, h.asked.Load()-asked)
		}
		if answer, err := h.client.Get(h.URL); err != nil || answer.Body.Close() != nil {
			t.Errorf("what is not watched: %v", err)
		}
		h.status.Store(200)
		expire(t, db)
		if err := h.post(); err != nil { // the probe
			t.Fatal(err)
		}
		if err := h.post(); err != nil {
			t.Errorf("after it came back: %v", err)
		}
	})
}

// The SDK of the object store wraps and repeats: what its caller sees must
// still say how long to wait.
func TestAnIllBucketChargesNoAttempts(t *testing.T) {
	onEach(t, breaker.Config{Failures: 3}, func(t *testing.T, _ *jobstest.Database, b *breaker.Breakers) {
		h := newHost(t, b)
		h.status.Store(503)
		s3, err := storage.NewS3(storage.S3Config{Bucket: "b", Endpoint: h.URL, PathStyle: true, AccessKey: "a",
			SecretKey: "s", Retries: 1, Watch: func(http.RoundTripper) http.RoundTripper { return h.client.Transport }})
		if err != nil {
			t.Fatal(err)
		}
		put := func() error {
			return s3.Put(t.Context(), "k", strings.NewReader("text"), storage.PutOptions{ExpectedSize: 4})
		}
		for range 3 {
			if _, ok := jobs.AsRetryAfter(put()); ok {
				t.Fatal("it opened too early")
			}
		}
		if err := put(); !errors.Is(err, breaker.ErrOpen) {
			t.Errorf("after three failures: %v", err)
		} else if _, ok := jobs.AsRetryAfter(err); !ok {
			t.Errorf("its caller cannot see how long to wait: %v", err)
		}
	})
}
