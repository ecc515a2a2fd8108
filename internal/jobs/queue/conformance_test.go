package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// TestConformance holds every variant of tables and databases to
// the same promises.
func TestConformance(t *testing.T) {
	promises := []struct {
		name string
		test func(*testing.T, *fixture)
	}{
		{"a job goes through its life", conformAJobGoesThroughItsLife},
		{"order", conformOrder},
		{"a new priority", conformANewPriority},
		{"a lost lease changes nothing", conformALostLeaseChangesNothing},
		{"renew keeps a lease", conformRenewKeepsALease},
		{"each job once among many claimers", conformEachJobOnceAmongManyClaimers},
		{"what a look left over is tried and not trusted", conformLeftoversAreNotTrusted},
		{"a lone settlement without its lease writes nothing", conformALoneSettlementNeedsItsLease},
		{"rows of others are not touched", conformRowsOfOthersAreNotTouched},
		{"poison fails and the queue goes on", conformPoisonFailsAndTheQueueGoesOn},
		{"a job that kills its workers ends", conformAJobThatKillsItsWorkersEnds},
		{"a row narrows its limits", conformARowNarrowsItsLimits},
		{"attempts at the columns limit", conformAttemptsAtTheColumnsLimit},
		{"unique", conformUnique},
		{"coalesce", conformCoalesce},
		{"fleet limit", conformFleetLimit},
		{"enqueue in the callers transaction", conformEnqueueInTheCallersTransaction},
		{"follow ups come with the completion", conformFollowUpsComeWithTheCompletion},
		{"settling twice after a lost answer is harmless", conformSettlingTwiceAfterALostAnswerIsHarmless},
		{"a settlement brings the next job", conformASettlementBringsTheNextJob},
		{"a settlement does not rest on the next job", conformASettlementDoesNotRestOnTheNextJob},
		{"a settlement brings many jobs", conformASettlementBringsManyJobs},
		{"a job is not claimed ahead for its last start", conformNoLastStartAhead},
		{"no more is claimed ahead than may be held", conformAheadWithinBytes},
		{"a queue seen empty costs no look", conformAQueueSeenEmptyCostsNoLook},
		{"an unanswered claim is not charged", conformAnUnansweredClaimIsNotCharged},
		{"an unanswered claim is nobody elses", conformAnUnansweredClaimIsNobodyElses},
		{"what a run left is written or left out", conformWhatARunLeftIsWrittenOrLeftOut},
		{"an end that is refused holds up no other", conformARefusedEndHoldsUpNoOther},
		{"a heartbeat writes and reads", conformBeatTellsAndIsTold},
		{"cleaning", conformCleaning},
	}
	for _, v := range variants() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			db := v.Database(t)
			for _, p := range promises {
				t.Run(p.name, func(t *testing.T) { p.test(t, openFixture(t, v, db)) })
			}
		})
	}
}

// The first claim leaves four rows over. Another claimer takes two of them and
// a person deletes one; only the last is still to be had.
func conformLeftoversAreNotTrusted(t *testing.T, f *fixture) {
	receipts := f.MustEnqueue(tablestest.Job(`{"n":1}`), tablestest.Job(`{"n":2}`), tablestest.Job(`{"n":3}`),
		tablestest.Job(`{"n":4}`), tablestest.Job(`{"n":5}`))
	if got := f.MustClaim(1); len(got) != 1 || got[0].Job.ID != receipts[0].ID {
		t.Fatalf("claimed %+v, want the first", got)
	}
	if got := f.ClaimBy(f.another(), 2); len(got) != 2 || got[0].Job.ID != receipts[1].ID {
		t.Fatalf("another claimed %+v, want the second and third", got)
	}
	f.DB.MustExec(fmt.Sprintf("DELETE FROM %s WHERE id = %d", f.Store.tables.Layout.Table().Name, receipts[3].ID))
	if got := f.MustClaim(1); len(got) != 1 || got[0].Job.ID != receipts[4].ID {
		t.Errorf("claimed %+v, want the fifth alone", got)
	}
}

