package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// Where another process is faster with a block, the next ones are taken by one statement,
// which is never in vain: the blocks follow one another, and no row is in two. That goes
// on for as long as others move the cursor, too.
func TestACrowdedCursorIsMovedByOneStatement(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		if f.Variant.Engine == jobstest.SQLite {
			t.Skip("it has one writer, who reads and moves alone")
		}
		receipts := f.MustEnqueue(numbered(40)...)
		other, theirs := f.another(), []jobs.Claimed(nil)
		f.tables.Watch = func(statement string, _ []any) {
			if theirs == nil && strings.Contains(statement, "payload") {
				f.noRescan(other)
				other.cursorOf("default", 0).fromHead = prefetched{} // its block is used up
				theirs = f.claimIn(other, 1, 3, "default")
			}
		}
		f.claimIn(f.Store, 1, 3, "default") // in vain, as the other has its rows
		for round := range 4 {
			theirs = nil
			f.Clock.Lengths += crowdedFor * 2 / 5
			f.noRescan(f.Store)
			f.cursorOf("default", 0).fromHead = prefetched{}
			asked := f.tables.Statements()
			mine := f.claimIn(f.Store, 1, 3, "default")
			if n := f.tables.Statements() - asked; n > 3 {
				t.Errorf("round %d asks %d statements, want one for the block, its rows and the claim each", round, n)
			}
			first := receipts[4+8*round:]
			if len(mine) != 1 || len(theirs) != 1 || mine[0].Job.ID != first[0].ID || theirs[0].Job.ID != first[4].ID {
				t.Errorf("round %d: claimed %+v and %+v, want rows %d and %d", round, mine, theirs, first[0].ID, first[4].ID)
			}
		}
	})
}

// Where another process is faster with every block, this one reads no more rows for it:
// only past rows of other programs pages grow.
func TestAPageInVainStaysSmall(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		if f.Variant.Engine == jobstest.SQLite {
			t.Skip("it has one writer, who reads and moves alone")
		}
		f.MustEnqueue(numbered(40)...)
		f.DB.MustExec("DELETE FROM jobs WHERE MOD(id, 2) = 0") // so that each block looks for missing numbers
		f.claimIn(f.Store, 1, 0, "default")                    // the first block does not
		f.noRescan(f.Store)
		f.cursorOf("default", 0).crowded = f.tables.Options.Clock()
		reads := 0
		f.tables.Watch = func(statement string, _ []any) {
			switch {
			case strings.Contains(statement, "payload"):
				if reads++; !strings.HasSuffix(statement, " LIMIT 4") {
					t.Errorf("block %d is read with %s", reads, statement[strings.LastIndex(statement, "LIMIT"):])
				}
			case strings.HasPrefix(statement, "SELECT id FROM "): // the block is read, and not yet claimed
				f.DB.MustExec("UPDATE jobs SET attempts = 3 WHERE id <=" + statement[strings.LastIndex(statement, "<=")+2:])
			}
		}
		if got := f.claimIn(f.Store, 1, 3, "default"); len(got) != 0 || reads < 5 {
			t.Errorf("claimed %+v in %d blocks, want none in five", got, reads)
		}
	})
}

// A process whose turn it is not to rescan asks without a lock: it does not wait for those
// who move the cursor, which is the same row.
func TestOneThatRescansNotWaitsForNobody(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		if f.Variant.Engine == jobstest.SQLite {
			t.Skip("it locks no rows")
		}
		f.MustEnqueue(numbered(1)...)
		f.claimsOf(f.Store, 1)
		l, now := f.cursorOf("default", 0), f.tables.Options.Clock()
		if ours, err := f.newClaim(askOne).isRescanner(bg, l, now); err != nil || !ours {
			t.Fatal(ours, err)
		}
		other := f.another()
		other.cursorOf("default", 0)
		moves := f.DB.MustBegin()
		defer moves.Rollback() //nolint:errcheck // nothing was written
		moves.MustExec("UPDATE cmsjobs_cursors SET id = id + 0")
		soon, cancel := context.WithTimeout(bg, 2*time.Second) // shorter than a statement waits for a lock
		defer cancel()
		if ours, err := other.newClaim(askOne).isRescanner(soon, other.cursorOf("default", 0), now); err != nil || ours {
			t.Errorf("it is the turn of another: %v, %v", ours, err)
		}
	})
}

// Nothing stands behind a crowded cursor: the claim says so, the cursor stays, and what
// comes next is claimed.
func TestACrowdedCursorAtTheEnd(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		f.MustEnqueue(numbered(1)...)
		f.claimsOf(f.Store, 1)
		f.cursorOf("default", 0).crowded = f.tables.Options.Clock()
		if got := f.claimIn(f.Store, 3, 3, "default"); len(got) != 0 {
			t.Fatalf("claimed %+v of an empty queue", got)
		}
		receipts := f.MustEnqueue(numbered(3)...)
		f.cursorOf("default", 0).crowded = f.tables.Options.Clock()
		f.NoteArrival("default")
		if got := f.claimIn(f.Store, 3, 0, "default"); len(got) != 3 || got[0].Job.ID != receipts[0].ID {
			t.Errorf("claimed %+v, want the three that came", got)
		}
	})
}

