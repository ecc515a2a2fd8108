package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// stockTables opens a stock table of each server.
func stockTables(t *testing.T, test func(*testing.T, *fixture)) {
	for _, engine := range jobstest.Engines() {
		v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
		t.Run(string(engine), func(t *testing.T) { test(t, openFixture(t, v, v.Database(t))) })
	}
}

func numbered(n int) []jobs.Spec {
	list := make([]jobs.Spec, n)
	for i := range list {
		list[i] = tablestest.Job(fmt.Sprint(i))
	}
	return list
}

// Two processes read different rows, so none tries in vain to claim what the
// other has. What a process that died had read and not claimed is found again.
func TestABlockIsOneProcesss(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		receipts := f.MustEnqueue(numbered(8)...)
		ask := askOne
		ask.Soon = 3
		mine, err := f.Claim(bg, ask)
		if err != nil || len(mine) != 1 || mine[0].Job.ID != receipts[0].ID {
			t.Fatalf("claimed %+v, %v; want the first", mine, err)
		}
		other := f.another()
		theirs, err := other.Claim(bg, ask)
		if err != nil || len(theirs) != 1 || theirs[0].Job.ID != receipts[4].ID {
			t.Fatalf("another claimed %+v, %v; want the fifth, behind our block", theirs, err)
		}
		// This process dies with the second to the fourth in its block.
		f.Clock.Lengths += time.Second
		if got := f.ClaimBy(other, 6); len(got) != 6 {
			t.Errorf("%d jobs are found, want the six that nobody runs", len(got))
		}
	})
}

// A job that is heard of while the queue is idle costs one commit, and one statement
// beside that which finds it. SQLite counts BEGIN, two changes and COMMIT.
func TestAnIdleClaimIsOneCommit(t *testing.T) {
	for _, v := range variants() {
		if v.Wall {
			continue
		}
		t.Run(v.String(), func(t *testing.T) {
			f := openFixture(t, v, v.Database(t))
			l := f.losingStore()
			l.cursor = true
			f.MustEnqueue(numbered(1)...)
			f.claimsOf(f.Store, 1) // makes the cursor's row
			for _, list := range [][]jobs.Spec{numbered(1), numbered(5)} {
				f.claimsOf(f.Store, 1)
				f.Clock.Lengths += time.Second // a rescan is due, and waits
				f.classesOf("default").expired = f.tables.Options.Clock().Add(time.Hour)
				f.MustEnqueue(list...)
				f.NoteArrival("default")
				statements, writes := f.tables.Statements(), l.writes.Load()
				got := f.claimsOf(f.Store, len(list))
				statements, writes = f.tables.Statements()-statements, l.writes.Load()-writes
				most := int64(2)
				if v.Engine == jobstest.SQLite {
					most = 5
				}
				if v.Layout == tables.Extended { // which priorities wait?
					most++
				}
				if len(got) != len(list) || writes != 1 || statements > most {
					t.Errorf("%d of %d jobs are claimed with %d commits, want 1, and %d statements, want at most %d",
						len(got), len(list), writes, statements, most)
				}
			}
		})
	}
}

// A process that hears of a job reads behind where it last saw the cursor. What another
// process has moved it past since is not taken, and costs nothing more; where the cursor
// was set back, or is gone, what stands behind it is found all the same.
func TestAnIdleClaimAfterTheCursorMoved(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		idle := func() {
			t.Helper()
			f.Clock.Lengths += time.Second
			f.cursorOf("default", 0).next = f.tables.Options.Clock().Add(time.Hour) // no rescan
			if got := f.claimsOf(f.Store, 1); len(got) != 0 {
				t.Fatalf("%+v is claimed of an empty queue", got)
			}
		}
		f.MustEnqueue(numbered(1)...)
		f.claimsOf(f.Store, 1)
		idle()
		receipts := f.MustEnqueue(numbered(4)...)
		ask := askOne
		ask.Soon = 3
		if got, err := f.another().Claim(bg, ask); err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		f.NoteArrival("default")
		statements := f.tables.Statements()
		got := f.claimsOf(f.Store, 1)
		if asked := f.tables.Statements() - statements; len(got) != 0 || asked != 1 {
			t.Errorf("%+v is claimed of another's block, by %d statements", got, asked)
		}
		more := f.MustEnqueue(numbered(4)...)
		if got, err := f.another().Claim(bg, ask); err != nil || len(got) != 1 || got[0].Job.ID != more[0].ID {
			t.Fatal(got, err)
		}
		more = append(more, f.MustEnqueue(numbered(1)...)...)
		f.NoteArrival("default")
		if got := f.claimsOf(f.Store, 1); len(got) != 1 || got[0].Job.ID != more[4].ID {
			t.Errorf("%+v is claimed, want the job behind another's block", got)
		}
		idle()
		f.DB.MustExec(fmt.Sprintf("UPDATE cmsjobs_cursors SET id = %d", receipts[0].ID))
		f.NoteArrival("default")
		if got := f.claimsOf(f.Store, 6); len(got) != 6 || got[0].Job.ID != receipts[1].ID {
			t.Errorf("%+v is claimed behind a cursor that was set back", got)
		}
		idle()
		f.DB.MustExec("DELETE FROM cmsjobs_cursors")
		f.MustEnqueue(numbered(1)...)
		f.NoteArrival("default")
		if got := f.claimsOf(f.Store, 1); len(got) != 1 {
			t.Errorf("%+v is claimed without a cursor", got)
		}
	})
}