// A completion alone may go another way than many at once: it needs its lease
// likewise, and frees its unique key.
func conformALoneSettlementNeedsItsLease(t *testing.T, f *fixture) {
	f.MustEnqueue(tablestest.Job(`{}`).Unique("lone"))
	held := f.MustClaim(1)[0]
	lost := held
	lost.Lease.Attempt += 7
	lost.Lease.Token = tables.NewToken("somebody else")
	if errs := f.MustSettle(tablestest.End(lost, jobs.Completed)); !errors.Is(errs[0], jobs.ErrLeaseLost) {
		t.Errorf("settled under a lease that is not ours: %v", errs[0])
	}
	rows := "SELECT COUNT(*) FROM " + f.Store.tables.Layout.Table().Name
	if f.CountRows(rows) != 1 || f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs") != 0 ||
		f.CountRows("SELECT COUNT(*) FROM cmsjobs_unique") != 1 {
		t.Error("a settlement without its lease wrote something")
	}
	if errs := f.MustSettle(tablestest.End(held, jobs.Completed)); errs[0] != nil {
		t.Fatal(errs[0])
	}
	if f.CountRows(rows) != 0 || f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs WHERE outcome = 'completed'") != 1 ||
		f.CountRows("SELECT COUNT(*) FROM cmsjobs_unique") != 0 {
		t.Error("the completion did not leave one line and free the key")
	}
}

func conformAJobGoesThroughItsLife(t *testing.T, f *fixture) {
	receipts := f.MustEnqueue(tablestest.Job(`{"n":1}`).WithMetadata(map[string]int{"userId": 7}),
		tablestest.Job(`{"n":2}`), tablestest.Job(`{"n":3}`))
	got := f.MustClaim(10)
	if len(got) != 3 {
		t.Fatalf("%d of 3 jobs claimed", len(got))
	}
	first := got[0]
	if first.Job.ID != receipts[0].ID || first.Job.UUID != receipts[0].UUID || first.Job.Type != "test.plain" ||
		string(first.Job.Data) != `{"n":1}` ||
		string(first.Job.Metadata) != `{"userId":7}` || first.Job.Attempt != 1 || first.Job.MaxAttempts != 3 ||
		first.Job.Queue != "default" || first.Fault != nil || first.Rescued {
		t.Errorf("claimed %+v, want what was enqueued as %+v", first, receipts[0])
	}
	if again := f.MustClaim(10); len(again) != 0 {
		t.Errorf("%d running jobs were claimed again", len(again))
	}
	retry := tablestest.End(got[1], jobs.Retried)
	retry.Delay = 60 * time.Second
	for i, err := range f.MustSettle(tablestest.End(got[0], jobs.Completed), retry,
		tablestest.End(got[2], jobs.Failed)) {
		if err != nil {
			t.Errorf("settling %d: %v", i, err)
		}
	}
	if n := f.CountRows("SELECT COUNT(*) FROM jobs"); n != 1 {
		t.Errorf("%d rows are left, want the retried one", n)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM failed_jobs"); n != 1 {
		t.Errorf("%d failed jobs, want 1", n)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs"); n != 3 {
		t.Errorf("%d runs in the history, want 3", n)
	}
	if early := f.MustClaim(10); len(early) != 0 {
		t.Errorf("the retried job came back before its delay")
	}
	f.Clock.Ahead += 61 * time.Second
	late := f.MustClaim(10)
	if len(late) != 1 || late[0].Job.Attempt != 2 || late[0].Job.UUID != receipts[1].UUID {
		t.Fatalf("after the delay: %+v", late)
	}
	// Released, the attempt is not counted.
	if err := f.MustSettle(tablestest.End(late[0], jobs.Released))[0]; err != nil {
		t.Fatal(err)
	}
	f.Clock.Ahead += time.Second // not in the second of its lease
	if back := f.MustClaim(1); len(back) != 1 || back[0].Job.Attempt != 2 {
		t.Errorf("the released job: %+v", back)
	}
}

