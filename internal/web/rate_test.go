package web_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/web/feature/audit"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// hands is a clock that the test moves.
type hands struct {
	mu sync.Mutex
	at time.Time
}

func (h *hands) now() time.Time          { h.mu.Lock(); defer h.mu.Unlock(); return h.at }
func (h *hands) forward(d time.Duration) { h.mu.Lock(); defer h.mu.Unlock(); h.at = h.at.Add(d) }

func TestWhoAsksTooOftenWaits(t *testing.T) {
	clock := &hands{at: time.Now()}
	s := newSite(t, jobstest.SQLite, func(c *config) { c.Rate, c.Now = 2, clock.now })
	read := bearer(s.tokens[access.Read])
	for range 20 { // two a second, over ten seconds
		s.do("GET", "/api/v1/jobs/stats", nil, read).want(t, 200)
	}
	a := s.do("GET", "/api/v1/jobs/stats", nil, read).want(t, 429)
	if wait, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || wait != 1 {
		t.Errorf("Retry-After: %q", a.header.Get("Retry-After"))
	}
	s.do("GET", "/api/v1/jobs/stats", nil, bearer(s.tokens[access.Admin])).want(t, 200) // another token's is its own
	// machines that watch are never refused
	s.do("GET", "/healthz", nil, read).want(t, 200)
	clock.forward(time.Second)
	for _, status := range []int{200, 200, 429} {
		s.do("GET", "/api/v1/jobs/stats", nil, read).want(t, status)
	}

	// A client that tries tokens is counted by its address.
	for i := range 21 {
		want := 401
		if i == 20 {
			want = 429
		}
		s.do("GET", "/api/v1/jobs", nil, bearer(fmt.Sprintf("%swrong%d", access.TokenPrefix, i))).want(t, want)
	}
	for range 3 {
		s.do("POST", "/api/v1/jobs", `{"type":"cache.clear"}`).want(t, 429)
	}
	var entries audit.AuditEntryList
	clock.forward(time.Minute)
	s.admin("GET", "/api/v1/audit", nil).want(t, 200).into(t, &entries)
	if len(entries.Items) != 0 {
		t.Errorf("a flood fills the audit log: %+v", entries.Items)
	}
}
