package mail

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// Wherever a window of the limit's length begins, no more than the limit falls
// into it; and at most a tenth of the rate is given away.
func TestNoWindowSeesMoreThanTheLimit(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const limit = 20
	w := window{"b", limit, time.Second}
	rows := map[string]counts{"b": {}}
	var taken []int64
	now := int64(1_700_000_000_123)
	for range 20_000 {
		now += random.Int64N(30)
		rows["b"] = rows["b"].at(now / slotMillis(w))
		wait := reserve(rows, []window{w}, now)
		if wait == 0 {
			taken = append(taken, now)
			continue
		}
		later := now + wait.Milliseconds()
		if c := rows["b"].at(later / slotMillis(w)); reserve(map[string]counts{"b": c}, []window{w}, later) != 0 {
			t.Fatalf("it said to come again in %s, and is full then", wait)
		}
		if wait > 1100*time.Millisecond {
			t.Fatalf("a wait of %s for a second's limit", wait)
		}
	}
	for i := limit; i < len(taken); i++ {
		if taken[i]-taken[i-limit] < 1000 {
			t.Fatalf("%d within %d ms", limit+1, taken[i]-taken[i-limit])
		}
	}
	if got := len(taken); float64(got) < 0.9*limit*float64(taken[len(taken)-1]-taken[0])/1000 {
		t.Errorf("only %d were let through in %d ms", got, taken[len(taken)-1]-taken[0])
	}
}

func TestWorkersShareALimit(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			db := jobstest.Migrated(t, engine)
			const limit = 30
			var mu sync.Mutex
			var taken []int64
			var group sync.WaitGroup
			for worker := range 4 {
				l := newLimiter(db.DB, Limits{All: Rate{PerSecond: limit}, Domains: map[string]Rate{
					"slow.example": {PerDay: 2}}})
				group.Go(func() {
					for n := 0; n < 20; {
						g, err := l.take(t.Context(), []address.Address{
							{Mailbox: fmt.Sprintf("w%d@example.net", worker)}})
						if err != nil {
							t.Error(err)
							return
						}
						if len(g.taken) == 0 {
							if err := pause(t.Context(), g.wait); err != nil {
								return
							}
							continue
						}
						n++
						mu.Lock()
						taken = append(taken, g.at)
						mu.Unlock()
					}
				})
			}
			group.Wait()
			slices.Sort(taken)
			for i := limit; i < len(taken); i++ {
				if taken[i]-taken[i-limit] < 1000 {
					t.Fatalf("%d within %d ms", limit+1, taken[i]-taken[i-limit])
				}
			}
			if len(taken) != 80 {
				t.Errorf("%d were let through", len(taken))
			}
		})
	}
}

func TestAFullDomainDoesNotHoldTheOthersUp(t *testing.T) {
	db := jobstest.Migrated(t, jobstest.SQLite)
	l := newLimiter(db.DB, Limits{Domains: map[string]Rate{"slow.example": {PerDay: 1}}})
	to := []address.Address{{Mailbox: "a@slow.example"}, {Mailbox: "b@slow.example"}, {Mailbox: "c@fast.example"}}
	g, err := l.take(t.Context(), to)
	if err != nil || len(g.taken) != 2 || g.taken[1].Mailbox != "c@fast.example" {
		t.Fatalf("%+v, %v", g, err)
	}
	if g, err = l.take(t.Context(), to[1:2]); err != nil || len(g.taken) != 0 || g.wait < 20*time.Hour ||
		g.wait > 27*time.Hour {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestAUsedUpLimitGivesTheJobBack(t *testing.T) {
	s := newSink(t, nil)
	c := config(t, s, jobstest.SQLite)
	c.Limits.All.PerHour = 3
	h := handler(t, c)
	payload := map[string]any{"to": []string{"a@b.example", "b@b.example", "c@b.example", "d@b.example",
		"e@b.example"}, "subject": "s", "body": "b"}
	result, err := run(t, h, "j", 1, payload)
	wait, ok := jobs.AsRetryAfter(err)
	if !ok || !errors.Is(err, ErrLimited) || wait < 50*time.Minute {
		t.Errorf("%v (wait %s)", err, wait)
	}
	if result.Recipients[Accepted] != 3 {
		t.Errorf("%v", result.Recipients)
	}
	// an hour later
	if _, err := c.DB.ExecContext(context.Background(), "DELETE FROM cmsjobs_mail_limits"); err != nil {
		t.Fatal(err)
	}
	if _, err = run(t, h, "j", 1, payload); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, got := range s.all() {
		n += len(got.to)
	}
	if n != 5 {
		t.Errorf("%d recipients were sent to", n)
	}
}
