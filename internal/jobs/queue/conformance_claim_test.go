package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

var askOne = jobs.ClaimRequest{Worker: "host:1:x", Queues: []string{"default"}, Limit: 1, Soon: 20, Lease: lease}

// relay ends a run and takes the next job along.
func (f *fixture) relay(e jobs.Settlement) (next []jobs.Claimed, lost error) {
	f.T.Helper()
	return f.relayAll(askOne, e)
}

// relayAll ends a run and takes the next jobs along that r asks for.
func (f *fixture) relayAll(r jobs.ClaimRequest, ends ...jobs.Settlement) (next []jobs.Claimed, lost error) {
	f.T.Helper()
	f.cursorOf("default", 0).fromHead.read = f.tables.Options.Clock() // however slow the machine is
	results, next, err := f.SettleAndClaim(context.Background(), ends, r)
	if err != nil {
		f.T.Fatal(err)
	}
	return next, errors.Join(results...)
}

// A settlement brings the next job, claimed as a claim would have done it.
func conformASettlementBringsTheNextJob(t *testing.T, f *fixture) {
	receipts := f.MustEnqueue(tablestest.Job(`{"n":1}`), tablestest.Job(`{"n":2}`), tablestest.Job(`{"n":3}`))
	held := f.claimAhead()[0]
	if f.Variant.Layout == tables.Extended { // its classes of priority were read a moment ago
		f.classesOf("default").next = f.tables.Options.Clock().Add(time.Hour)
	}
	f.cursorOf("default", 0).next = f.tables.Options.Clock().Add(time.Hour) // no sweep comes between
	next, lost := f.relay(tablestest.End(held, jobs.Completed))
	if lost != nil || len(next) != 1 || next[0].Job.ID != receipts[1].ID || next[0].Job.Attempt != 1 {
		t.Fatalf("%v, next %+v, want the second", lost, next)
	}
	if got := f.ClaimBy(f.another(), 5); len(got) != 1 || got[0].Job.ID != receipts[2].ID {
		t.Fatalf("another claimed %+v, want the third alone", got)
	}
	if err := f.MustSettle(tablestest.End(next[0], jobs.Completed))[0]; err != nil {
		t.Error(err)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs WHERE outcome = 'completed'"); n != 2 {
		t.Errorf("%d runs, want 2", n)
	}
}

// Another worker took the next job meanwhile: the end is written all the same.
// Where the lease is lost, nothing is written and nothing claimed.
func conformASettlementDoesNotRestOnTheNextJob(t *testing.T, f *fixture) {
	f.MustEnqueue(tablestest.Job(`{"n":1}`), tablestest.Job(`{"n":2}`), tablestest.Job(`{"n":3}`))
	held := f.claimAhead()[0]
	if f.Variant.Layout == tables.Extended {
		f.classesOf("default").next = f.tables.Options.Clock().Add(time.Hour)
	}
	f.cursorOf("default", 0).next = f.tables.Options.Clock().Add(time.Hour)
	if got := f.ClaimBy(f.another(), 1); len(got) != 1 {
		t.Fatal(got)
	}
	if next, lost := f.relay(tablestest.End(held, jobs.Completed)); lost != nil || len(next) != 0 {
		t.Fatalf("%v, next %+v, which another has", lost, next)
	}
	stale := tablestest.End(held, jobs.Completed)
	stale.Claimed.Lease.Attempt, stale.Claimed.Lease.Token = 9, "w/00"
	if next, lost := f.relay(stale); !errors.Is(lost, jobs.ErrLeaseLost) || len(next) != 0 {
		t.Errorf("%v, next %+v, though the lease is lost", lost, next)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs"); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
	f.cursorOf("default", 0).next = time.Time{} // what was foreseen and not taken is below the floor
	if got := f.MustClaim(5); len(got) != 1 {
		t.Errorf("%d jobs are left to claim, want the third", len(got))
	}
}

// Two ends bring the next three jobs. Where another worker took one of those that
// would come, the ends are written all the same, and what is left is claimed later.
func conformASettlementBringsManyJobs(t *testing.T, f *fixture) {
	var list []jobs.Spec
	for i := range 8 {
		list = append(list, tablestest.Job(fmt.Sprint(i)))
	}
	receipts := f.MustEnqueue(list...)
	held := append(f.claimAhead(), f.claimQueues(1, "default")...)
	still := func() {
		f.classesOf("default").next = f.tables.Options.Clock().Add(time.Hour)
		f.cursorOf("default", 0).next = f.tables.Options.Clock().Add(time.Hour)
	}
	still()
	three := askOne
	three.Limit = 3
	next, lost := f.relayAll(three, tablestest.End(held[0], jobs.Completed), tablestest.End(held[1], jobs.Completed))
	if lost != nil || len(next) != 3 || next[0].Job.ID != receipts[2].ID || next[2].Job.ID != receipts[4].ID {
		t.Fatalf("%v, next %+v, want three from the third on", lost, next)
	}
	other := f.ClaimBy(f.another(), 1)
	if len(other) != 1 || other[0].Job.ID != receipts[5].ID {
		t.Fatalf("another claimed %+v, want the sixth", other)
	}
	still()
	got, lost := f.relayAll(three, tablestest.End(next[0], jobs.Completed), tablestest.End(next[1], jobs.Completed))
	if lost != nil || f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs WHERE outcome = 'completed'") != 4 {
		t.Fatalf("%v, and not all ends are written", lost)
	}
	f.cursorOf("default", 0).next = time.Time{} // what was foreseen and not taken is below the mark
	if got = append(got, f.MustClaim(5)...); len(got) != 2 || got[0].Job.ID == got[1].Job.ID {
		t.Errorf("claimed %+v, want the seventh and the eighth", got)
	}
}