// The poll of an idle process is one statement, and writes nothing; what comes back
// is found by it all the same.
func TestAnIdlePollWritesNothing(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		l := f.losingStore()
		l.cursor = true
		f.MustEnqueue(numbered(1)...)
		f.claimsOf(f.Store, 1)
		for range 2 {
			f.Clock.Lengths += rescanTurn
			f.claimsOf(f.Store, 1)
		}
		statements, writes := f.tables.Statements(), l.writes.Load()
		for range 3 {
			f.Clock.Lengths += rescanTurn
			f.cursorOf("default", 0).cost = 0 // however slow the machine is
			f.claimsOf(f.Store, 1)
		}
		if asked, wrote := f.tables.Statements()-statements, l.writes.Load()-writes; asked != 3 || wrote != 0 {
			t.Errorf("three polls ask %d statements and write %d times, want 3 and none", asked, wrote)
		}
		f.release()
		f.Clock.Lengths += rescanTurn
		if got := f.claimsOf(f.Store, 1); len(got) != 1 {
			t.Errorf("%d jobs that came back are claimed by the next poll, want 1", len(got))
		}
	})
}

// What another process has in its block is not taken by a rescan.
func TestARescanLeavesBlocksAlone(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		receipts := f.MustEnqueue(numbered(8)...)
		ask := askOne
		ask.Soon = 3
		if mine, err := f.Claim(bg, ask); err != nil || len(mine) != 1 {
			t.Fatal(mine, err)
		}
		other := f.another()
		for i := range 2 {
			got := f.claimsOf(other, 1)
			if len(got) != 1 || got[0].Job.ID != receipts[4+i].ID {
				t.Errorf("claim %d is of %+v, want what stands behind the other's block", i, got)
			}
			f.Clock.Lengths += 2 * rescanInterval
		}
	})
}

// A block that is not used up in time is returned to its place.
func TestAnUnusedBlockGoesBack(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		receipts := f.MustEnqueue(numbered(4)...)
		f.claimAhead()
		f.Clock.Lengths += time.Second
		f.cursorOf("default", 0).next = f.tables.Options.Clock().Add(time.Hour) // no rescan
		if got := f.claimQueues(3, "default"); len(got) != 3 || got[0].Job.ID != receipts[1].ID {
			t.Errorf("claimed %+v, want the second to the fourth", got)
		}
	})
}

// Where another process has read on meanwhile, the block is claimed by its numbers: no
// rescan is waited for, which may be far where many rows of others stand before the cursor.
func TestAnUnusedBlockIsClaimedByItsNumbers(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		receipts := f.MustEnqueue(numbered(8)...)
		f.claimIn(f.Store, 1, 3, "default")
		if got := f.claimIn(f.another(), 4, 0, "default"); len(got) != 4 {
			t.Fatal(got)
		}
		f.Clock.Lengths += time.Second
		f.noRescan(f.Store)
		if got := f.claimQueues(3, "default"); len(got) != 3 || got[0].Job.ID != receipts[1].ID {
			t.Errorf("claimed %+v, want the second to the fourth", got)
		}
	})
}

// A block that ran out while a job was running is returned by the claim after its end:
// the end alone lets it not be forgotten.
func TestABlockThatRanOutGoesBackAfterAnEnd(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		receipts := f.MustEnqueue(numbered(4)...)
		held := f.claimIn(f.Store, 1, 3, "default")
		f.Clock.Lengths += time.Second
		f.noRescan(f.Store)
		if _, next, err := f.SettleAndClaim(bg, []jobs.Settlement{tablestest.End(held[0], jobs.Completed)},
			askOne); err != nil || len(next) != 0 {
			t.Fatalf("claimed %+v, %v of a block that ran out", next, err)
		}
		f.noRescan(f.Store)
		if got := f.claimQueues(3, "default"); len(got) != 3 || got[0].Job.ID != receipts[1].ID {
			t.Errorf("claimed %+v, want the second to the fourth", got)
		}
	})
}

