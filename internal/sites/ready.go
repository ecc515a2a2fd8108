package sites

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"
)

// readyFor is how long a site's answer whether it is ready serves: many may ask, and
// each site asks its database.
const readyFor = 2 * time.Second

// readiness is the answer of one site.
type readiness struct {
	mu   sync.Mutex
	at   time.Time
	last bool
}

// ready says whether a site can work, as its own /readyz does.
func (s *open) ready(ctx context.Context, now func() time.Time) bool {
	s.readiness.mu.Lock()
	defer s.readiness.mu.Unlock()
	if now().Sub(s.readiness.at) < readyFor {
		return s.readiness.last
	}
	// The answer is for others, too: who asks first may leave.
	r, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, "/readyz", http.NoBody)
	if err != nil {
		return false
	}
	r.RemoteAddr = "127.0.0.1:0"
	w := &statusOnly{header: http.Header{}}
	s.handler.ServeHTTP(w, r)
	s.readiness.at, s.readiness.last = now(), cmp.Or(w.status, http.StatusOK) == http.StatusOK
	return s.readiness.last
}

// countReady asks all sites at once.
func (f *Front) countReady(ctx context.Context) int {
	var asked sync.WaitGroup
	var mu sync.Mutex
	ready := 0
	for _, s := range f.all() {
		asked.Go(func() {
			if s.ready(ctx, f.now) {
				mu.Lock()
				ready++
				mu.Unlock()
			}
		})
	}
	asked.Wait()
	return ready
}

// statusOnly keeps the status of an answer.
type statusOnly struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (w *statusOnly) Header() http.Header { return w.header }

// Write implements http.ResponseWriter.
func (w *statusOnly) Write(body []byte) (int, error) { return len(body), nil }

// WriteHeader implements http.ResponseWriter.
func (w *statusOnly) WriteHeader(status int) { w.status = cmp.Or(w.status, status) }
