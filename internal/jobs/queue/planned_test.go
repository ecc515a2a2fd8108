package queue

import (
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// PostgreSQL keeps the statements that claim and end a single job for a connection. Where it,
// or a pooler that hands connections around, has lost one, it is sent whole from then on.
func TestStatementsOfOneJobAreKept(t *testing.T) {
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

// settleOne enqueues a job, claims it and settles it. taken is what the last took.
func (f *fixture) settleOne() (taken int64) {
	f.T.Helper()
	f.MustEnqueue(tablestest.Job(`1`))
	held := f.claimAhead()[0]
	before := f.tables.Asked.Load()
	f.MustSettle(tablestest.End(held, jobs.Completed))
	return int64(f.tables.Asked.Load() - before)
}
