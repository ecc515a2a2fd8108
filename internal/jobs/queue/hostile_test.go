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
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// hostile runs a test on both layouts of every database.
func hostile(t *testing.T, test func(*testing.T, *fixture)) {
	for _, engine := range jobstest.Engines() {
		for _, layout := range []tables.Layout{tables.Stock, tables.Extended} {
			v := tablestest.Variant{Engine: engine, Layout: layout}
			t.Run(v.String(), func(t *testing.T) { test(t, openFixture(t, v, v.Database(t))) })
		}
	}
}

// workOff claims everything, as a worker with a handler that always succeeds.
func (f *fixture) workOff(queue string) (done, failed int) {
	f.T.Helper()
	for _, c := range f.MustClaim(20, queue) {
		e := tablestest.End(c, jobs.Completed)
		if done++; c.Fault != nil {
			e.Outcome, e.Error = jobs.Failed, c.Fault.Error()
			done, failed = done-1, failed+1
		}
		if err := f.MustSettle(e)[0]; err != nil {
			f.T.Errorf("settling %d: %v", c.Job.ID, err)
		}
	}
	return done, failed
}

// A row of 16 MB, which is MySQL's usual max_allowed_packet, is not read; it is
// failed whole, and the queue goes on.
func TestARowOfSixteenMegabytesFailsWhole(t *testing.T) {
	const size = 16 << 20
	hostile(t, func(t *testing.T, f *fixture) {
		payload := `{"type":"test.plain","blob":"` + strings.Repeat("x", size) + `"}`
		writer := *f
		if f.Variant.Engine.IsMySQL() { // the program that wrote it was allowed more than we are
			jobstest.SetGlobal(t, f.Variant.Engine, "max_allowed_packet", 64<<20)
			db, err := database.Connect(context.Background(), database.ConnectOptions{DSN: f.DB.DSN})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			other := *f.DB
			other.DB = db
			writer.DB = &other
		}
		writer.InsertRaw("cmsjobs", payload)
		f.InsertRaw("cmsjobs", `{"type":"test.plain","n":1}`)
		if done, failed := f.workOff("cmsjobs"); done != 1 || failed != 1 {
			t.Errorf("%d done and %d failed, want 1 and 1", done, failed)
		}
		if n := f.CountRows("SELECT " + f.tables.Dialect.Bytes + "(payload) FROM failed_jobs"); n != len(payload) {
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
func TestAPayloadThatIsNoUTF8Fails(t *testing.T) {
	hostile(t, func(t *testing.T, f *fixture) {
		const broken = "\xff\xfe{\"type\":\"test.plain\"}\xc3"
		f.InsertRaw("cmsjobs", `{"type":"test.plain","mark":"here"}`)
		column, table := f.Store.tables.Layout.Table().Payload, f.Store.tables.Layout.Table().Name
		if f.Variant.Engine.IsMySQL() {
			_, _ = f.DB.Exec("ALTER TABLE jobs DROP CONSTRAINT payload_json") // not every layout has it
			f.DB.MustExec("ALTER TABLE jobs MODIFY " + column + " LONGBLOB NOT NULL")
		}
		_, err := f.tables.Exec(context.Background(), f.DB.DB, "UPDATE "+table+" SET "+column+" = ? WHERE "+column+
			" LIKE '%here%'", broken)
		if refused := database.Classify(err) == database.JobsFault; refused != (f.Variant.Engine == jobstest.PostgreSQL) {
			t.Fatalf("the database says %v", err)
		}
		f.InsertRaw("cmsjobs", `{"type":"test.plain","n":1}`)
		done, failed := f.workOff("cmsjobs")
		if want := map[bool]int{true: 0, false: 1}[f.Variant.Engine == jobstest.PostgreSQL]; failed != want ||
			done != 2-want {
			t.Errorf("%d done and %d failed, want %d and %d", done, failed, 2-want, want)
		}
		if n := f.CountRows("SELECT COUNT(*) FROM jobs"); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}

// People cancel and run now what is ours; PHP's own jobs and those of types that
// nobody here has registered are not touched, by whatever filter.
func TestPeopleDoNotTouchTheJobsOfOthers(t *testing.T) {
	hostile(t, func(t *testing.T, f *fixture) {
		for _, payload := range []string{php, `{"type":"of.another.service"}`, `{"type":"test.plain"`} {
			f.InsertRaw("default", payload)
		}
		f.MustEnqueue(tablestest.Job(`{}`).In(time.Hour))
		due := f.Store.tables.Layout.Table().Due.Name
		f.DB.MustExec("UPDATE jobs SET " + due + " = " + f.Store.tables.Layout.Table().Due.FromExpr(
			f.tables.SecondsNow()+" + 3600"))
		mine := 1
		if f.Variant.Layout == tables.Extended { // every row of its table is ours to fail
			mine = 2
		}
		if n, err := f.RunNow(context.Background(), jobs.Filter{}, 0); err != nil || n != int64(mine) {
			t.Errorf("run now: %d, %v; want %d", n, err, mine)
		}
		if n, err := f.Cancel(context.Background(), jobs.Filter{}, 0); err != nil || n != int64(mine) {
			t.Errorf("cancelled %d, %v; want %d", n, err, mine)
		}
		if n := f.CountRows("SELECT COUNT(*) FROM jobs WHERE " + due + " > " +
			f.Store.tables.Layout.Table().Due.FromExpr(f.tables.SecondsNow()+" + 60")); n != 4-mine {
			t.Errorf("%d rows of others are as they were, want %d", n, 4-mine)
		}
	})
}
