package groupcommit

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// recorder commits by noting its items. The first commit waits for release.
type recorder struct {
	mu      sync.Mutex
	commits [][]int
	inside  chan struct{}
	gate    chan struct{}
	fault   func([]int) error
}

func (r *recorder) commit(_ context.Context, items []int) error {
	r.mu.Lock()
	r.commits = append(r.commits, slices.Clone(items))
	first := len(r.commits) == 1
	r.mu.Unlock()
	if first {
		close(r.inside)
		<-r.gate
	}
	if r.fault != nil {
		return r.fault(items)
	}
	return nil
}

// held is a group whose first transaction, of the item 0, lasts until release.
func held(t *testing.T, r *recorder, c Config[int]) (g *Group[int], release func()) {
	t.Helper()
	r.inside, r.gate = make(chan struct{}), make(chan struct{})
	c.Commit = r.commit
	g = New(c)
	ended := make(chan error, 1)
	go func() { ended <- g.Do(context.Background(), 0) }()
	<-r.inside
	return g, func() {
		close(r.gate)
		if err := <-ended; err != nil {
			t.Errorf("the first: %v", err)
		}
	}
}

// enter has items wait in this order.
func enter(g *Group[int], items ...int) (wait func() map[int]error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	errs := map[int]error{}
	for i, item := range items {
		all.Go(func() {
			err := g.Do(context.Background(), item)
			mu.Lock()
			defer mu.Unlock()
			errs[item] = err
		})
		for g.Waiting() <= i {
			runtime.Gosched()
		}
	}
	return func() map[int]error { all.Wait(); return errs }
}

func TestWhoComesMeanwhileSharesTheNextTransaction(t *testing.T) {
	r := &recorder{}
	g, release := held(t, r, Config[int]{MaxSize: 3})
	wait := enter(g, 1, 2, 3, 4, 5)
	release()
	for item, err := range wait() {
		if err != nil {
			t.Errorf("%d: %v", item, err)
		}
	}
	if want := [][]int{{0}, {1, 2, 3}, {4, 5}}; !slices.EqualFunc(r.commits, want, slices.Equal) {
		t.Errorf("%v, wanted %v", r.commits, want)
	}
}

func TestALargeItemHasATransactionOfItsOwn(t *testing.T) {
	r := &recorder{}
	g, release := held(t, r, Config[int]{MaxSize: 10, Size: func(n int) int { return n }})
	wait := enter(g, 4, 6, 50, 1)
	release()
	wait()
	if want := [][]int{{0}, {4, 6}, {50}, {1}}; !slices.EqualFunc(r.commits, want, slices.Equal) {
		t.Errorf("%v, wanted %v", r.commits, want)
	}
}

func TestOneItemsFaultIsNotTheOthers(t *testing.T) {
	wrong := errors.New("2 does not fit")
	for _, final := range []bool{false, true} {
		r := &recorder{fault: func(items []int) error {
			if slices.Contains(items, 2) {
				return wrong
			}
			return nil
		}}
		g, release := held(t, r, Config[int]{MaxSize: 100, Final: func(error) bool { return final }})
		wait := enter(g, 1, 2, 3)
		release()
		for item, err := range wait() {
			if fails := item == 2 || final; errors.Is(err, wrong) != fails {
				t.Errorf("final %v: %d: %v", final, item, err)
			}
		}
	}
}

func TestWhoGivesUpWhileItWaitsIsNotCommitted(t *testing.T) {
	r := &recorder{}
	g, release := held(t, r, Config[int]{MaxSize: 100})
	ctx, cancel := context.WithCancelCause(t.Context())
	given := make(chan error, 1)
	go func() { given <- g.Do(ctx, 7) }()
	for g.Waiting() == 0 {
		runtime.Gosched()
	}
	why := errors.New("the caller leaves")
	cancel(why)
	if err := <-given; !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	release()
	if want := [][]int{{0}}; !slices.EqualFunc(r.commits, want, slices.Equal) {
		t.Errorf("%v, wanted %v", r.commits, want)
	}
}

// A panic of one caller's commit is that caller's: the others get an error, and
// who comes later is served.
func TestAPanicLeavesNobodyWaiting(t *testing.T) {
	r := &recorder{}
	panicked := false
	r.fault = func(items []int) error {
		if slices.Contains(items, 1) && !panicked {
			panicked = true
			panic("a bug")
		}
		return nil
	}
	g, release := held(t, r, Config[int]{MaxSize: 100})
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		_ = g.Do(context.Background(), 1)
	}()
	for g.Waiting() == 0 {
		runtime.Gosched()
	}
	other := make(chan error, 1)
	go func() { other <- g.Do(context.Background(), 2) }()
	for g.Waiting() < 2 {
		runtime.Gosched()
	}
	release()
	if err := <-other; !errors.Is(err, ErrAborted) {
		t.Errorf("the other got %v", err)
	}
	if got := <-ended; got == nil {
		t.Error("the panic was swallowed")
	}
	if err := g.Do(t.Context(), 3); err != nil {
		t.Errorf("later: %v", err)
	}
}
