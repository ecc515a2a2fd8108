package web

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// responseCache keeps answers that take long to make (counting the history, walking
// through folders, listing a bucket): as long as fifty times what they took,
// and not at all when they were cheap. A page never waits for one longer than
// trendPatience: it is given the last answer while a new one is made, or none,
// and then asks again. What a person changes here ends them all.
type responseCache struct {
	mu   sync.Mutex
	kept map[string]*trend
}

// trend is one answer, or the making of the first.
type trend struct {
	value any
	err   error
	until time.Time
	busy  bool
	made  chan struct{} // closed when the first answer is there
}

// What is cheap, how long a page waits, how long an answer is kept at most, how
// long an error is, and how long an answer may take to make.
const (
	trendCheap    = 10 * time.Millisecond
	trendPatience = 25 * time.Millisecond
	trendMost     = 5 * time.Minute
	trendFault    = 5 * time.Second // a page that waits asks several times in it
	trendTime     = 2 * time.Minute
	trendsKept    = 64 // then what is out of date goes
)

func (t *responseCache) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.kept)
}

// expire has all answers made anew when they are asked for next; until then the
// old ones serve.
func (t *responseCache) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.kept {
		k.until = time.Time{}
	}
}

// cached answers from what is kept, or asks. ready is false when no answer
// came in time: it is being made, and is there when the page asks again.
func cached[T any](ctx context.Context, s *Server, key string, ask func(context.Context) (T, error)) (value T, ready bool, err error) {
	k := s.trend(key)
	s.responses.mu.Lock()
	if stale := s.cfg.Now().After(k.until); stale && !k.busy {
		k.busy = true
		go makeTrend(context.WithoutCancel(ctx), s, key, k, ask)
	}
	s.responses.mu.Unlock()
	patience := time.NewTimer(s.deadlineBudget(ctx))
	defer patience.Stop()
	select {
	case <-k.made:
	case <-patience.C:
		return value, false, nil
	case <-ctx.Done():
		return value, false, ctx.Err()
	}
	s.responses.mu.Lock()
	defer s.responses.mu.Unlock()
	value, right := k.value.(T)
	if !right && k.err == nil {
		return value, false, fmt.Errorf("the kept answer %q is of another type", key)
	}
	return value, k.err == nil, k.err
}

type patienceKey struct{}

// withDeadlineBudget lets a page wait for trendPatience in all, however many answers it
// asks for.
func withDeadlineBudget(page func(*Server, echo.Context) error) func(*Server, echo.Context) error {
	return func(s *Server, c echo.Context) error {
		s.limitPatience(c)
		return page(s, c)
	}
}

func (s *Server) limitPatience(c echo.Context) {
	r := c.Request()
	c.SetRequest(r.WithContext(context.WithValue(r.Context(), patienceKey{}, s.cfg.Now().Add(trendPatience))))
}

// deadlineBudget is how long an answer may still be waited for.
func (s *Server) deadlineBudget(ctx context.Context) time.Duration {
	if until, withDeadlineBudget := ctx.Value(patienceKey{}).(time.Time); withDeadlineBudget {
		return max(until.Sub(s.cfg.Now()), time.Millisecond)
	}
	return trendPatience
}

// trend is what is kept under a key; a new one has no answer yet. An error that
// is out of date is not shown while a new answer is made.
func (s *Server) trend(key string) *trend {
	t := &s.responses
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept == nil {
		t.kept = map[string]*trend{}
	}
	k, there := t.kept[key]
	if !there || k.err != nil && !k.busy && s.cfg.Now().After(k.until) {
		if len(t.kept) >= trendsKept {
			maps.DeleteFunc(t.kept, func(_ string, k *trend) bool { return !k.busy && s.cfg.Now().After(k.until) })
		}
		k = &trend{made: make(chan struct{})}
		t.kept[key] = k
	}
	return k
}

// makeTrend makes an answer. A cheap one serves those who wait for it, and is
// not kept. An error that was long in coming (a bucket that times out, say) is
// kept for a moment: pages do not wait for it, and would never see it.
func makeTrend[T any](ctx context.Context, s *Server, key string, k *trend, ask func(context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(ctx, trendTime)
	defer cancel()
	start := s.cfg.Now()
	value, err := ask(ctx)
	now := s.cfg.Now()
	s.responses.mu.Lock()
	defer s.responses.mu.Unlock()
	first := k.value == nil
	took := now.Sub(start)
	if err == nil {
		k.value, k.err = value, nil
	} else if first {
		k.err = err
	}
	k.busy, k.until = false, now.Add(min(50*took, trendMost))
	if err != nil {
		k.until = now.Add(trendFault)
	}
	if (took < trendCheap || err != nil && !first) && s.responses.kept[key] == k {
		delete(s.responses.kept, key)
	}
	select {
	case <-k.made:
		if err != nil {
			s.cfg.Log.Warn("figures of a page not refreshed", "event", "web.figures_failed",
				"figures", key, "error", err)
		}
	default:
		close(k.made)
	}
}

// --- What is kept ---

// cachedStats are the queue's figures. No page can do without: it waits for the
// first ones.
func (s *Server) cachedStats(ctx context.Context) (stats jobs.Stats, err error) {
	s.await(ctx, func() (ready bool, _ error) {
		stats, ready, err = cached(ctx, s, "stats", s.cfg.Ledger.Stats)
		return ready, err
	})
	return stats, errors.Join(err, ctx.Err())
}

func (s *Server) flowsKept(ctx context.Context, since time.Time, step time.Duration, name string) ([]jobs.Throughput, bool, error) {
	return cached(ctx, s, "flows "+name, func(ctx context.Context) ([]jobs.Throughput, error) {
		return s.cfg.History.Throughput(ctx, since, step)
	})
}

// groupsKept are failed jobs by cause. A filter's moment counts in whole
// minutes, so that asking again asks for the same.
func (s *Server) groupsKept(ctx context.Context, f jobs.Filter) ([]jobs.FailureGroup, bool, error) {
	f.Since, f.Until = f.Since.Truncate(time.Minute), f.Until.Truncate(time.Minute)
	return cached(ctx, s, fmt.Sprintf("groups %+v", f), func(ctx context.Context) ([]jobs.FailureGroup, error) { return s.cfg.History.Groups(ctx, f) })
}

// Warm makes the answers that most pages need, one after the other, so that the
// first person finds them. Serve does so when it starts.
func (s *Server) Warm(ctx context.Context) {
	if _, err := s.cachedStats(ctx); err != nil {
		s.cfg.Log.Debug("figures not counted in advance", "event", "web.figures_failed", "error", err)
		return
	}
	if s.cfg.History != nil {
		for name, look := range spans {
			s.await(ctx, func() (bool, error) {
				_, ready, err := s.flowsKept(ctx, s.lookBack(look), look.step, name)
				return ready, err
			})
		}
		s.await(ctx, func() (bool, error) { _, ready, err := s.groupsKept(ctx, jobs.Filter{}); return ready, err })
	}
	for _, f := range s.cfg.Features {
		if f.Warm != nil {
			s.await(ctx, func() (bool, error) { return f.Warm(ctx, Cache{s}) })
		}
	}
}

// await asks until the answer is there.
func (s *Server) await(ctx context.Context, ask func() (bool, error)) {
	for ctx.Err() == nil {
		if ready, err := ask(); ready || err != nil {
			return
		}
	}
}