// A job that may be started only once more is claimed for a free slot, not ahead.
func conformNoLastStartAhead(t *testing.T, f *fixture) {
	receipts := f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`).WithMaxAttempts(1), tablestest.Job(`3`))
	got, err := f.Claim(bg, jobs.ClaimRequest{Worker: "host:1:x", Queues: []string{"default"}, Limit: 3, Ahead: 2,
		AheadBytes: 1 << 20, Lease: lease})
	if err != nil || len(got) != 1 || got[0].Job.ID != receipts[0].ID {
		t.Fatalf("claimed %+v, %v; want the first alone", got, err)
	}
	f.classesOf("default").next = f.tables.Options.Clock().Add(time.Hour)
	f.cursorOf("default", 0).next = f.tables.Options.Clock().Add(time.Hour)
	ahead := askOne
	ahead.Limit, ahead.Ahead, ahead.AheadBytes = 2, 2, 1<<20
	if next, lost := f.relayAll(ahead, tablestest.End(got[0], jobs.Completed)); lost != nil || len(next) != 0 {
		t.Errorf("%v, claimed %+v along, ahead of a slot", lost, next)
	}
	if got = f.MustClaim(2); len(got) != 2 || got[0].Job.ID != receipts[1].ID {
		t.Errorf("claimed %+v, want the second and the third", got)
	}
}

// Ahead of free slots jobs are claimed while their payloads are not too much to hold.
func conformAheadWithinBytes(t *testing.T, f *fixture) {
	size := f.enqueueLarge(8, 2*wholePayload)
	ask := jobs.ClaimRequest{Worker: "host:1:x", Queues: []string{"default"}, Limit: 7, Ahead: 6, AheadBytes: 2 * size,
		Lease: lease}
	got, err := f.Claim(bg, ask)
	if err != nil || len(got) != 3 {
		t.Fatalf("claimed %d, %v; want one for the slot and two ahead", len(got), err)
	}
	f.classesOf("default").next = f.tables.Options.Clock().Add(time.Hour)
	f.cursorOf("default", 0).next = f.tables.Options.Clock().Add(time.Hour)
	ask.AheadBytes = size
	next, lost := f.relayAll(ask, tablestest.End(got[0], jobs.Completed))
	if lost != nil || len(next) > 2 {
		t.Fatalf("%v, claimed %d along; want one for the slot and one ahead at most", lost, len(next))
	}
	if len(next) == 0 { // not all was read: the next claim does it
		if next, err = f.Claim(bg, ask); err != nil || len(next) != 2 {
			t.Fatalf("claimed %d, %v; want one for the slot and one ahead", len(next), err)
		}
	}
	ask.Limit, ask.AheadBytes = 6, 0
	if got, err = f.Claim(bg, ask); err != nil || len(got) != 0 {
		t.Errorf("claimed %d ahead of a slot, %v; want none", len(got), err)
	}
	if got = f.MustClaim(8); len(got) != 8-3-len(next) {
		t.Errorf("claimed %d at the end", len(got))
	}
}

// enqueueLarge enqueues n jobs and says how large each payload is.
func (f *fixture) enqueueLarge(n, bytes int) int64 {
	payload := fmt.Sprintf(`{"type":"test.plain","data":%q}`, strings.Repeat("y", bytes))
	for range n {
		f.InsertRaw("default", payload)
	}
	return int64(len(payload))
}

// The queue that comes first was empty a moment ago: a settlement brings the next
// job of the second one, until a job comes into the first.
func conformAQueueSeenEmptyCostsNoLook(t *testing.T, f *fixture) {
	receipts := f.MustEnqueue(tablestest.Job(`{"n":1}`), tablestest.Job(`{"n":2}`), tablestest.Job(`{"n":3}`))
	ask := askOne
	ask.Queues = []string{"other", "default"}
	held, err := f.Claim(bg, ask)
	if err != nil {
		t.Fatal(err)
	}
	settle := func() []jobs.Claimed {
		t.Helper()
		f.classesOf("default").next = f.tables.Options.Clock().Add(time.Hour)
		f.cursorOf("default", 0).next = f.tables.Options.Clock().Add(time.Hour)
		if look, ok := f.emptied["other"]; ok {
			f.cursorOf("default", 0).fromHead.read = f.tables.Options.Clock()
			f.emptied["other"] = emptyLook{f.tables.Options.Clock(), look.arrivals} // however slow the machine is
		}
		_, next, err := f.SettleAndClaim(bg, []jobs.Settlement{tablestest.End(held[0], jobs.Completed)}, ask)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	if held = settle(); len(held) != 1 || held[0].Job.ID != receipts[1].ID {
		t.Fatalf("claimed %+v along, want the second", held)
	}
	f.InsertRaw("other", `{"type":"test.plain","n":4}`)
	f.NoteArrival("OTHER")
	if next := settle(); len(next) != 0 {
		t.Fatalf("claimed %+v along, though a job was enqueued into the queue before it", next)
	}
	if held = f.MustClaim(1, ask.Queues...); len(held) != 1 || held[0].Job.Queue != "other" {
		t.Fatalf("claimed %+v, want the job of the first queue", held)
	}
	f.MustSettle(tablestest.End(held[0], jobs.Completed))
	f.emptied = map[string]emptyLook{"other": {f.tables.Options.Clock(), f.arrivalsIn("other")},
		"default": {f.tables.Options.Clock(), f.arrivalsIn("default")}}
	if got := f.claimQueues(1, ask.Queues...); len(got) != 1 || got[0].Job.ID != receipts[2].ID {
		t.Errorf("claimed %+v, want the third: a claim finds nothing only after a look", got)
	}
}

// claimAhead claims a job and reads those that come next for this store alone.
func (f *fixture) claimAhead() []jobs.Claimed {
	f.T.Helper()
	got, err := f.Claim(bg, askOne)
	if err != nil || len(got) != 1 {
		f.T.Fatalf("claimed %+v, %v; want one", got, err)
	}
	return got
}

// claimQueues is one call of Claim.
func (f *fixture) claimQueues(limit int, queues ...string) []jobs.Claimed {
	f.T.Helper()
	got, err := f.Claim(bg, jobs.ClaimRequest{Worker: "host:1:x", Queues: queues, Limit: limit, Lease: lease})
	if err != nil {
		f.T.Fatal(err)
	}
	return got
}

// The answer to a claim's COMMIT is lost, and its worker has nothing: the job
// comes back without a charged attempt, before its lease would end.
func conformAnUnansweredClaimIsNotCharged(t *testing.T, f *fixture) {
	f.MustEnqueue(tablestest.Job(`{}`), tablestest.Job(`{}`))
	for _, held := range f.MustClaim(2) {
		c := f.newClaim(askOne)
		c.token = held.Lease.Token
		f.recordInDoubt(c, []*tables.Candidate{{ID: held.Lease.ID, Attempts: held.Lease.Attempt - 1}},
			held.Lease.ReservedAt)
	}
	if f.Variant.Layout == tables.Stock { // it may be another's, until that one must have renewed it
		f.cursorOf("default", 0).next = time.Time{} // what comes back is below the floor
		if got, err := f.Claim(context.Background(), askOne); err != nil || len(got) != 0 {
			t.Fatalf("%d claimed at once, %v", len(got), err)
		}
		f.Clock.Lengths += lease*3/4 + time.Second
	}
	got := f.MustClaim(2)
	if len(got) != 2 || got[0].Job.Attempt != 1 || got[1].Job.Attempt != 1 || got[0].Rescued {
		t.Errorf("claimed %+v, want both at their first attempt", got)
	}
}

// What another worker holds by now is left to it.
func conformAnUnansweredClaimIsNobodyElses(t *testing.T, f *fixture) {
	f.MustEnqueue(tablestest.Job(`{}`))
	held := f.MustClaim(1)[0]
	c := f.newClaim(askOne)
	c.token = "host:2:y/00"
	f.recordInDoubt(c, []*tables.Candidate{{ID: held.Lease.ID, Attempts: held.Lease.Attempt - 1}},
		held.Lease.ReservedAt)
	f.Clock.Ahead += lease / 3 // the holder renews, as it must
	leases, err := f.Renew(context.Background(), []jobs.Lease{held.Lease}, lease)
	if err != nil || leases[0] == (jobs.Lease{}) {
		t.Fatal(leases, err)
	}
	f.Clock.Lengths += lease*3/4 + time.Second
	if got, err := f.Claim(context.Background(), askOne); err != nil || len(got) != 0 {
		t.Fatalf("claimed %+v, which another holds; %v", got, err)
	}
	held.Lease = leases[0]
	if err := f.MustSettle(tablestest.End(held, jobs.Completed))[0]; err != nil {
		t.Errorf("the holder's end: %v", err)
	}
}
