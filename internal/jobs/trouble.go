package jobs

import (
	"log/slog"
	"sync"
	"time"
)

// The types of calls that fail and recover each by itself: on a full disk a
// claim works in between while results cannot be written.
const (
	doingClaims    = "claiming jobs"
	doingSettles   = "writing the ends of runs"
	doingRenewals  = "renewing leases"
	doingHeartbeat = "saying that the worker lives"
)

// trouble says once that a kind of call to the database fails and once that it
// works again, however often it is made in between.
type trouble struct {
	log *slog.Logger
	now func() time.Time

	mu     sync.Mutex
	failed map[string]failing // by type; none where all is well
}

type failing struct {
	since time.Time
	times int
}

func (t *trouble) note(doing string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, known := t.failed[doing]
	if !known {
		f.since = t.now()
		t.log.Error("database statements fail; trying again", "event", "database.failing",
			"doing", doing, "error", err)
	}
	f.times++
	if t.failed == nil {
		t.failed = map[string]failing{}
	}
	t.failed[doing] = f
}

func (t *trouble) clear(doing string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, known := t.failed[doing]
	if !known {
		return
	}
	t.log.Info("database answers again", "event", "database.recovered",
		"doing", doing, "after_ms", t.now().Sub(f.since).Milliseconds(), "errors", f.times)
	delete(t.failed, doing)
}

// quiet says whether all is well.
func (t *trouble) quiet() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.failed) == 0
}
