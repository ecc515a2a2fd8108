package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// A job is claimed, released and claimed by another worker within one second.
// What the first still has on its way changes nothing of the second run.
func TestALeaseIsNotTakenForTheOneBeforeIt(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			db := v.Database(t)
			t.Run("seen before the first claim", func(t *testing.T) {
				claimedWithinASecond(openFixture(t, v, db), true)
			})
			t.Run("seen after the release", func(t *testing.T) { claimedWithinASecond(openFixture(t, v, db), false) })
		})
	}
}

func claimedWithinASecond(f *fixture, early bool) {
	at := time.Now().Truncate(time.Second)
	o := tables.Options{Registry: tablestest.Registry(), Clock: f.Clock.Elapsed,
		DatabaseClock: func() time.Time { return at }}
	first, second := open1(f.T, f.DB, o), open1(f.T, f.DB, o)
	f.setStore(first)
	f.MustEnqueue(tablestest.Job(`1`))
	ctx, c := context.Background(), second.newClaim(askMany)
	look := second.between(second.cursorOf("default", 0), tables.RowPosition{}, tables.RowPosition{},
		second.tables.Layout.Waiting(), 10)
	seen, now, err := second.tables.ReadCandidates(ctx, second.tables.DB, look)
	if err != nil || len(seen) != 1 || !second.tables.Claimable("default", seen[0]) {
		f.T.Fatalf("%d candidates, %v", len(seen), err)
	}
	held := f.MustClaim(1)[0]
	if err := f.MustSettle(tablestest.End(held, jobs.Released))[0]; err != nil {
		f.T.Fatal(err)
	}
	var got []jobs.Claimed
	if early {
		if got, err = second.claimRows(ctx, c, seen, now); err != nil {
			f.T.Fatal(err)
		}
	}
	for range 3 { // at once if it may, else a second later
		if len(got) == 0 {
			got = f.ClaimBy(second, 1)
			at = at.Add(time.Second)
		}
	}
	if len(got) != 1 || got[0].Job.Attempt != 1 {
		f.T.Fatalf("the released job was not claimed again: %+v", got)
	}
	renewed, err := first.Renew(ctx, []jobs.Lease{held.Lease}, lease)
	if err != nil || renewed[0] != (jobs.Lease{}) {
		f.T.Errorf("the lease that was released can be renewed: %+v, %v", renewed, err)
	}
	for _, outcome := range []jobs.Outcome{jobs.Completed, jobs.Retried} {
		held.Job.UUID = "another" // or the history would know the end
		if err := f.MustSettle(tablestest.End(held, outcome))[0]; !errors.Is(err, jobs.ErrLeaseLost) {
			f.T.Errorf("the released run was written as %v: %v", outcome, err)
		}
	}
	f.setStore(second)
	if err := f.MustSettle(tablestest.End(got[0], jobs.Completed))[0]; err != nil {
		f.T.Errorf("the end of the second run: %v", err)
	}
}