// A block of a crowded cursor ends before a payload that is too large to be read with
// others; what stands behind it goes back.
func TestALargePayloadInACrowdedBlock(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		large := tablestest.Job(`"` + strings.Repeat("x", 2*wholePayload) + `"`)
		receipts := f.MustEnqueue(append(append(numbered(2), large), numbered(30)...)...)
		f.claimsOf(f.Store, 1)
		f.noRescan(f.Store)
		n := seen{}
		for i := range receipts[1:] {
			f.cursorOf("default", 0).crowded = f.tables.Options.Clock()
			got := f.claimIn(f.Store, 1, 30, "default")
			if len(got) != 1 || got[0].Job.ID != receipts[1+i].ID {
				t.Fatalf("claim %d is of %+v, want row %d", i, got, receipts[1+i].ID)
			}
			n.note(t, got)
		}
	})
}

// A crowded cursor passes rows that run already a block at a time, and then, where that
// brought nothing, all that follow at once.
func TestACrowdedCursorPassesWhatRuns(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		if f.Variant.Engine == jobstest.SQLite {
			t.Skip("it has one writer, who reads and moves alone")
		}
		receipts := f.MustEnqueue(numbered(60)...)
		f.claimsOf(f.Store, 1)
		f.noRescan(f.Store)
		f.DB.MustExec("UPDATE jobs SET reserved_at = available_at + 1000 WHERE id < " + fmt.Sprint(receipts[58].ID))
		f.cursorOf("default", 0).fromHead = prefetched{}
		f.cursorOf("default", 0).crowded = f.tables.Options.Clock()
		asked := f.tables.Statements()
		got := f.claimIn(f.Store, 1, 3, "default")
		if len(got) != 1 || got[0].Job.ID != receipts[58].ID {
			t.Errorf("claimed %+v, want row %d, the first that waits", got, receipts[58].ID)
		}
		if n := f.tables.Statements() - asked; n > 7 {
			t.Errorf("a claim past 57 rows that run asks %d statements, want two blocks' and the claim's", n)
		}
		if got := f.claimIn(f.Store, 1, 3, "default"); len(got) != 1 || got[0].Job.ID != receipts[59].ID {
			t.Errorf("claimed %+v then, want the last row %d", got, receipts[59].ID)
		}
	})
}

// A block that other queues have few rows between is read as it stands in the table; one
// with many others between by the queue's index.
func TestADenseBlockIsReadFromTheTable(t *testing.T) {
	for _, engine := range []jobstest.Engine{jobstest.MariaDB, jobstest.MySQL} {
		t.Run(string(engine), func(t *testing.T) {
			v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
			f := openFixture(t, v, v.Database(t))
			f.MustEnqueue(numbered(40)...)
			f.claimsOf(f.Store, 1) // the cursor is there
			var dense []bool
			f.tables.Watch = func(statement string, _ []any) {
				if strings.Contains(statement, "payload") {
					dense = append(dense, strings.Contains(statement, "FORCE INDEX (PRIMARY)"))
				}
			}
			claim := func() {
				f.noRescan(f.Store)
				f.cursorOf("default", 0).fromHead = prefetched{}
				f.cursorOf("default", 0).crowded = f.tables.Options.Clock()
				if got := f.claimIn(f.Store, 1, 3, "default"); len(got) != 1 {
					t.Errorf("claimed %+v, want one job", got)
				}
			}
			claim()
			f.DB.MustExec("UPDATE jobs SET queue = 'other' WHERE MOD(id, 4) <> 0")
			claim()
			if !slices.Equal(dense, []bool{true, false}) {
				t.Errorf("the blocks are read from the table: %v, want the first alone", dense)
			}
		})
	}
}

// Of the processes that want a block of PostgreSQL one waits for the cursor's row, the
// others stand in line: each that waited for the row would look for its newest version.
func TestProcessesStandInLineForTheCursor(t *testing.T) {
	v := tablestest.Variant{Engine: jobstest.PostgreSQL, Layout: tables.Stock}
	f := openFixture(t, v, v.Database(t))
	f.MustEnqueue(numbered(40)...)
	f.claimsOf(f.Store, 1) // the cursor is there
	moves := f.DB.MustBegin()
	defer moves.Rollback() //nolint:errcheck // it is committed below
	moves.MustExec("UPDATE cmsjobs_cursors SET id = id + 0")
	soon, cancel := context.WithTimeout(bg, 20*time.Second)
	defer cancel()
	const processes = 4
	type end struct {
		m   cursorMove
		err error
	}
	ends := make(chan end, processes)
	for range processes {
		other := f.another()
		go func() {
			m, err := other.moveToNext(soon, other.cursorOf("default", 0), 4)
			ends <- end{m, err}
		}()
	}
	waiting := func(where string) (n int) {
		if err := f.DB.GetContext(soon, &n, "SELECT COUNT(*) FROM pg_locks JOIN pg_stat_activity "+
			"USING (pid) WHERE datname = CURRENT_DATABASE() AND NOT granted AND "+where); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for waiting("TRUE") < processes { // it fails at the time limit
	}
	if n := waiting("locktype <> 'advisory'"); n != 1 {
		t.Errorf("%d of %d processes wait for the cursor's row, want one", n, processes)
	}
	if err := moves.Commit(); err != nil {
		t.Fatal(err)
	}
	var got []int64
	for range processes {
		e := <-ends
		if e.err != nil {
			t.Errorf("a block: %v", e.err)
		}
		got = append(got, e.m.to.ID)
	}
	if slices.Sort(got); got[3]-got[0] != 12 {
		t.Errorf("the blocks end at %d, want four of four rows each", got)
	}
}
