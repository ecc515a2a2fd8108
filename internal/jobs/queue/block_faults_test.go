package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// Whatever happens to the cursor, to its holder or to the rows behind it: each job
// is claimed, and soon.
func TestFaultsOfTheCursor(t *testing.T) {
	faults := []struct {
		name string
		test func(*testing.T, *fixture)
	}{
		{"the numbers begin again", numbersBeginAgain},
		{"the clock of the database is set back", clockIsSetBack},
		{"the rescanner dies with a clock ahead", rescannerDiesAhead},
		{"the rescanner has no slot", rescannerHasNoSlot},
		{"many come back at once", manyComeBack},
		{"a process stops while it takes a block", processStopsInABlock},
		{"the move of the cursor has no answer", moveWithoutAnswer},
		{"PHP takes a row of a block", phpTakesARow},
		{"PHP takes a row while it is claimed", phpTakesARowMeanwhile},
		{"a transaction of ten minutes", commitAfterTenMinutes},
	}
	for _, engine := range jobstest.Engines() {
		for _, v := range []tablestest.Variant{{Engine: engine, Layout: tables.Stock},
			{Engine: engine, Layout: tables.Stock, Indexed: true}, {Engine: engine, Layout: tables.Extended}} {
			t.Run(v.String(), func(t *testing.T) {
				db := v.Database(t)
				for _, fault := range faults {
					t.Run(fault.name, func(t *testing.T) { fault.test(t, openFixture(t, v, db)) })
				}
			})
		}
	}
}

// claimsOf is one call of Claim by another process.
func (f *fixture) claimsOf(s *Store, limit int) []jobs.Claimed {
	f.T.Helper()
	ask := askOne
	ask.Limit, ask.Soon = limit, 0
	got, err := s.Claim(bg, ask)
	if err != nil {
		f.T.Fatal(err)
	}
	return got
}

// release makes all jobs wait again, as a program does that releases them.
func (f *fixture) release() {
	if f.Variant.Layout == tables.Extended {
		f.DB.MustExec("UPDATE jobs SET status = 'queued', locked_by = NULL, locked_at = NULL")
		return
	}
	f.DB.MustExec("UPDATE jobs SET reserved_at = NULL, attempts = 1")
}

// caughtUp wants that a job which comes next is claimed by a process that does not
// rescan, at once.
func (f *fixture) caughtUp(other *Store) {
	f.T.Helper()
	f.Clock.Lengths += time.Second
	if got := f.claimsOf(f.Store, 5); len(got) != 1 {
		f.T.Fatalf("the rescanner claims %d jobs, want the first", len(got))
	}
	f.MustEnqueue(tablestest.Job(`"next"`))
	for _, l := range other.cursors {
		l.next = f.tables.Options.Clock().Add(time.Hour) // no rescan
	}
	other.NoteArrival("default")
	if got := f.claimsOf(other, 5); len(got) != 1 {
		f.T.Errorf("another process claims %d jobs, want the next: the cursor is still too far", len(got))
	}
}

// A table that was emptied, or restored, gives numbers below the cursor.
func numbersBeginAgain(t *testing.T, f *fixture) {
	if f.tables.OrderedByTime() {
		t.Skip("the order is by due time")
	}
	other := f.another()
	f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`))
	f.claimsOf(f.Store, 2)
	f.claimsOf(other, 1)
	f.DB.MustExec("UPDATE cmsjobs_cursors SET id = 1000000")
	f.claimsOf(f.Store, 1)
	f.MustEnqueue(tablestest.Job(`"first"`))
	f.caughtUp(other)
}

// With the order by due time, the cursor stands in what has become the future.
func clockIsSetBack(t *testing.T, f *fixture) {
	if !f.tables.OrderedByTime() {
		t.Skip("the order is by number")
	}
	other := f.another()
	f.Clock.Ahead = time.Hour
	f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`))
	f.claimsOf(f.Store, 1)
	f.claimsOf(other, 1)
	f.DB.MustExec("DELETE FROM jobs")
	f.Clock.Ahead = 0
	f.Clock.Lengths += time.Minute
	f.claimsOf(f.Store, 1)
	f.MustEnqueue(tablestest.Job(`"first"`))
	f.caughtUp(other)
}

