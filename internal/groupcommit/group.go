package groupcommit

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Config says how a group commits its items.
type Config[T any] struct {
	// Commit makes items durable, all or none. It may be called twice for an item:
	// after others' fault it is committed alone.
	Commit func(ctx context.Context, items []T) error
	// Size is what an item counts for, nil: 1. MaxSize bounds the items of one
	// transaction; a larger item has its own.
	Size    func(T) int
	MaxSize int
	// Final says of an error that items must not be committed again, because they
	// may be there already. nil: none is.
	Final func(error) bool
}

// Group puts the items of concurrent callers into one transaction.
type Group[T any] struct {
	c Config[T]

	mu      sync.Mutex
	working bool
	waiting []*waiter[T]
}

type waiter[T any] struct {
	item     T
	err      error
	leads    bool          // is to commit for those who wait; changes before woken is closed only
	finished bool          // by its leader
	woken    chan struct{} // closed when the item is committed, or its caller is to lead
}

// ErrAborted is the error of items whose leader did not come back: its commit
// panicked.
var ErrAborted = errors.New("the transaction that was shared with others was aborted")

// New returns a group without items.
func New[T any](c Config[T]) *Group[T] {
	if c.Size == nil {
		c.Size = func(T) int { return 1 }
	}
	if c.Final == nil {
		c.Final = func(error) bool { return false }
	}
	return &Group[T]{c: c}
}

// Do returns when item is committed, perhaps together with others, or has
// failed. While it waits for others it is given up when ctx ends; while it is
// committed it is not, as others may depend on that.
func (g *Group[T]) Do(ctx context.Context, item T) error {
	w := &waiter[T]{item: item, woken: make(chan struct{})}
	if !g.join(w) {
		select {
		case <-w.woken:
		case <-ctx.Done():
			if g.withdraw(w) {
				return context.Cause(ctx)
			}
			<-w.woken
		}
		if !w.leads {
			return w.err
		}
	}
	g.lead(context.WithoutCancel(ctx))
	return w.err
}

// Waiting is how many callers wait for a transaction to come.
func (g *Group[T]) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// join says whether w leads at once.
func (g *Group[T]) join(w *waiter[T]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, w)
	if g.working {
		return false
	}
	g.working, w.leads = true, true
	return true
}

// withdraw takes w out of the queue; false when it is being committed, or leads.
func (g *Group[T]) withdraw(w *waiter[T]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, w)
	if i < 0 || w.leads {
		return false
	}
	g.waiting = append(g.waiting[:i:i], g.waiting[i+1:]...)
	return true
}

// lead commits the first waiters, among them the caller, and hands over.
func (g *Group[T]) lead(ctx context.Context) {
	batch, items := g.next()
	defer g.handOver()
	defer func() {
		for _, w := range batch {
			w.finish(ErrAborted)
		}
	}()
	err := g.c.Commit(ctx, items)
	for i, w := range batch {
		if err != nil && len(batch) > 1 && !g.c.Final(err) {
			w.finish(g.c.Commit(ctx, items[i:i+1:i+1]))
			continue
		}
		w.finish(err)
	}
}

// finish tells a waiter how its item ended, the first time that it is called.
func (w *waiter[T]) finish(err error) {
	if w.finished {
		return
	}
	w.finished, w.err = true, err
	if !w.leads {
		close(w.woken)
	}
}

// next takes a transaction's worth of waiters, the leader first.
func (g *Group[T]) next() ([]*waiter[T], []T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, size := 0, 0
	for n < len(g.waiting) {
		size += g.c.Size(g.waiting[n].item)
		if n > 0 && size > g.c.MaxSize {
			break
		}
		n++
	}
	batch := g.waiting[:n:n]
	g.waiting = append([]*waiter[T](nil), g.waiting[n:]...)
	items := make([]T, n)
	for i, w := range batch {
		items[i] = w.item
	}
	return batch, items
}

// handOver makes the longest waiting caller the next leader.
func (g *Group[T]) handOver() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.working = false
		return
	}
	next := g.waiting[0]
	next.leads = true
	close(next.woken)
}