// A transaction that began first commits last: its row has a lower number than
// those that the cursor has passed. It is claimed as soon as its number is looked
// for again, without a rescan.
func TestALateCommitIsFoundByItsNumber(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		f.MustEnqueue(tablestest.Job(`"before"`))
		f.claimQueues(1, "default")
		if f.Variant.Engine == jobstest.SQLite { // it has one writer: numbers are committed in order
			return
		}
		late := f.DB.MustBegin()
		defer late.Rollback() //nolint:errcheck // it is committed in the end
		if _, err := f.EnqueueTx(bg, late, tablestest.Job(`"late"`)); err != nil {
			t.Fatal(err)
		}
		f.MustEnqueue(tablestest.Job(`"after"`))
		if got := f.claimQueues(5, "default"); len(got) != 1 || string(got[0].Job.Data) != `"after"` {
			t.Fatalf("claimed %+v, want what is committed", got)
		}
		if err := late.Commit(); err != nil {
			t.Fatal(err)
		}
		f.Clock.Lengths += missingTries[0]
		f.cursorOf("default", 0).next = f.tables.Options.Clock().Add(time.Hour) // no rescan
		if got := f.claimQueues(5, "default"); len(got) != 1 || string(got[0].Job.Data) != `"late"` {
			t.Errorf("claimed %+v, want the late one %v after the block", got, missingTries[0])
		}
	})
}

// Two blocks follow one another at once, and then the queue is idle: what comes
// back before the cursor is found, however often the worker asks.
func TestWhatComesBackToAnIdleQueueIsFound(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		f.MustEnqueue(numbered(3)...)
		if got := append(f.claimQueues(1, "default"), f.claimQueues(2, "default")...); len(got) != 3 {
			t.Fatalf("claimed %+v, want three", got)
		}
		f.DB.MustExec("UPDATE jobs SET reserved_at = NULL, attempts = 0")
		var back []jobs.Claimed
		for range 10 {
			f.Clock.Lengths += 2 * sightingStep
			back = append(back, f.claimQueues(3, "default")...)
		}
		if len(back) != 3 {
			t.Errorf("%d of 3 jobs that came back are claimed", len(back))
		}
	})
}

// The cursor is lost, or stands behind every row, as after TRUNCATE: all jobs are
// claimed all the same, once each.
func TestALostCursorLosesNothing(t *testing.T) {
	for name, harm := range map[string]string{"lost": "DELETE FROM cmsjobs_cursors",
		"far behind": "UPDATE cmsjobs_cursors SET id = 1000000"} {
		t.Run(name, func(t *testing.T) {
			stockTables(t, func(t *testing.T, f *fixture) {
				f.MustEnqueue(numbered(50)...)
				seen := map[int64]bool{}
				for range 2 {
					for _, c := range f.MustClaim(5) {
						seen[c.Job.ID] = true
					}
					f.DB.MustExec(harm)
				}
				for _, c := range f.MustClaim(40) {
					seen[c.Job.ID] = true
				}
				if len(seen) != 50 {
					t.Errorf("%d of 50 jobs are claimed", len(seen))
				}
			})
		})
	}
}

// One process of all looks for rows that came back, and another takes over when it
// claims no more.
func TestOneProcessRescans(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		f.MustEnqueue(numbered(2)...)
		f.claimQueues(1, "default")
		other := f.another()
		if got, err := other.Claim(bg, askOne); err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		f.Clock.Lengths += time.Second
		f.claimQueues(1, "default")                         // it is this store's turn now
		f.DB.MustExec("UPDATE jobs SET reserved_at = NULL") // as if both had been released
		f.Clock.Lengths += time.Second
		if got, err := other.Claim(bg, askOne); err != nil || len(got) != 0 {
			t.Fatalf("another claimed %+v, %v, though it is not its turn to rescan", got, err)
		}
		f.Clock.Ahead += rescanTurn + time.Second
		f.Clock.Lengths += rescanTurn + time.Second
		if got, err := other.Claim(bg, askOne); err != nil || len(got) != 1 {
			t.Errorf("another claimed %+v, %v, when the turn of the first had ended", got, err)
		}
	})
}

// A process that runs other types reads for itself: what the first one passed over, as
// it has no handler for it, the second one claims at once.
func TestProcessesOfOtherTypesHaveACursorOfTheirOwn(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		f.InsertRaw("default", `{"type":"shop.resize","data":{}}`)
		f.MustEnqueue(numbered(3)...)
		if got := f.MustClaim(4); len(got) != 3 {
			t.Fatalf("claimed %d jobs, want the three of our types", len(got))
		}
		f.InsertRaw("default", `{"type":"shop.resize","data":{}}`)
		if got := f.MustClaim(4); len(got) != 0 {
			t.Fatalf("claimed %+v, which is of another program", got)
		}
		o := f.Options()
		o.Registry = jobs.NewRegistry()
		jobs.Handle(o.Registry, jobs.Kind[json.RawMessage]{Name: "shop.resize"},
			func(context.Context, jobs.Job, json.RawMessage) error { return nil })
		ask := askOne
		ask.Limit = 4
		if got, err := open1(t, f.DB, o).Claim(bg, ask); err != nil || len(got) != 2 {
			t.Errorf("the other program claimed %d of its 2 jobs, %v", len(got), err)
		}
	})
}
