package queue

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

var askMany = jobs.ClaimRequest{Worker: "host:2:y", Queues: []string{"default"}, Limit: 10, Lease: lease}

// rescued is what a look by s takes of leases that have run out.
func (f *fixture) rescued(s *Store) (n int, err error) {
	f.T.Helper()
	f.Clock.Lengths += time.Second               // a sweep is due
	s.classesOf("default").expired = time.Time{} // and a look for lost leases
	got, err := s.Claim(context.Background(), askMany)
	for _, c := range got {
		if !c.Rescued {
			f.T.Errorf("job %d was not another worker's", c.Job.ID)
		}
	}
	return len(got), err
}

// A store whose own writes fail for want of space rescues nothing, nor for some
// seconds after: the worker that holds the job cannot write its end either, and
// comes first when it can.
func TestNothingIsRescuedWhileWritesFail(t *testing.T) {
	for _, layout := range []tables.Layout{tables.Stock, tables.Extended} {
		t.Run(string(layout), func(t *testing.T) {
			v := tablestest.Variant{Engine: jobstest.SQLite, Layout: layout}
			f := openFixture(t, v, v.Database(t))
			f.MustEnqueue(tablestest.Job(`1`))
			f.MustClaim(1)
			full, err := database.Connect(t.Context(), database.ConnectOptions{DSN: f.DB.DSN, MaxConnections: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer full.Close()
			full.SetMaxOpenConns(1) // the limit is a connection's
			other := open1(t, &jobstest.Database{DB: full}, tables.Options{Registry: tablestest.Registry(),
				DatabaseClock: f.Clock.Now, Clock: f.Clock.Elapsed})
			if _, err := other.Claim(t.Context(), askMany); err != nil { // it has prepared what it needs
				t.Fatal(err)
			}
			var pages int
			if err := full.Get(&pages, "PRAGMA page_count"); err != nil {
				t.Fatal(err)
			}
			full.MustExec(fmt.Sprintf("PRAGMA max_page_count = %d", pages))
			f.Clock.Ahead += lease + 5*time.Second
			if n, err := f.rescued(other); n != 0 || database.Classify(err) != database.StopClaiming {
				t.Errorf("%d jobs were rescued by a store that cannot write, %v", n, err)
			}
			full.MustExec("PRAGMA max_page_count = 1000000")
			if n, err := f.rescued(other); n != 0 || err != nil {
				t.Errorf("%d jobs were rescued as soon as there was space, %v", n, err)
			}
			f.Clock.Lengths += tables.OwnersFirst
			if n, err := f.rescued(other); n != 1 || err != nil {
				t.Errorf("%d jobs were rescued in the end, %v; want 1", n, err)
			}
		})
	}
}

// A jump of the database's clock ends no lease: for the length of one nothing
// is rescued, and by then the workers that live have renewed theirs.
func TestNothingIsRescuedBecauseTheDatabasesClockJumped(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			f := openFixture(t, v, v.Database(t))
			f.Clock.Ahead = -3 * time.Hour // or a TIMESTAMP column would meet its end
			f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`))
			held := f.MustClaim(2)
			ahead := time.Duration(0)
			other := open1(t, f.DB, tables.Options{Registry: tablestest.Registry(),
				DatabaseClock: f.Clock.Now, Clock: f.Clock.Elapsed,
				Monotonic: func() time.Time { return time.Now().Add(ahead) }})
			if n, err := f.rescued(other); n != 0 || err != nil {
				t.Fatalf("%d rescued, %v", n, err)
			}
			// an idle worker's look
			if _, err := other.Heartbeat(t.Context(), jobs.WorkerInfo{ID: "host:2:y"}); err != nil {
				t.Fatal(err)
			}
			f.Clock.Ahead += time.Hour
			if n, err := f.rescued(other); n != 0 || err != nil {
				t.Errorf("%d jobs were rescued because the clock jumped, %v", n, err)
			}
			if by := other.tables.ClockJump().By; by < 59*time.Minute || by > time.Hour {
				t.Errorf("the jump of an hour is said to be one of %v", by)
			}
			renewed, err := f.Renew(t.Context(), []jobs.Lease{held[0].Lease}, lease) // the other worker is dead
			if err != nil || renewed[0] == (jobs.Lease{}) {
				t.Errorf("the lease of a living worker is lost: %+v, %v", renewed, err)
			}
			f.Clock.Lengths += lease
			if n, err := f.rescued(other); n != 1 || err != nil {
				t.Errorf("%d jobs were rescued in the end, %v; want that of the dead worker", n, err)
			}
			f.Clock.Ahead -= 2 * time.Hour
			ahead += 10 * time.Second
			if _, err := f.rescued(other); err != nil {
				t.Error(err)
			}
			if _, err := other.Heartbeat(t.Context(), jobs.WorkerInfo{ID: "host:2:y"}); err != nil {
				t.Fatal(err)
			}
			if by := other.tables.ClockJump().By; by > -2*time.Hour || by < -2*time.Hour-11*time.Second {
				t.Errorf("the jump back by two hours is said to be one of %v", by)
			}
		})
	}
}
