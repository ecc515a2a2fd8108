package trace

import (
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// A collector that answers without end is read a little.
func TestHostileCollectorsAreNotRead(t *testing.T) {
	var elsewhere, sent atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	pour := func(w io.Writer) {
		block := strings.Repeat("a", 64<<10)
		for range 4096 {
			n, err := io.WriteString(w, block)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
	for name, answer := range map[string]http.HandlerFunc{
		"an endless body": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			pour(w)
		},
		"endless headers": func(w http.ResponseWriter, _ *http.Request) {
			for range 5 {
				w.Header().Add("X-A", strings.Repeat("a", 1<<20))
			}
		},
		"a body that is longer than it says": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1099511627776")
			w.WriteHeader(http.StatusBadGateway)
			pour(w)
		},
		"a bomb": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(http.StatusBadRequest)
			z := gzip.NewWriter(w)
			for range 1024 {
				if _, err := z.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		},
		"a drip": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, "a"); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				time.Sleep(5 * time.Millisecond)
			}
		},
		"a redirection": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		},
	} {
		server := httptest.NewServer(answer)
		tracer := New(Config{Endpoint: server.URL, Now: time.Now, Random: func() float64 { return 0 },
			Log: slog.New(slog.DiscardHandler), Header: http.Header{"Authorization": {"secret"}}})
		if tracer.c.Client.Timeout <= 0 {
			t.Error("a collector may take any time")
		}
		tracer.c.Client.Timeout = 2 * time.Second
		var err error
		if grown := jobstest.ResidentGrowth(t, func() { err = tracer.send(t.Context(), []Span{{}}) }); grown > 64<<20 {
			t.Errorf("%s: the memory grew by %d MiB", name, grown>>20)
		}
		server.CloseClientConnections()
		server.Close()
		if err == nil || len(err.Error()) > 2000 {
			t.Errorf("%s: %.300v", name, err)
		}
	}
	if elsewhere.Load() != 0 {
		t.Error("the key went to another server")
	}
	if sent.Load() > 64<<20 {
		t.Errorf("%d bytes were taken", sent.Load())
	}
}
