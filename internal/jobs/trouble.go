package jobs

import (
	"log/slog"
	"sync"
	"time"
)

// trouble says once that the database went away and once that it is back,
// however often it is asked in between.
type trouble struct {
	log *slog.Logger
	now func() time.Time

	mu    sync.Mutex
	since time.Time // zero while all is well
	times int
}

func (t *trouble) note(doing string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.times++
	if t.since.IsZero() {
		t.since = t.now()
		t.log.Error("the database does not do what it should; trying again until it does", "doing", doing, "error", err)
	}
}

func (t *trouble) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since.IsZero() {
		return
	}
	t.log.Info("the database is back", "after", t.now().Sub(t.since).Round(time.Millisecond), "errors", t.times)
	t.since, t.times = time.Time{}, 0
}

// quiet says whether all is well.
func (t *trouble) quiet() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.since.IsZero()
}
