package answers_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/answers"
)

// clock goes on when a test says so.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time       { return time.Unix(1_800_000_000, c.offset.Load()) }
func (c *clock) pass(d time.Duration) { c.offset.Add(int64(d)) }

// counter answers how often it was asked, each time after its clock went on.
type counter struct {
	clock *clock
	takes time.Duration
	asked atomic.Int64
	fails atomic.Bool
}

var errBroken = errors.New("broken")

func (q *counter) ask(context.Context) (int, error) {
	q.clock.pass(q.takes)
	n := q.asked.Add(1)
	if q.fails.Load() {
		return 0, errBroken
	}
	return int(n), nil
}

func newCache() (*clock, *answers.Cache) {
	c := &clock{}
	return c, answers.New(c.now, slog.New(slog.DiscardHandler))
}

func await(t *testing.T, c *answers.Cache, q *counter, want int) {
	t.Helper()
	if got, err := answers.Await(t.Context(), c, "n", q.ask); err != nil || got != want {
		t.Fatalf("got %d, %v; want %d", got, err, want)
	}
}

func TestAnExpensiveAnswerServesForFiftyTimesWhatItTook(t *testing.T) {
	at, c := newCache()
	q := &counter{clock: at, takes: time.Second}
	await(t, c, q, 1)
	at.pass(50 * time.Second)
	await(t, c, q, 1)
	at.pass(time.Millisecond)
	await(t, c, q, 1) // outdated: it serves while a new one is made
	deadline := time.Now().Add(30 * time.Second)
	for {
		got, err := answers.Await(t.Context(), c, "n", q.ask)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("got %d, %v", got, err)
		}
		if got == 2 {
			return
		}
	}
}

func TestACheapAnswerIsNotKept(t *testing.T) {
	at, c := newCache()
	q := &counter{clock: at, takes: 9 * time.Millisecond}
	await(t, c, q, 1)
	await(t, c, q, 2)
}

func TestForgetAsksAgain(t *testing.T) {
	at, c := newCache()
	q := &counter{clock: at, takes: time.Second}
	await(t, c, q, 1)
	c.Forget()
	await(t, c, q, 2)
}

// TestExpireServesTheOldAnswerOnce lets the old answer serve until the new one
// is there.
func TestExpireServesTheOldAnswerOnce(t *testing.T) {
	at, c := newCache()
	q := &counter{clock: at, takes: time.Second}
	await(t, c, q, 1)
	c.Expire()
	release := make(chan struct{})
	slow := func(ctx context.Context) (int, error) { <-release; return q.ask(ctx) }
	if got, ready, err := answers.Ask(t.Context(), c, "n", slow); got != 1 || !ready || err != nil {
		t.Fatalf("got %d, %t, %v; want the old answer", got, ready, err)
	}
	close(release)
}

// TestAskDoesNotWaitLong asks for an answer that does not come, then for the same
// after it came.
func TestAskDoesNotWaitLong(t *testing.T) {
	at, c := newCache()
	q := &counter{clock: at, takes: time.Second}
	release := make(chan struct{})
	slow := func(ctx context.Context) (int, error) { <-release; return q.ask(ctx) }
	if _, ready, err := answers.Ask(t.Context(), c, "n", slow); ready || err != nil {
		t.Fatalf("ready %t, %v; want neither", ready, err)
	}
	close(release)
	await(t, c, q, 1)
}

// TestOneQuestionIsAskedOnce lets many callers wait for one answer.
func TestOneQuestionIsAskedOnce(t *testing.T) {
	for name, ask := range map[string]func(context.Context, *answers.Cache, func(context.Context) (int, error)) (int,
		error){
		"await": func(ctx context.Context, c *answers.Cache, q func(context.Context) (int, error)) (int, error) {
			return answers.Await(ctx, c, "n", q)
		},
		"fresh": func(ctx context.Context, c *answers.Cache, q func(context.Context) (int, error)) (int, error) {
			return answers.Fresh(ctx, c, "n", time.Minute, q)
		},
	} {
		at, c := newCache()
		q := &counter{clock: at, takes: time.Second}
		var waiting sync.WaitGroup
		for range 20 {
			waiting.Go(func() {
				if got, err := ask(t.Context(), c, q.ask); got != 1 || err != nil {
					t.Errorf("%s: got %d, %v", name, got, err)
				}
			})
		}
		waiting.Wait()
		if n := q.asked.Load(); n != 1 {
			t.Errorf("%s: asked %d times", name, n)
		}
	}
}