// The turn of a process that died is an hour ahead, as the database's clock was.
func rescannerDiesAhead(t *testing.T, f *fixture) {
	f.MustEnqueue(numbered(2)...)
	f.claimsOf(f.Store, 2)
	f.DB.MustExec(fmt.Sprintf("UPDATE cmsjobs_cursors SET rescanner = 'dead', rescan_until = %d",
		time.Now().Add(time.Hour).UnixMilli()))
	f.release()
	other, found := f.another(), 0
	for range 6 {
		found += len(f.claimsOf(other, 2))
		f.Clock.Lengths += time.Second
	}
	if found != 2 {
		t.Errorf("%d of 2 jobs are found", found)
	}
}

// The rescanner finds more than it has slots for: another process need not wait for
// the end of its turn, nor of its jobs.
func rescannerHasNoSlot(t *testing.T, f *fixture) {
	f.MustEnqueue(numbered(4)...)
	f.claimsOf(f.Store, 4)
	other := f.another()
	f.claimsOf(other, 1)
	f.Clock.Lengths += time.Second
	f.claimsOf(f.Store, 1) // it is its turn
	f.release()
	found := 0
	for range 4 { // the rescanner goes on claiming one at a time
		f.Clock.Lengths += rescanTurn / 4
		f.claimsOf(f.Store, 1)
		found += len(f.claimsOf(other, 1))
	}
	if found == 0 {
		t.Error("another process, which is idle, gets none of the jobs that came back")
	}
}

// A thousand jobs are released: the processes that do not rescan share them.
func manyComeBack(t *testing.T, f *fixture) {
	f.MustEnqueue(numbered(100)...)
	other := f.another()
	f.claimsOf(f.Store, 99)
	f.claimsOf(other, 5)
	f.Clock.Lengths += time.Second
	f.claimsOf(f.Store, 1) // it is its turn
	f.release()
	f.Clock.Lengths += time.Second
	mine := f.claimsOf(f.Store, 5)
	for _, l := range other.cursors {
		l.next = f.tables.Options.Clock().Add(time.Hour) // no rescan
	}
	if theirs := f.claimsOf(other, 5); len(mine) != 5 || len(theirs) != 5 {
		t.Errorf("the rescanner claims %d, another %d, want 5 each", len(mine), len(theirs))
	}
}

// A process that stands still after it has read its block holds nobody up, and what
// it then claims is nobody else's.
func processStopsInABlock(t *testing.T, f *fixture) {
	f.MustEnqueue(numbered(6)...)
	other := f.another()
	var theirs []jobs.Claimed
	f.tables.Watch = func(statement string, _ []any) {
		if !strings.Contains(statement, "payload") || theirs != nil {
			return
		}
		theirs = f.claimsOf(other, 3)
	}
	mine := f.claimQueues(3, "default")
	f.tables.Watch = nil
	if len(theirs) != 3 || len(mine) != 3 {
		t.Fatalf("the one that stopped claims %d, the other %d, want 3 each", len(mine), len(theirs))
	}
	for _, c := range mine {
		for _, d := range theirs {
			if c.Job.ID == d.Job.ID {
				t.Errorf("both have %d", c.Job.ID)
			}
		}
	}
}

// The cursor has moved, or not, and nobody knows: the block is found.
func moveWithoutAnswer(t *testing.T, f *fixture) {
	l := f.losingStore()
	f.MustEnqueue(numbered(3)...)
	f.claimsOf(f.Store, 1) // the row of the cursor is there
	for _, what := range []fate{unheard, undone} {
		f.MustEnqueue(numbered(2)...)
		for _, c := range f.cursors {
			c.fromHead, c.next = prefetched{}, f.tables.Options.Clock().Add(time.Hour)
		}
		l.cursor = true
		l.next.Store(int32(what))
		if got, err := f.Claim(bg, askOne); err == nil {
			t.Fatalf("%v: claimed %+v: this tests nothing", what, got)
		}
		l.cursor = false
	}
	for _, c := range f.cursors {
		c.next = time.Time{}
	}
	if got := f.MustClaim(6); len(got) != 6 {
		t.Errorf("%d of 6 jobs are claimed", len(got))
	}
}

