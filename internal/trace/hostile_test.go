package trace

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A collector that answers without end is read a little.
func TestHostileCollectorsAreNotRead(t *testing.T) {
	var elsewhere, sent atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"an endless body": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			block := strings.Repeat("a", 64<<10)
			for range 4096 {
				n, err := io.WriteString(w, block)
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		},
		"endless headers": func(w http.ResponseWriter, _ *http.Request) {
			for range 5 {
				w.Header().Add("X-A", strings.Repeat("a", 1<<20))
			}
		},
		"a redirection": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		},
	} {
		server := httptest.NewServer(answer)
		tracer := New(Config{Endpoint: server.URL, Now: time.Now, Random: func() float64 { return 0 },
			Log: slog.New(slog.DiscardHandler), Header: http.Header{"Authorization": {"secret"}}})
		err := tracer.send(t.Context(), []Span{{}})
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
