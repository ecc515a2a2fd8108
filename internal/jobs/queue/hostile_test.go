package queue

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// hostile runs a test on both layouts of every database.
func hostile(t *testing.T, test func(*testing.T, *fixture)) {
	for _, engine := range jobstest.Engines() {
		for _, layout := range []tables.Layout{tables.Stock, tables.Extended} {
			v := variant{engine: engine, layout: layout, mode: tables.Skip}
			t.Run(v.String(), func(t *testing.T) { test(t, v.fixture(t, v.database(t))) })
		}
	}
}

// workOff claims everything, as a worker with a handler that always succeeds.
func (f *fixture) workOff(queue string) (done, buried int) {
	f.t.Helper()
	for _, c := range f.claim(20, queue) {
		e := end(c, jobs.Completed)
		if done++; c.Fault != nil {
			e.Outcome, e.Error = jobs.Failed, c.Fault.Error()
			done, buried = done-1, buried+1
		}
		if err := f.settle(e)[0]; err != nil {
			f.t.Errorf("settling %d: %v", c.Job.ID, err)
		}
	}
	return done, buried
}

// A row of 16 MB, which is MySQL's usual max_allowed_packet, is not read; it is
// buried whole, and the queue goes on.
func TestARowOfSixteenMegabytesIsBuriedWhole(t *testing.T) {
	const size = 16 << 20
	hostile(t, func(t *testing.T, f *fixture) {
		payload := `{"type":"test.plain","blob":"` + strings.Repeat("x", size) + `"}`
		writer := *f
		if f.v.engine.IsMySQL() { // whoever wrote it was allowed more than we are
			jobstest.SetGlobal(t, f.v.engine, "max_allowed_packet", 64<<20)
			db, err := database.Connect(context.Background(), database.ConnectOptions{DSN: f.db.DSN})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			other := *f.db
			other.DB = db
			writer.db = &other
		}
		writer.insertRaw("cmsjobs", payload)
		f.insertRaw("cmsjobs", `{"type":"test.plain","n":1}`)
		if done, buried := f.workOff("cmsjobs"); done != 1 || buried != 1 {
			t.Errorf("%d done and %d buried, want 1 and 1", done, buried)
		}
		if n := f.count("SELECT " + f.Dialect.Bytes + "(payload) FROM failed_jobs"); n != len(payload) {
			t.Errorf("failed_jobs has %d of %d bytes", n, len(payload))
		}
		seen, err := f.Jobs(bg, jobs.Filter{Statuses: []jobs.Status{jobs.StatusFailed}}, jobs.Page{Limit: 9})
		if err != nil || len(seen.Items) != 1 || len(seen.Items[0].Payload) > tables.Oversize {
			t.Errorf("people see %d records, or too much of one: %v", len(seen.Items), err)
		}
	})
}

// Bytes that are no UTF-8 reach us where the column takes them: SQLite's always,
// MySQL's BLOB. PostgreSQL refuses them itself.
func TestAPayloadThatIsNoUTF8IsBuried(t *testing.T) {
	hostile(t, func(t *testing.T, f *fixture) {
		const broken = "\xff\xfe{\"type\":\"test.plain\"}\xc3"
		f.insertRaw("cmsjobs", `{"type":"test.plain","mark":"here"}`)
		column, table := f.Store.Layout.Table().Payload, f.Store.Layout.Table().Name
		if f.v.engine.IsMySQL() {
			_, _ = f.db.Exec("ALTER TABLE jobs DROP CONSTRAINT payload_json") // not every layout has it
			f.db.MustExec("ALTER TABLE jobs MODIFY " + column + " LONGBLOB NOT NULL")
		}
		_, err := f.Exec(context.Background(), f.db.DB, "UPDATE "+table+" SET "+column+" = ? WHERE "+column+" LIKE '%here%'", broken)
		if refused := database.Classify(err) == database.JobsFault; refused != (f.v.engine == jobstest.PostgreSQL) {
			t.Fatalf("the database says %v", err)
		}
		f.insertRaw("cmsjobs", `{"type":"test.plain","n":1}`)
		done, buried := f.workOff("cmsjobs")
		if want := map[bool]int{true: 0, false: 1}[f.v.engine == jobstest.PostgreSQL]; buried != want || done != 2-want {
			t.Errorf("%d done and %d buried, want %d and %d", done, buried, 2-want, want)
		}
		if n := f.count("SELECT COUNT(*) FROM jobs"); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}

// People cancel and hasten what is ours; PHP's own jobs and those of types that
// nobody here has registered are not touched, by whatever filter.
func TestPeopleDoNotTouchTheJobsOfOthers(t *testing.T) {
	hostile(t, func(t *testing.T, f *fixture) {
		for _, payload := range []string{php, `{"type":"of.another.service"}`, `{"type":"test.plain"`} {
			f.insertRaw("default", payload)
		}
		f.enqueue(job(`{}`).In(time.Hour))
		due := f.Store.Layout.Table().Due.Name
		f.db.MustExec("UPDATE jobs SET " + due + " = " + f.Store.Layout.Table().Due.FromExpr(f.SecondsNow()+" + 3600"))
		mine := 1
		if f.v.layout == tables.Extended { // every row of its table is ours to bury
			mine = 2
		}
		if n, err := f.RunNow(context.Background(), jobs.Filter{}, 0); err != nil || n != int64(mine) {
			t.Errorf("hastened %d, %v; want %d", n, err, mine)
		}
		if n, err := f.Cancel(context.Background(), jobs.Filter{}, 0); err != nil || n != int64(mine) {
			t.Errorf("cancelled %d, %v; want %d", n, err, mine)
		}
		if n := f.count("SELECT COUNT(*) FROM jobs WHERE " + due + " > " + f.Store.Layout.Table().Due.FromExpr(f.SecondsNow()+" + 60")); n != 4-mine {
			t.Errorf("%d rows of others are as they were, want %d", n, 4-mine)
		}
	})
}