func conformOrder(t *testing.T, f *fixture) {
	f.MustEnqueue(tablestest.Job(`"late"`).In(time.Hour), tablestest.Job(`"a"`), tablestest.Job(`"b"`),
		tablestest.Job(`"c"`).On("other"), tablestest.Job(`"d"`).WithPriority(5))
	var order []string
	for range 5 {
		for _, c := range f.MustClaim(1, "other", "default") {
			order = append(order, string(c.Job.Data))
		}
	}
	want := `"c" "a" "b" "d"`
	if f.Variant.Layout == tables.Extended {
		want = `"c" "d" "a" "b"`
	}
	if got := strings.Join(order, " "); got != want {
		t.Errorf("claimed %s, want %s", got, want)
	}
	f.Clock.Ahead += 2 * time.Hour
	ripe := f.MustClaim(10) // the running four lost their leases meanwhile
	seen := false
	for _, c := range ripe {
		seen = seen || string(c.Job.Data) == `"late"` && !c.Rescued
	}
	if !seen {
		t.Error("the delayed job did not ripen")
	}
}

// A job of a priority that was not there at the last look is found at once.
func conformANewPriority(t *testing.T, f *fixture) {
	for p := range 5 {
		r := f.MustEnqueue(tablestest.Job(`1`).WithPriority(p))[0]
		got, err := f.Claim(context.Background(), jobs.ClaimRequest{Queues: []string{"default"}, Limit: 1,
			Lease: lease})
		if err != nil || len(got) != 1 || got[0].Job.ID != r.ID {
			t.Fatalf("priority %d: %+v, %v", p, got, err)
		}
	}
}

