package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// A job is claimed, released and claimed by another worker within one second.
// What the first still has on its way changes nothing of the second run.
func TestALeaseIsNotTakenForTheOneBeforeIt(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			db := v.database(t)
			t.Run("seen before the first claim", func(t *testing.T) { claimedWithinASecond(v.fixture(t, db), true) })
			t.Run("seen after the release", func(t *testing.T) { claimedWithinASecond(v.fixture(t, db), false) })
		})
	}
}

func claimedWithinASecond(f *fixture, early bool) {
	at := time.Now().Truncate(time.Second)
	o := tables.Options{Registry: registry(), Mode: f.v.mode, Clock: f.clock.elapsed,
		DatabaseClock: func() time.Time { return at }}
	first, second := open1(f.t, f.db, o), open1(f.t, f.db, o)
	f.Store = first
	f.enqueue(job(`1`))
	ctx, c := context.Background(), second.newClaim(askMany)
	look := second.inLane(second.lane("default", 0), tables.RowPosition{}, tables.RowPosition{}, second.Layout.Waiting(), 10)
	seen, now, err := second.ReadCandidates(ctx, second.DB, look)
	if err != nil || len(seen) != 1 || !second.Claimable("default", seen[0]) {
		f.t.Fatalf("%d candidates, %v", len(seen), err)
	}
	held := f.claim(1)[0]
	if err := f.settle(end(held, jobs.Released))[0]; err != nil {
		f.t.Fatal(err)
	}
	var got []jobs.Claimed
	if early {
		if got, err = second.claimRows(ctx, c, seen, now); err != nil {
			f.t.Fatal(err)
		}
	}
	for range 3 { // at once if it may, else a second later
		if len(got) == 0 {
			got = f.claimBy(second, 1)
			at = at.Add(time.Second)
		}
	}
	if len(got) != 1 || got[0].Job.Attempt != 1 {
		f.t.Fatalf("the released job was not claimed again: %+v", got)
	}
	renewed, err := first.Renew(ctx, []jobs.Lease{held.Lease}, lease)
	if err != nil || renewed[0] != (jobs.Lease{}) {
		f.t.Errorf("the lease that was released can be renewed: %+v, %v", renewed, err)
	}
	for _, verdict := range []jobs.Outcome{jobs.Completed, jobs.Retried} {
		held.Job.UUID = "another" // or the history would know the end
		if err := f.settle(end(held, verdict))[0]; !errors.Is(err, jobs.ErrLeaseLost) {
			f.t.Errorf("the released run was written as %v: %v", verdict, err)
		}
	}
	f.Store = second
	if err := f.settle(end(got[0], jobs.Completed))[0]; err != nil {
		f.t.Errorf("the end of the second run: %v", err)
	}
}
