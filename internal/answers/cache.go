package answers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"
)

// Cache keeps answers by key. The zero value is not ready: see [New].
type Cache struct {
	now func() time.Time
	log *slog.Logger

	running sync.WaitGroup // rounds

	mu     sync.Mutex
	kept   map[string]*entry
	rounds map[*round]context.CancelFunc // under way
	closed bool
}

// entry is what is kept under a key: an answer, or the error of the first try.
type entry struct {
	answer *made
	at     time.Time // when the answer was there
	until  time.Time // when it is outdated
	next   *round    // under way; nil: none is
}

// made is an answer, or why there is none.
type made struct {
	value any
	err   error
}

// round is the making of an answer.
type round struct {
	made
	done chan struct{} // closed when made is there
}

// The bounds of what is kept.
const (
	cheap     = 10 * time.Millisecond // an answer that took less is not kept
	patience  = 25 * time.Millisecond // that a caller of Ask waits
	longest   = 5 * time.Minute
	faultKept = 5 * time.Second // a page that waits asks several times in it
	makeTime  = 2 * time.Minute
	closeTime = 5 * time.Second
	maxKept   = 64 // then the outdated ones are deleted
)

// New makes an empty cache.
func New(now func() time.Time, log *slog.Logger) *Cache {
	return &Cache{now: now, log: log, kept: map[string]*entry{}, rounds: map[*round]context.CancelFunc{}}
}

// Close ends the making of answers and returns when nothing is being made any more, after
// closeTime at the latest: what they read from may be closed then. Questions that come later are refused.
func (c *Cache) Close() {
	c.mu.Lock()
	c.closed = true
	for _, cancel := range c.rounds {
		cancel()
	}
	c.mu.Unlock()
	ended := make(chan struct{})
	go func() { c.running.Wait(); close(ended) }()
	timer := time.NewTimer(closeTime)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// errClosed is the answer to a question that came after Close.
var errClosed = errors.New("no answer is made any more: the server stops")

// Forget deletes all answers: the next callers get new ones.
func (c *Cache) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.kept)
}

// Expire makes all answers outdated: the old ones serve until new ones are there.
func (c *Cache) Expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.kept {
		e.until = time.Time{}
	}
}

type deadlineKey struct{}

// WithPatience bounds how long all questions under a context wait together. A
// question under another context waits as long for itself.
func (c *Cache) WithPatience(ctx context.Context) context.Context {
	return context.WithValue(ctx, deadlineKey{}, c.now().Add(patience))
}

// wait is how long a question under ctx may still wait.
func (c *Cache) wait(ctx context.Context) time.Duration {
	if until, bounded := ctx.Value(deadlineKey{}).(time.Time); bounded {
		return max(until.Sub(c.now()), time.Millisecond)
	}
	return patience
}

// Ask answers from what is kept, or asks. An answer serves for fifty times what
// it took, at most five minutes; a cheap one is not kept. An outdated answer
// serves while a new one is made. ready is false where there is none in time:
// it is being made, and is there when the caller asks again.
func Ask[T any](ctx context.Context, c *Cache, key string, ask func(context.Context) (T, error)) (value T, ready bool,
	err error) {
	timer := time.NewTimer(c.wait(ctx))
	defer timer.Stop()
	return get(ctx, c, key, timer.C, ask)
}

// Await is [Ask] that waits for an answer as long as its context allows.
func Await[T any](ctx context.Context, c *Cache, key string, ask func(context.Context) (T, error)) (T, error) {
	value, _, err := get(ctx, c, key, nil, ask)
	return value, err
}

func get[T any](ctx context.Context, c *Cache, key string, enough <-chan time.Time,
	ask func(context.Context) (T, error)) (value T, ready bool, err error) {
	c.mu.Lock()
	e := c.entry(key)
	if e.next == nil && c.now().After(e.until) {
		start(ctx, c, key, e, lasting, ask)
	}
	answer, next := e.answer, e.next
	c.mu.Unlock()
	if answer == nil {
		select {
		case <-next.done:
			answer = &next.made
		case <-enough:
			return value, false, nil
		case <-ctx.Done():
			return value, false, ctx.Err()
		}
	}
	value, err = typed[T](answer, key)
	return value, err == nil, err
}

// Fresh is an answer that is at most maxAge old. The caller waits for it as long
// as the context allows. An error is not kept.
func Fresh[T any](ctx context.Context, c *Cache, key string, maxAge time.Duration,
	ask func(context.Context) (T, error)) (T, error) {
	c.mu.Lock()
	e := c.entry(key)
	if e.answer != nil && e.answer.err == nil && c.now().Sub(e.at) < maxAge {
		defer c.mu.Unlock()
		return typed[T](e.answer, key)
	}
	if e.next == nil {
		start(ctx, c, key, e, func(time.Duration) time.Duration { return maxAge }, ask)
	}
	next := e.next
	c.mu.Unlock()
	select {
	case <-next.done:
		return typed[T](&next.made, key)
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// entry is what is kept under a key; a new one has no answer yet. An outdated
// error is not shown while a new answer is made.
func (c *Cache) entry(key string) *entry {
	e, there := c.kept[key]
	if there && (e.answer == nil || e.answer.err == nil || e.next != nil || !c.now().After(e.until)) {
		return e
	}
	if len(c.kept) >= maxKept {
		maps.DeleteFunc(c.kept, func(_ string, e *entry) bool { return e.next == nil && c.now().After(e.until) })
	}
	e = &entry{}
	c.kept[key] = e
	return e
}

// lasting is how long an answer is kept that took a while; 0 for a cheap one.
func lasting(took time.Duration) time.Duration {
	if took < cheap {
		return 0
	}
	return min(50*took, longest)
}

// start makes an answer in the background. The cache is locked.
func start[T any](ctx context.Context, c *Cache, key string, e *entry, keep func(took time.Duration) time.Duration,
	ask func(context.Context) (T, error)) {
	next := &round{done: make(chan struct{})}
	e.next = next
	if c.closed {
		next.err = errClosed
		close(next.done)
		return
	}
	began := c.now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeTime)
	c.rounds[next] = cancel
	c.running.Go(func() {
		defer cancel()
		value, err := ask(ctx)
		c.end(key, e, made{value, err}, began, keep)
	})
}

// end keeps what a round made. An error that was long in coming (a bucket that
// times out, say) is kept for a moment: pages do not wait for it, and would
// never see it. An error instead of a newer answer ends the old one.
func (c *Cache) end(key string, e *entry, m made, began time.Time, keep func(took time.Duration) time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, next := c.now(), e.next
	delete(c.rounds, next)
	took := now.Sub(began)
	lasts := keep(took)
	switch {
	case m.err == nil:
		e.answer, e.at = &m, now
	case e.answer == nil || e.answer.err != nil:
		e.answer = &m
		lasts = faultKept
		if took < cheap {
			lasts = 0
		}
	default:
		lasts = 0
		if !c.closed {
			c.log.Warn("figures of a page not refreshed", "event", "web.figures_failed", "figures", key, "error", m.err)
		}
	}
	if e.until = now.Add(lasts); lasts == 0 && c.kept[key] == e {
		delete(c.kept, key)
	}
	e.next, next.made = nil, m
	close(next.done)
}

func typed[T any](m *made, key string) (value T, err error) {
	if m.err != nil {
		return value, m.err
	}
	value, right := m.value.(T)
	if !right && m.value != nil {
		return value, fmt.Errorf("the kept answer %q is of another type", key)
	}
	return value, nil
}