func conformALostLeaseChangesNothing(t *testing.T, f *fixture) {
	f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`))
	old := f.MustClaim(2)
	f.Clock.Ahead += lease + 2*time.Second
	other := f.another()
	stolen := f.ClaimBy(other, 2)
	if len(stolen) != 2 || !stolen[0].Rescued || stolen[0].Job.Attempt != 2 {
		t.Fatalf("after the lease: %+v", stolen)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs WHERE outcome = 'crashed'"); n != 2 {
		t.Errorf("%d crashed runs in the history, want 2", n)
	}
	for _, v := range []jobs.Outcome{jobs.Completed, jobs.Retried, jobs.Released, jobs.Failed, jobs.Cancelled} {
		if err := f.MustSettle(tablestest.End(old[0], v))[0]; !errors.Is(err, jobs.ErrLeaseLost) {
			t.Errorf("%v with a lost lease: %v", v, err)
		}
	}
	renewed, err := f.Renew(context.Background(), []jobs.Lease{old[0].Lease, stolen[1].Lease, old[1].Lease}, lease)
	if err != nil || renewed[0] != (jobs.Lease{}) || renewed[1] == (jobs.Lease{}) || renewed[2] != (jobs.Lease{}) {
		t.Errorf("renewing lost, held, lost: %+v, %v", renewed, err)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM jobs"); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM failed_jobs"); n != 0 {
		t.Errorf("a lost lease made a job fail")
	}
	stolen[1].Lease = renewed[1]
	errs, err := other.Settle(context.Background(), []jobs.Settlement{tablestest.End(stolen[0], jobs.Completed),
		tablestest.End(old[1], jobs.Completed), tablestest.End(stolen[1], jobs.Completed)})
	if err != nil || errs[0] != nil || !errors.Is(errs[1], jobs.ErrLeaseLost) || errs[2] != nil {
		t.Errorf("one lost lease in a batch: %v, %v", errs, err)
	}
}

func conformRenewKeepsALease(t *testing.T, f *fixture) {
	f.MustEnqueue(tablestest.Job(`1`))
	c := f.MustClaim(1)[0]
	for range 3 {
		f.Clock.Ahead += 2 * lease / 3
		renewed, err := f.Renew(context.Background(), []jobs.Lease{c.Lease}, lease)
		if err != nil || renewed[0] == (jobs.Lease{}) {
			t.Fatalf("renewing: %+v, %v", renewed, err)
		}
		c.Lease = renewed[0]
		got, err := f.Claim(context.Background(), jobs.ClaimRequest{Queues: []string{"default"}, Limit: 1,
			Lease: lease})
		if err != nil || len(got) != 0 {
			t.Fatalf("a renewed job was claimed: %v, %v", got, err)
		}
	}
	if err := f.MustSettle(tablestest.End(c, jobs.Completed))[0]; err != nil {
		t.Error(err)
	}
}

func conformEachJobOnceAmongManyClaimers(t *testing.T, f *fixture) {
	const total = 200
	list := make([]jobs.Spec, total)
	for i := range list {
		list[i] = tablestest.Job(fmt.Sprint(i))
	}
	f.MustEnqueue(list...)
	var mu sync.Mutex
	started := map[string]int{}
	var claimers sync.WaitGroup
	fixed := f.Clock.Now() // no lease ends meanwhile
	for n := range 4 {
		s := open1(t, f.DB, tables.Options{Registry: tablestest.Registry(),
			DatabaseClock: func() time.Time { return fixed }})
		claimers.Go(func() {
			for {
				got, err := s.Claim(context.Background(), jobs.ClaimRequest{
					Worker: fmt.Sprint("w", n), Queues: []string{"default"}, Limit: 1 + 5*n, Lease: lease})
				if err != nil {
					t.Error(err)
					return
				}
				var ends []jobs.Settlement
				mu.Lock()
				for _, c := range got {
					started[string(c.Job.Data)]++
					ends = append(ends, tablestest.End(c, jobs.Completed))
				}
				done := len(started) == total
				mu.Unlock()
				errs, err := s.Settle(context.Background(), ends)
				if err := errors.Join(append(errs, err)...); err != nil {
					t.Error(err)
					return
				}
				if done {
					return
				}
			}
		})
	}
	claimers.Wait()
	for data, n := range started {
		if n != 1 {
			t.Errorf("job %s started %d times", data, n)
		}
	}
	if left := f.CountRows("SELECT COUNT(*) FROM jobs"); left != 0 || len(started) != total {
		t.Errorf("%d jobs left, %d of %d started", left, len(started), total)
	}
}

const php = `{"uuid":"8a2e","displayName":"App\\Jobs\\Mail","job":"Illuminate\\Queue\\CallQueuedHandler@call","maxTries":null,"data":{"commandName":"X","command":"O:1:\"X\":0:{}"}}`

func conformRowsOfOthersAreNotTouched(t *testing.T, f *fixture) {
	for range 60 {
		f.InsertRaw("default", php)
	}
	f.InsertRaw("default", `{"job":"App\\Jobs\\Custom@handle","data":{}}`)
	f.InsertRaw("default", `{"type":"shop.sync"}`)
	if f.Variant.Layout == tables.Stock {
		f.InsertRaw("default", `{"type":"test.pl`) // on a queue that is not ours
	}
	before := f.CountRows("SELECT COUNT(*) FROM jobs")
	f.InsertRaw("default", `{"type":"test.plain","force":true}`)
	got := f.MustClaim(5)
	if len(got) != 1 || string(got[0].Job.Data) != `{"force":true}` {
		t.Fatalf("claimed %+v, want the one job behind PHP's", got)
	}
	if got[0].Job.UUID != tables.DerivedUUID("jobs", got[0].Job.ID, got[0].Job.EnqueuedAt.Unix()) {
		t.Errorf("the row without a UUID got %s", got[0].Job.UUID)
	}
	if err := f.MustSettle(tablestest.End(got[0], jobs.Failed))[0]; err != nil {
		t.Fatal(err)
	}
	reserved := "reserved_at IS NOT NULL"
	if f.Variant.Layout == tables.Extended {
		reserved = "status <> 'queued'"
	}
	if n := f.CountRows("SELECT COUNT(*) FROM jobs WHERE attempts <> 0 OR " + reserved); n != 0 {
		t.Errorf("%d rows of others were touched", n)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM jobs"); n != before {
		t.Errorf("%d rows of others are left of %d", n, before)
	}
	var payload string
	if err := f.DB.Get(&payload, "SELECT payload FROM failed_jobs"); err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal([]byte(payload), &keys); err != nil || keys["job"] != "test.plain" ||
		keys["displayName"] != "test.plain" || keys["uuid"] != got[0].Job.UUID || keys["force"] != true {
		t.Errorf("failed_jobs.payload is %s", payload)
	}
}