func TestFreshIsNeverOlder(t *testing.T) {
	at, c := newCache()
	q := &counter{clock: at}
	fresh := func(want int) {
		t.Helper()
		if got, err := answers.Fresh(t.Context(), c, "n", 10*time.Second, q.ask); got != want || err != nil {
			t.Fatalf("got %d, %v; want %d", got, err, want)
		}
	}
	fresh(1)
	at.pass(10*time.Second - 1)
	fresh(1)
	at.pass(1)
	fresh(2)
	q.fails.Store(true)
	at.pass(10 * time.Second)
	for range 2 { // an error is returned each time, and no old answer instead of it
		if got, err := answers.Fresh(t.Context(), c, "n", 10*time.Second, q.ask); !errors.Is(err, errBroken) {
			t.Fatalf("got %d, %v; want the error", got, err)
		}
	}
	q.fails.Store(false)
	fresh(5)
}

// TestASlowErrorIsKeptForAMoment as a page that asks again would never see it.
func TestASlowErrorIsKeptForAMoment(t *testing.T) {
	at, c := newCache()
	q := &counter{clock: at, takes: time.Second}
	q.fails.Store(true)
	for range 3 {
		if _, err := answers.Await(t.Context(), c, "n", q.ask); !errors.Is(err, errBroken) {
			t.Fatalf("got %v", err)
		}
	}
	if n := q.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	q.fails.Store(false)
	at.pass(6 * time.Second)
	await(t, c, q, 2)
}

func TestACallerWhoLeavesEndsNothing(t *testing.T) {
	at, c := newCache()
	q := &counter{clock: at, takes: time.Second}
	release := make(chan struct{})
	slow := func(ctx context.Context) (int, error) { <-release; return q.ask(ctx) }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := answers.Await(ctx, c, "n", slow); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	close(release)
	await(t, c, q, 1)
}

// TestOutdatedAnswersMakeSpace keeps no more than a bounded number of them.
func TestOutdatedAnswersMakeSpace(t *testing.T) {
	at, c := newCache()
	q := &counter{clock: at, takes: time.Second}
	for i := range 200 {
		if _, err := answers.Await(t.Context(), c, string(rune('a'+i)), q.ask); err != nil {
			t.Fatal(err)
		}
		at.pass(time.Hour)
	}
	if n := answers.Kept(c); n > 65 {
		t.Errorf("%d answers are kept", n)
	}
}

func TestAnotherTypeUnderTheSameKeyIsAnError(t *testing.T) {
	at, c := newCache()
	q := &counter{clock: at, takes: time.Second}
	await(t, c, q, 1)
	if text, err := answers.Await(t.Context(), c, "n", func(context.Context) (string, error) {
		return "x", nil
	}); err == nil {
		t.Errorf("got %q and no error", text)
	}
}

// When Close has returned nothing is asked any more, as what answers come from is closed then.
func TestCloseEndsWhatIsBeingMade(t *testing.T) {
	_, c := newCache()
	begun, ended := make(chan struct{}), atomic.Bool{}
	ask := func(ctx context.Context) (int, error) {
		close(begun)
		<-ctx.Done()
		ended.Store(true)
		return 0, ctx.Err()
	}
	if _, ready, err := answers.Ask(t.Context(), c, "slow", ask); ready || err != nil {
		t.Fatalf("ready %v, %v", ready, err)
	}
	<-begun
	c.Close()
	if !ended.Load() {
		t.Error("an answer is still being made")
	}
	asked := false
	if _, err := answers.Await(t.Context(), c, "late", func(context.Context) (int, error) {
		asked = true
		return 1, nil
	}); err == nil || asked {
		t.Errorf("a question after Close: %v, asked %v", err, asked)
	}
	c.Close()
}