// A claim beside an end fails, as another program has one of its rows: the rest is
// claimed by the next claim, without a rescan.
func phpTakesARow(t *testing.T, f *fixture) {
	if f.Variant.Layout == tables.Extended {
		t.Skip("PHP knows the stock layout")
	}
	f.MustEnqueue(numbered(4)...)
	ask := askOne
	ask.Soon = 3
	held, err := f.Claim(bg, ask)
	if err != nil || len(held) != 1 {
		t.Fatal(held, err)
	}
	f.DB.MustExec(fmt.Sprintf("UPDATE jobs SET attempts = attempts + 1, reserved_at = %d WHERE id = %d",
		time.Now().Unix(), held[0].Lease.ID+1))
	for _, l := range f.cursors {
		l.next = f.tables.Options.Clock().Add(time.Hour) // no rescan
	}
	ask.Limit, ask.Soon = 3, 0
	results, next, err := f.SettleAndClaim(bg, []jobs.Settlement{tablestest.End(held[0], jobs.Completed)}, ask)
	if err != nil || results[0] != nil {
		t.Fatal(results, err)
	}
	next = append(next, f.claimsOf(f.Store, 3)...)
	if len(next) != 2 {
		t.Errorf("%d jobs are claimed, want the two that PHP has not", len(next))
	}
}

// PHP commits its claim of a row while a block with this row waits for its lock: the
// others of the block are claimed, once each, and the next job stands behind them.
func phpTakesARowMeanwhile(t *testing.T, f *fixture) {
	if f.Variant.Engine == jobstest.SQLite || f.Variant.Layout == tables.Extended {
		t.Skip("it has one writer, or PHP does not know the layout")
	}
	f.MustEnqueue(numbered(1)...)
	f.claimsOf(f.Store, 2)
	f.noRescan(f.Store)
	receipts := f.MustEnqueue(numbered(3)...)
	php := f.DB.MustBegin()
	defer php.Rollback() //nolint:errcheck // it is committed in the end
	php.MustExec(fmt.Sprintf("UPDATE jobs SET attempts = 1, reserved_at = %d WHERE id = %d", time.Now().Unix(),
		receipts[1].ID))
	before, claimed := f.tables.Statements(), make(chan []jobs.Claimed, 1)
	go func() {
		ask := askOne
		ask.Limit = 3
		got, err := f.Claim(bg, ask)
		if err != nil {
			t.Error(err)
		}
		claimed <- got
	}()
	for end := time.Now().Add(10 * time.Second); f.tables.Statements() < before+3; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the claim does not come to its write")
		}
	}
	if err := php.Commit(); err != nil {
		t.Fatal(err)
	}
	got, once := <-claimed, seen{}
	once.note(t, got)
	f.noRescan(f.Store)
	f.MustEnqueue(numbered(1)...)
	once.note(t, f.claimsOf(f.Store, 3))
	if len(got) != 2 || len(once) != 3 || once[receipts[1].ID] != 0 {
		t.Errorf("%d of 2 jobs are claimed beside PHP's, then %v", len(got), once)
	}
}

// A transaction commits a job whose number the cursor passed long ago.
func commitAfterTenMinutes(t *testing.T, f *fixture) {
	if f.Variant.Engine == jobstest.SQLite {
		t.Skip("it has one writer")
	}
	late := f.DB.MustBegin()
	defer late.Rollback() //nolint:errcheck // it is committed in the end
	if _, err := f.EnqueueTx(bg, late, tablestest.Job(`"late"`)); err != nil {
		t.Fatal(err)
	}
	f.MustEnqueue(numbered(2)...)
	f.claimsOf(f.Store, 2)
	for range 20 {
		f.Clock.Lengths += time.Minute / 2
		f.claimsOf(f.Store, 2)
	}
	if err := late.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Clock.Lengths += time.Second
	if got := f.claimsOf(f.Store, 2); len(got) != 1 {
		t.Errorf("%d jobs are claimed a second after the commit, want one", len(got))
	}
}
