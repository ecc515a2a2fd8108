package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// A type with the rates 3/10s and 5/1m, and at most 4 at once, begins as many jobs as
// all three let it, in all processes together: a start counts whether its job has
// ended or not, but not where the job was released before it began.
func TestRatesHoldForTheFleet(t *testing.T) {
	for _, v := range variants() {
		if v.Wall {
			continue
		}
		t.Run(v.String(), func(t *testing.T) {
			f := openFixture(t, v, v.Database(t))
			fleet := []*Store{f.Store, f.another()}
			var list []jobs.Spec
			for i := range 10 {
				list = append(list, tablestest.Rated.New(json.RawMessage(fmt.Sprint(i))))
			}
			f.MustEnqueue(append(list, tablestest.Job(`"unlimited"`))...)
			claim := func(limit int) (got []jobs.Claimed) {
				t.Helper()
				for _, s := range fleet {
					for _, c := range f.ClaimBy(s, limit) {
						if c.Job.Type == tablestest.Rated.Name {
							got = append(got, c)
						}
					}
				}
				return got
			}
			want := func(what string, got []jobs.Claimed, n int) {
				t.Helper()
				if len(got) != n {
					t.Fatalf("%s: %d jobs begin, want %d", what, len(got), n)
				}
			}
			later := func(d time.Duration) {
				f.Clock.Ahead += d
				f.Clock.Lengths += d
			}
			begun := time.Now()
			first := claim(2)
			want("two are asked for, by each of two processes", first, 3)
			f.MustSettle(tablestest.End(first[0], jobs.Completed))
			want("one has ended", claim(8), 0)
			unbegun := tablestest.End(first[1], jobs.Released)
			unbegun.Unstarted = true
			f.MustSettle(unbegun)
			again := claim(8)
			want("one was released before it began", again, 1)
			f.MustSettle(tablestest.End(again[0], jobs.Completed), tablestest.End(first[2], jobs.Completed))
			later(8*time.Second - time.Since(begun)) // a loaded machine has used some of them
			want("after eight seconds", claim(8), 0)
			later(4 * time.Second)
			want("in the next ten seconds two are left of five in a minute", claim(8), 2)
			later(12 * time.Second)
			want("five have begun in this minute", claim(8), 0)
			later(time.Minute)
			want("in the next minute, whose ten seconds are for three", claim(8), 3)
		})
	}
}

// Processes that claim in the same moment see the same free permits, and yet do not
// begin more than the rate lets them.
func TestARateHoldsInARace(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		fleet := []*Store{f.Store, f.another(), f.another(), f.another()}
		var list []jobs.Spec
		for i := range 60 {
			list = append(list, tablestest.Rated.New(json.RawMessage(fmt.Sprint(i))))
		}
		f.MustEnqueue(list...)
		begun := 0
		for round := range 6 {
			got := make([][]jobs.Claimed, len(fleet))
			ready, done := make(chan struct{}), sync.WaitGroup{}
			for i, s := range fleet {
				ask := askOne
				ask.Limit = 3
				done.Go(func() {
					<-ready
					var err error
					if got[i], err = s.Claim(bg, ask); err != nil && !errors.Is(err, jobs.ErrUnseen) {
						t.Errorf("process %d: %v", i, err)
					}
				})
			}
			close(ready)
			done.Wait()
			all := slices.Concat(got...)
			if len(all) > 3 {
				t.Errorf("round %d: %d jobs begin at the rate 3/10s", round, len(all))
			}
			begun += len(all)
			for _, c := range all {
				f.MustSettle(tablestest.End(c, jobs.Completed))
			}
			f.Clock.Ahead += 2 * time.Minute
			f.Clock.Lengths += 2 * time.Minute
		}
		if begun < 6 {
			t.Errorf("%d jobs begin in six rounds: the test shows nothing", begun)
		}
	})
}