func conformPoisonFailsAndTheQueueGoesOn(t *testing.T, f *fixture) {
	f.InsertRaw("cmsjobs", `{"type":"test.plain"`)
	f.InsertRaw("cmsjobs", `[1,2]`)
	f.InsertRaw("cmsjobs", ``)
	f.InsertRaw("cmsjobs", `{"type":"test.plain","blob":"`+strings.Repeat("x", 3<<19)+`"}`)
	f.InsertRaw("cmsjobs", `{"type":"test.plain","n":1}`)
	got := f.MustClaim(10, "cmsjobs")
	if len(got) != 5 {
		t.Fatalf("claimed %d of 5 rows", len(got))
	}
	var ends []jobs.Settlement
	good := 0
	for _, c := range got {
		e := tablestest.End(c, jobs.Completed)
		if c.Fault != nil {
			e.Outcome, e.Error = jobs.Failed, c.Fault.Error()
		} else {
			good++
		}
		ends = append(ends, e)
	}
	for i, err := range f.MustSettle(ends...) {
		if err != nil {
			t.Errorf("settling %d: %v", i, err)
		}
	}
	if good != 1 {
		t.Errorf("%d rows had no fault, want 1", good)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM failed_jobs"); n != 4 {
		t.Errorf("%d failed jobs, want 4", n)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM failed_jobs WHERE " + f.tables.Dialect.Bytes +
		"(payload) > 1500000"); n != 1 {
		t.Errorf("the oversized payload is not whole in failed_jobs")
	}
	if n := f.CountRows("SELECT COUNT(*) FROM jobs"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func conformAJobThatKillsItsWorkersEnds(t *testing.T, f *fixture) {
	f.MustEnqueue(tablestest.Job(`1`).WithMaxAttempts(2))
	for attempt := 1; attempt <= 2; attempt++ {
		if c := f.MustClaim(1); len(c) != 1 || c[0].Fault != nil || c[0].Job.Attempt != attempt {
			t.Fatalf("attempt %d: %+v", attempt, c)
		}
		f.Clock.Ahead += lease + 2*time.Second
	}
	c := f.MustClaim(1)
	if len(c) != 1 || c[0].Fault == nil || !c[0].Rescued || !strings.Contains(c[0].Fault.Error(), "started 2 times") {
		t.Fatalf("after two crashes: %+v", c)
	}
	if err := f.MustSettle(tablestest.End(c[0], jobs.Failed))[0]; err != nil {
		t.Error(err)
	}
}

// A row comes from somebody else: it may ask for fewer starts than its type has,
// not for more.
func conformARowNarrowsItsLimits(t *testing.T, f *fixture) {
	for asked, want := range map[int]int{2: 2, 50: 3} {
		f.MustEnqueue(tablestest.Job(`1`).WithMaxAttempts(asked))
		c := f.MustClaim(1)
		if len(c) != 1 || c[0].Job.MaxAttempts != want {
			t.Fatalf("a row that asks for %d starts: %+v, want %d", asked, c, want)
		}
		if r, err := f.Job(bg, c[0].Job.UUID); err != nil || r.MaxAttempts != want {
			t.Errorf("people see %d starts, want %d, %v", r.MaxAttempts, want, err)
		}
		f.MustSettle(tablestest.End(c[0], jobs.Completed))
	}
}

func conformAttemptsAtTheColumnsLimit(t *testing.T, f *fixture) {
	limit := f.Store.tables.Layout.Table().AttemptsLimit
	if limit == 0 {
		t.Skip("the column has no limit that matters")
	}
	f.InsertRaw("default", `{"type":"test.often"}`)
	f.DB.MustExec(fmt.Sprintf("UPDATE jobs SET attempts = %d", limit))
	c := f.MustClaim(1)
	if len(c) != 1 || c[0].Fault == nil {
		t.Fatalf("claimed %+v, want a fault", c)
	}
	if err := f.MustSettle(tablestest.End(c[0], jobs.Failed))[0]; err != nil {
		t.Error(err)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM jobs"); n != 0 {
		t.Error("the row is still there")
	}
}

func conformUnique(t *testing.T, f *fixture) {
	a := f.MustEnqueue(tablestest.Job(`1`).Unique("k"))[0]
	b := f.MustEnqueue(tablestest.Job(`2`).Unique("k"), tablestest.Job(`3`))
	if !b[0].Existing || b[0].ID != a.ID || b[0].UUID != a.UUID || b[1].Existing {
		t.Errorf("second enqueue: %+v, first %+v", b, a)
	}
	c := f.MustClaim(10)
	if len(c) != 2 {
		t.Fatalf("%d jobs, want 2", len(c))
	}
	if r := f.MustEnqueue(tablestest.Job(`4`).Unique("k"))[0]; !r.Existing {
		t.Error("the key of a running job is free")
	}
	f.MustSettle(tablestest.End(c[0], jobs.Completed), tablestest.End(c[1], jobs.Completed))
	d := f.MustEnqueue(tablestest.Job(`5`).Unique("k"))[0]
	if d.Existing {
		t.Error("the key outlived its job")
	}
	f.DB.MustExec("DELETE FROM jobs") // artisan queue:clear
	if r := f.MustEnqueue(tablestest.Job(`6`).Unique("k"))[0]; r.Existing {
		t.Error("the key of a deleted job sticks")
	}
	// The same UUID is the same job, also when it is done.
	named := f.MustEnqueue(tablestest.Job(`7`).Named("11111111-1111-4111-8111-111111111111"))[0]
	if again := f.MustEnqueue(tablestest.Job(`7`).Named(named.UUID))[0]; !again.Existing || again.ID != named.ID {
		t.Errorf("same UUID: %+v, %+v", named, again)
	}
	for _, c := range f.MustClaim(10) {
		f.MustSettle(tablestest.End(c, jobs.Completed))
	}
	if again := f.MustEnqueue(tablestest.Job(`7`).Named(named.UUID))[0]; !again.Existing {
		t.Error("a done job was enqueued again")
	}
}

func conformCoalesce(t *testing.T, f *fixture) {
	for range 40 {
		f.InsertRaw("default", `{"type":"test.coalesce","force":true}`)
	}
	list := make([]jobs.Spec, 60)
	for i := range list {
		list[i] = tablestest.Coalesce.New(json.RawMessage(`{"force":true}`))
	}
	f.MustEnqueue(list...)
	f.MustEnqueue(tablestest.Coalesce.New(json.RawMessage(`{"force":false}`)),
		tablestest.Job(`{"text":"test.coalesce"}`))
	got := f.MustClaim(5)
	if len(got) != 3 || len(got[0].Duplicates) != 99 {
		t.Fatalf("%d runs, the first stands for %d more; want 3 and 99", len(got), len(got[0].Duplicates))
	}
	renewed, err := f.Renew(context.Background(), append([]jobs.Lease{got[0].Lease}, got[0].Duplicates...), lease)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range renewed {
		if l == (jobs.Lease{}) {
			t.Fatal("a duplicate's lease is lost")
		}
	}
	got[0].Lease, got[0].Duplicates = renewed[0], renewed[1:]
	retry := tablestest.End(got[0], jobs.Retried)
	retry.Delay = time.Hour
	f.MustSettle(retry)
	f.Clock.Ahead += time.Second // not in the second of their lease
	again := f.MustClaim(5)
	if len(again) != 1 || len(again[0].Duplicates) != 98 || again[0].Job.Attempt != 1 {
		t.Fatalf("after a retry the duplicates are not as they were: %d runs", len(again))
	}
	f.MustSettle(tablestest.End(again[0], jobs.Completed), tablestest.End(got[1], jobs.Completed),
		tablestest.End(got[2], jobs.Completed))
	if n := f.CountRows("SELECT COUNT(*) FROM jobs"); n != 1 {
		t.Errorf("%d rows left, want the retried one", n)
	}
	if n := f.CountRows("SELECT COUNT(DISTINCT uuid) FROM cmsjobs_runs WHERE outcome = 'completed'"); n != 101 {
		t.Errorf("%d jobs in the history, want 101", n)
	}
}

func conformFleetLimit(t *testing.T, f *fixture) {
	var list []jobs.Spec
	for i := range 30 {
		list = append(list, tablestest.Limited.New(json.RawMessage(fmt.Sprint(i))))
	}
	f.MustEnqueue(append(list, tablestest.Job(`"behind"`))...)
	got := f.MustClaim(5)
	limited := 0
	for _, c := range got {
		if c.Job.Type == "test.limited" {
			limited++
		}
	}
	if limited != 2 || len(got) != 3 {
		t.Fatalf("claimed %d, %d of them limited; want 3 and 2", len(got), limited)
	}
	other := f.another()
	if more := f.ClaimBy(other, 5); len(more) != 0 {
		t.Errorf("another store got %d above the limit", len(more))
	}
	f.MustSettle(tablestest.End(got[0], jobs.Completed))
	if more := f.ClaimBy(other, 5); len(more) != 1 {
		t.Errorf("after one ended, %d were claimed, want 1", len(more))
	}
	f.Clock.Ahead += lease + 5*time.Second // the holders died
	if more := f.MustClaim(5); len(more) < 2 {
		t.Errorf("a crash did not free the places: %d", len(more))
	}
}

func conformEnqueueInTheCallersTransaction(t *testing.T, f *fixture) {
	for _, commit := range []bool{false, true} {
		x, err := f.DB.Beginx()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.EnqueueTx(context.Background(), x, tablestest.Job(`1`),
			tablestest.Job(`2`).Unique("u")); err != nil {
			t.Fatal(err)
		}
		finish := x.Rollback
		if commit {
			finish = x.Commit
		}
		if err := finish(); err != nil {
			t.Fatal(err)
		}
		if n, want := f.CountRows("SELECT COUNT(*) FROM jobs"), map[bool]int{true: 2}[commit]; n != want {
			t.Errorf("committed %v: %d jobs, want %d", commit, n, want)
		}
	}
}

func conformFollowUpsComeWithTheCompletion(t *testing.T, f *fixture) {
	f.MustEnqueue(tablestest.Job(`1`))
	c := f.MustClaim(1)[0]
	done := tablestest.End(c, jobs.Completed)
	done.FollowUps = []jobs.Spec{tablestest.Job(`"next"`)}
	done.Result = json.RawMessage(`{"files":3}`)
	done.Lines = []jobs.LogLine{{At: time.Now(), Text: "wrote 3 files"}}
	stale := done
	stale.Claimed.Lease.Attempt, stale.Claimed.Lease.Token = 9, "w/00"
	if err := f.MustSettle(stale)[0]; !errors.Is(err, jobs.ErrLeaseLost) {
		t.Fatal(err)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM jobs"); n != 1 {
		t.Fatalf("a lost lease enqueued a follow-up")
	}
	if err := f.MustSettle(done)[0]; err != nil {
		t.Fatal(err)
	}
	if next := f.MustClaim(5); len(next) != 1 || string(next[0].Job.Data) != `"next"` {
		t.Errorf("follow-up: %+v", next)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM cmsjobs_job_logs"); n != 1 {
		t.Errorf("%d log lines, want 1", n)
	}
}

func conformSettlingTwiceAfterALostAnswerIsHarmless(t *testing.T, f *fixture) {
	f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`))
	c := f.MustClaim(2)
	for i, v := range []jobs.Outcome{jobs.Completed, jobs.Released} {
		e := tablestest.End(c[i], v)
		f.MustSettle(e)
		f.rememberUnclear([]pendingSettlement{{Settlement: &e}}) // as after a lost answer to COMMIT
		if err := f.MustSettle(e)[0]; err != nil {
			t.Errorf("%v again: %v", v, err)
		}
		restarted := f.another() // knows nothing of the answer
		if errs, err := restarted.Settle(context.Background(), []jobs.Settlement{e}); err != nil || errs[0] != nil {
			t.Errorf("%v again by a store that was opened since: %v, %v", v, errs, err)
		}
		e.Claimed.Lease.Token = "w/" + strings.Repeat("0", 32)
		if v == jobs.Completed {
			if err := f.MustSettle(e)[0]; !errors.Is(err, jobs.ErrLeaseLost) {
				t.Errorf("%v by another's lease: %v", v, err)
			}
		}
	}
	if n := f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs"); n != 2 {
		t.Errorf("%d runs, want 2", n)
	}
}

func conformBeatTellsAndIsTold(t *testing.T, f *fixture) {
	ctx := context.Background()
	w := jobs.WorkerInfo{ID: "h:1:a", Host: "h", PID: 1, Queues: []string{"default"}, Slots: 2, Status: "running",
		StartedAt: f.Clock.Now(),
		Running: []jobs.RunningJob{
			{ID: 5, UUID: "u5", Type: "test.plain", Lines: []jobs.LogLine{{At: time.Now(), Text: "hello"}}}}}
	o, err := f.Heartbeat(ctx, w)
	if err != nil || o.Stop || len(o.Paused) != 0 || len(o.Cancelled) != 0 || !o.RestartedAt.IsZero() {
		t.Fatalf("orders %+v, %v", o, err)
	}
	for _, err := range []error{f.Pause(ctx, "mail", "anna"), f.Restart(ctx), f.CancelRunning(ctx, "u5", "anna"),
		f.CancelRunning(ctx, "other", "anna")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if known, err := f.Stop(ctx, w.ID); err != nil || !known {
		t.Fatal(known, err)
	}
	if o.Slots != 0 {
		t.Errorf("%d slots without an order", o.Slots)
	}
	w.Running[0].Lines = nil
	for _, order := range []struct {
		id          string
		slots, want int
	}{{"", 5, 5}, {w.ID, 3, 3}, {w.ID, 0, 5}, {w.ID, 2, 2}, {"", 4, 4}, {"", 0, 0}} {
		if known, err := f.Scale(ctx, order.id, order.slots); err != nil || !known {
			t.Fatal(known, err)
		}
		if o, err := f.Heartbeat(ctx, w); err != nil || o.Slots != order.want {
			t.Errorf("%+v: the worker reads %d, %v", order, o.Slots, err)
		}
	}
	if known, err := f.Scale(ctx, "nobody", 2); known || err != nil {
		t.Error(known, err)
	}
	o, err = f.Heartbeat(ctx, w)
	if err != nil || !o.Stop || fmt.Sprint(o.Paused) != "[mail]" || fmt.Sprint(o.Cancelled) != "[u5]" ||
		o.RestartedAt.IsZero() {
		t.Errorf("orders %+v, %v", o, err)
	}
	if was, err := f.Continue(ctx, "mail"); !was || err != nil {
		t.Error(was, err)
	}
	if list, err := f.PausedQueues(ctx); len(list) != 0 || err != nil {
		t.Error(list, err)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM cmsjobs_job_logs"); n != 1 {
		t.Errorf("%d log lines, want 1", n)
	}
	f.Clock.Ahead += time.Hour
	if n, err := f.DeleteStaleWorkers(ctx, time.Minute); n != 1 || err != nil {
		t.Error(n, err)
	}
	if err := f.Deregister(ctx, w.ID); err != nil {
		t.Error(err)
	}
}

func conformCleaning(t *testing.T, f *fixture) {
	ctx := context.Background()
	f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`), tablestest.Job(`3`))
	c := f.MustClaim(3)
	f.MustSettle(tablestest.End(c[0], jobs.Completed), tablestest.End(c[1], jobs.Failed))
	if n, err := f.ResetStuck(ctx, time.Minute); n != 0 || err != nil {
		t.Errorf("a live lease was reset: %d, %v", n, err)
	}
	f.Clock.Ahead += 40 * 24 * time.Hour
	if n, err := f.ResetStuck(ctx, time.Minute); n != 1 || err != nil {
		t.Errorf("stuck jobs reset: %d, %v", n, err)
	}
	if err := f.MustSettle(tablestest.End(c[2], jobs.Completed))[0]; !errors.Is(err, jobs.ErrLeaseLost) {
		t.Errorf("settled after a reset: %v", err)
	}
	if n, err := f.RotateRuns(ctx, 7, 60); n != 1 || err != nil {
		t.Errorf("rotated %d, %v", n, err)
	}
	exported := 0
	if n, err := f.PruneFailed(ctx, f.Clock.Now().Add(-time.Hour), func(rows []history.FailedRow) error {
		exported += len(rows)
		return nil
	}); n != 1 || exported != 1 || err != nil {
		t.Errorf("pruned %d, exported %d, %v", n, exported, err)
	}
}
