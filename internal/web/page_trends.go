package web

import (
	"context"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// trends keeps dear answers of the history for a while: as long as fifty times
// what they took, and not at all when they were cheap. An old answer is given
// once more while a new one is made. What a person changes here ends them all.
type trends struct {
	mu   sync.Mutex
	kept map[string]*trend
}

type trend struct {
	value any
	until time.Time
	busy  bool
}

// What is cheap, and how long a dear answer is kept at most.
const (
	trendCheap = 20 * time.Millisecond
	trendMost  = 5 * time.Minute
	trendTime  = time.Minute // for making one anew, when nobody waits
)

func (t *trends) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.kept)
}

// trendOf answers from what is kept, or asks.
func trendOf[T any](ctx context.Context, s *Server, key string, ask func(context.Context) (T, error)) (T, error) {
	t := &s.trends
	t.mu.Lock()
	if k, there := t.kept[key]; there {
		if value, right := k.value.(T); right {
			if s.cfg.Now().After(k.until) && !k.busy {
				k.busy = true
				go refresh(context.WithoutCancel(ctx), s, key, k, ask)
			}
			t.mu.Unlock()
			return value, nil
		}
	}
	t.mu.Unlock()
	return makeTrend(ctx, s, key, ask)
}

func makeTrend[T any](ctx context.Context, s *Server, key string, ask func(context.Context) (T, error)) (T, error) {
	start := s.cfg.Now()
	value, err := ask(ctx)
	took := s.cfg.Now().Sub(start)
	if err != nil || took < trendCheap {
		return value, err
	}
	s.trends.mu.Lock()
	defer s.trends.mu.Unlock()
	if s.trends.kept == nil {
		s.trends.kept = map[string]*trend{}
	}
	s.trends.kept[key] = &trend{value: value, until: s.cfg.Now().Add(min(50*took, trendMost))}
	return value, nil
}

// refresh makes an answer anew for the next who asks.
func refresh[T any](ctx context.Context, s *Server, key string, old *trend, ask func(context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(ctx, trendTime)
	defer cancel()
	_, err := makeTrend(ctx, s, key, ask)
	s.trends.mu.Lock()
	defer s.trends.mu.Unlock()
	old.busy = false
	if err != nil {
		s.cfg.Log.Warn("the history could not be counted", "error", err)
		return
	}
	if s.trends.kept[key] == old { // it became cheap: ask again next time
		delete(s.trends.kept, key)
	}
}

func (s *Server) flows(ctx context.Context, since time.Time, step time.Duration, name string) ([]jobs.Flow, error) {
	return trendOf(ctx, s, "flows "+name, func(ctx context.Context) ([]jobs.Flow, error) { return s.cfg.History.Throughput(ctx, since, step) })
}

// groups are failed jobs by cause; only the unfiltered ones are kept.
func (s *Server) groups(ctx context.Context, f jobs.Filter) ([]jobs.FailureGroup, error) {
	if len(f.Kinds)+len(f.Queues)+len(f.UUIDs) > 0 || f.Text != "" || f.Cause != "" || !f.Since.IsZero() || !f.Until.IsZero() {
		return s.cfg.History.Groups(ctx, f)
	}
	return trendOf(ctx, s, "groups", func(ctx context.Context) ([]jobs.FailureGroup, error) { return s.cfg.History.Groups(ctx, f) })
}
