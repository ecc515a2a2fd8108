package queue

import (
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// askThree asks for three jobs, and for blocks of six.
var askThree = jobs.ClaimRequest{Worker: "host:1:x", Queues: []string{"default"}, Limit: 3, Soon: 3, Lease: lease}

// looked waits until the store looks for nothing beside an end any more.
func (f *fixture) looked() {
	f.claiming <- struct{}{}
	<-f.claiming
}

// endAll ends runs and takes the next three jobs along.
func (f *fixture) endAll(held []jobs.Claimed) (next []jobs.Claimed) {
	f.T.Helper()
	if f.Variant.Layout == tables.Extended { // its classes of priority were read a moment ago
		c := f.classesOf("default")
		c.next, c.expired = f.tables.Options.Clock().Add(time.Hour), f.tables.Options.Clock().Add(time.Hour)
	}
	ends := make([]jobs.Settlement, len(held))
	for i, c := range held {
		ends[i] = tablestest.End(c, jobs.Completed)
	}
	next, lost := f.relayAll(askThree, ends...)
	if lost != nil {
		f.T.Fatal(lost)
	}
	return next
}

// The next block is taken while ends are written: each end brings the next jobs, in
// their order, as long as there are any.
func TestEachEndBringsTheNextJobs(t *testing.T) {
	for _, v := range variants() {
		if v.Wall {
			continue
		}
		t.Run(v.String(), func(t *testing.T) {
			f := openFixture(t, v, v.Database(t))
			receipts := f.MustEnqueue(numbered(30)...)
			held, err := f.Claim(bg, askThree)
			for i := 0; i < len(receipts) && err == nil; i += 3 {
				if len(held) != 3 || held[0].Job.ID != receipts[i].ID || held[2].Job.ID != receipts[i+2].ID {
					t.Fatalf("claimed %+v, want three from the job %d on", held, i)
				}
				f.noRescan(f.Store)
				held = f.endAll(held)
				f.looked()
			}
			if err != nil || len(held) != 0 {
				t.Errorf("claimed %+v, %v behind the last", held, err)
			}
			if left := f.CountRows("SELECT COUNT(*) FROM jobs"); left != 0 {
				t.Errorf("%d jobs are left", left)
			}
		})
	}
}

// A rescan is made while ends are written, and holds up none that finds nothing. What
// it finds is claimed at once.
func TestARescanBesideAnEnd(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		receipts := f.MustEnqueue(numbered(120)...)
		f.claimIn(f.another(), 3, 0, "default")
		held, err := f.Claim(bg, askThree)
		if err != nil || len(held) != 3 {
			t.Fatal(held, err)
		}
		for f.cursorOf("default", 0).rescanned.IsZero() {
			f.Clock.Lengths += undisturbedAge / 8
			if held = f.endAll(held); len(held) != 3 {
				t.Fatalf("an end brings %+v before a rescan was made, want three", held)
			}
			f.looked()
		}
		f.DB.MustExec(f.DB.Rebind("UPDATE jobs SET reserved_at = NULL, attempts = 0 WHERE id = ?"), receipts[0].ID)
		for try := 0; len(held) == 3; try++ {
			if try == 5 {
				t.Fatal("no end stands back for what came back")
			}
			f.Clock.Lengths += undisturbedAge / 8
			held = f.endAll(held)
			f.looked()
		}
		if held, err = f.Claim(bg, askThree); err != nil || len(held) != 3 || held[0].Job.ID != receipts[0].ID {
			t.Errorf("claimed %+v, %v, want what came back first", held, err)
		}
	})
}

// Where the look for the next block fails or waits, the end is written and its jobs come
// all the same, and a claim finds the rest.
func TestALookAheadHoldsUpNoEnd(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		f.MustEnqueue(numbered(15)...)
		held, err := f.Claim(bg, askThree)
		if err != nil {
			t.Fatal(err)
		}
		f.DB.MustExec("ALTER TABLE cmsjobs_cursors RENAME TO gone")
		f.noRescan(f.Store)
		held = f.endAll(held)
		f.looked()
		f.DB.MustExec("ALTER TABLE gone RENAME TO cmsjobs_cursors")
		if len(held) != 3 {
			t.Fatalf("an end brings %+v while the cursors cannot be read, want three", held)
		}
		if held = f.endAll(held); len(held) != 0 {
			t.Fatalf("an end brings %+v of a block that is used up", held)
		}
		if f.Variant.Engine == jobstest.SQLite { // it has one writer: an end waits for others itself
			return
		}
		if held, err = f.Claim(bg, askThree); err != nil || len(held) != 3 {
			t.Fatalf("claimed %+v, %v, want three", held, err)
		}
		other := f.DB.MustBegin()
		other.MustExec("UPDATE cmsjobs_cursors SET id = id + 0")
		f.noRescan(f.Store)
		held = f.endAll(held)
		if err := other.Rollback(); err != nil {
			t.Fatal(err)
		}
		if f.looked(); len(held) != 3 {
			t.Fatalf("an end brings %+v while the cursor is locked, want three", held)
		}
		f.noRescan(f.Store)
		if held = f.endAll(held); len(held) != 3 {
			t.Errorf("an end brings %+v after that, want three", held)
		}
	})
}

// The cursor is set back while a process holds a part of its block, as where many jobs
// came back: what it holds is left out of the next block, and runs once.
func TestABlockAheadThatOverlapsIsClaimedOnce(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		f.MustEnqueue(numbered(30)...)
		n := seen{}
		held := f.claimIn(f.Store, 3, 5, "default") // five more are in the block
		f.DB.MustExec("UPDATE cmsjobs_cursors SET id = 0")
		for len(held) > 0 {
			n.note(t, held)
			f.noRescan(f.Store)
			held = f.endAll(held)
			f.looked()
		}
		if len(n) != 30 {
			t.Errorf("the ends bring %d of 30 jobs", len(n))
		}
	})
}

// Whatever a claim chose twice, its worker gets once.
func TestARowThatIsChosenTwiceIsOneJob(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		f.MustEnqueue(numbered(2)...)
		c, l := f.newClaim(askThree), f.cursorOf("default", 0)
		x, _, _, err := c.readBlock(bg, l, false)
		if err != nil || len(x.rows) != 2 || !f.tables.Claimable("default", x.rows[0]) ||
			!f.tables.Claimable("default", x.rows[1]) {
			t.Fatal(x.rows, err)
		}
		got, err := f.claimRows(bg, c, []*tables.Candidate{x.rows[0], x.rows[1], x.rows[0]}, x.now)
		if err != nil || len(got) != 2 || got[0].Job.ID == got[1].Job.ID {
			t.Errorf("claimed %+v, %v, want each of two once", got, err)
		}
	})
}
