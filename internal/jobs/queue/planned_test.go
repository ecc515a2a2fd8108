package queue

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// PostgreSQL keeps the statements that claim and end jobs for a connection. Where it,
// or a pooler that hands connections around, has lost one, it is sent whole from then on.
func TestStatementsAboutJobsAreKept(t *testing.T) {
	for _, layout := range []tables.Layout{tables.Stock, tables.Extended} {
		v := tablestest.Variant{Engine: jobstest.PostgreSQL, Layout: layout}
		t.Run(v.String(), func(t *testing.T) {
			f := openFixture(t, v, v.Database(t))
			f.DB.SetMaxOpenConns(1)
			f.settleOne()
			f.settleOne()
			var runs int
			if err := f.DB.Get(&runs, "SELECT COALESCE(MAX(generic_plans + custom_plans), 0) FROM pg_prepared_statements "+
				"WHERE statement LIKE 'WITH won AS %'"); err != nil || runs != 2 {
				t.Errorf("the kept statement ran %d times (%v), want 2", runs, err)
			}
			f.DB.MustExec("DEALLOCATE ALL")
			f.settleOne()
			if taken := f.settleOne(); taken != 1 {
				t.Errorf("the end of a job takes %d statements, want 1", taken)
			}
			if left := f.CountRows("SELECT COUNT(*) FROM jobs"); left != 0 {
				t.Errorf("%d jobs are left", left)
			}
			if lines := f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs"); lines != 4 {
				t.Errorf("history has %d lines, want 4", lines)
			}
		})
	}
}

// Behind a pooler that gives each transaction another of its connections, a statement is
// missing on the next one, unless the pooler sends it there. Each job is done once.
func TestJobsAreDoneBehindAPooler(t *testing.T) {
	v := tablestest.Variant{Engine: jobstest.PostgreSQL, Layout: tables.Stock}
	db, server := v.Database(t), jobstest.Shared(t, jobstest.PostgreSQL)
	pooler := jobstest.PgBouncer(t, server.Port)
	dsn := strings.Replace(db.DSN, fmt.Sprint(":", server.Port, "/"), fmt.Sprint(":", pooler.Port, "/"), 1)
	var pools [2]*sqlx.DB
	for i := range pools {
		var err error
		if pools[i], err = database.Connect(t.Context(), database.ConnectOptions{DSN: dsn}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { pools[i].Close() })
		pools[i].SetMaxOpenConns(1)
	}
	f := openFixture(t, v, &jobstest.Database{DB: pools[0], Engine: db.Engine, Driver: db.Driver, DSN: dsn})
	f.settleOne()
	f.settleOne()
	holds := pools[1].MustBegin() // the server's connection that was used last
	t.Cleanup(func() { _ = holds.Rollback() })
	if _, err := holds.Exec("SELECT 1"); err != nil {
		t.Fatal(err)
	}
	f.settleOne()
	if taken := f.settleOne(); taken != 1 {
		t.Errorf("the end of a job takes %d statements, want 1", taken)
	}
	if lines := f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs"); lines != 4 {
		t.Errorf("history has %d lines, want 4", lines)
	}
}

// A plan that was made for an empty table is not kept when many rows have come: one
// statement reads them all, and says how many bytes they are.
func TestAKeptStatementFindsItsRowInATableThatGrew(t *testing.T) {
	const others = 50_000
	for _, layout := range []tables.Layout{tables.Stock, tables.Extended} {
		v := tablestest.Variant{Engine: jobstest.PostgreSQL, Layout: layout}
		t.Run(v.String(), func(t *testing.T) {
			f := openFixture(t, v, v.Database(t))
			f.DB.SetMaxOpenConns(1)
			f.DB.MustExec("VACUUM ANALYZE jobs")
			for range 20 {
				f.settleOne()
			}
			f.InsertRaw("other", `{}`)
			columns := "queue, payload, attempts, available_at, created_at"
			if layout == tables.Extended {
				columns = "queue, name, payload_json, run_at, created_at"
			}
			f.DB.MustExec(fmt.Sprintf("INSERT INTO jobs (%s) SELECT %[1]s FROM jobs, generate_series(1, %d)", columns,
				others))
			before := f.rowsReadWithoutIndex()
			for range 10 {
				f.settleOne()
			}
			if read := f.rowsReadWithoutIndex() - before; read > 2*others {
				t.Errorf("%d rows were read without an index to settle 10 jobs in a table of %d", read, others)
			}
		})
	}
}

// An end whose row is gone says nothing of how large the table is: statements are kept on.
func TestALostEndInAnEmptyTableStopsNoKeeping(t *testing.T) {
	v := tablestest.Variant{Engine: jobstest.PostgreSQL, Layout: tables.Stock}
	f := openFixture(t, v, v.Database(t))
	f.MustEnqueue(tablestest.Job(`1`))
	held := f.claimAhead()[0]
	f.DB.MustExec("DELETE FROM jobs")
	f.DB.MustExec("VACUUM jobs")
	if results, err := f.Store.Settle(bg, []jobs.Settlement{tablestest.End(held, jobs.Completed)}); err != nil ||
		len(results) != 1 || results[0] == nil {
		t.Errorf("the end of a lost job: %v, %v", results, err)
	}
	if _, _, keeps := f.Store.plans.Of("", nil); !keeps {
		t.Error("nothing is kept any more")
	}
}

// rowsReadWithoutIndex is how many rows of jobs PostgreSQL has read so.
func (f *fixture) rowsReadWithoutIndex() int64 {
	f.DB.MustExec("SELECT pg_stat_force_next_flush()")
	return int64(f.CountRows("SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'jobs'"))
}

// settleOne enqueues a job, claims it and settles it. taken is what the last took.
func (f *fixture) settleOne() (taken int64) {
	f.T.Helper()
	f.MustEnqueue(tablestest.Job(`1`))
	held := f.claimAhead()[0]
	before := f.tables.Asked.Load()
	f.MustSettle(tablestest.End(held, jobs.Completed))
	return int64(f.tables.Asked.Load() - before)
}
