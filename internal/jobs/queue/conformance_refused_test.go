package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// narrow lets cmsjobs_runs take no more than ten characters of a column, until
// the test ends.
func (f *fixture) narrow(t *testing.T, column, was string) {
	t.Helper()
	var narrow, widen string
	switch f.Variant.Engine {
	case jobstest.MariaDB, jobstest.MySQL:
		narrow = "ALTER TABLE cmsjobs_runs MODIFY " + column + " VARCHAR(10)"
		widen = "ALTER TABLE cmsjobs_runs MODIFY " + column + " " + was
	case jobstest.PostgreSQL:
		narrow = "ALTER TABLE cmsjobs_runs ALTER COLUMN " + column + " TYPE VARCHAR(10)"
		widen = "ALTER TABLE cmsjobs_runs ALTER COLUMN " + column + " TYPE " + map[string]string{
			"result": "TEXT", "worker": "VARCHAR(191)"}[column]
	default:
		narrow = "CREATE TRIGGER narrow BEFORE INSERT ON cmsjobs_runs WHEN length(NEW." + column +
			") > 10 BEGIN SELECT RAISE(ABORT, 'too long'); END"
		widen = "DROP TRIGGER narrow"
	}
	f.DB.MustExec("DELETE FROM cmsjobs_runs")
	f.DB.MustExec(narrow)
	t.Cleanup(func() {
		f.DB.MustExec("DELETE FROM cmsjobs_runs")
		f.DB.MustExec(widen)
	})
}

// Bytes that no text column takes are replaced, and what is too long is left out:
// the job ends all the same, and so do those that end beside it.
func conformWhatARunLeftIsWrittenOrLeftOut(t *testing.T, f *fixture) {
	const foul = "a\x00b\xff\xfec \U0001F600"
	f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`), tablestest.Job(`3`).WithMaxAttempts(1), tablestest.Job(`4`))
	held := f.MustClaim(4)
	var ends []jobs.Settlement
	for i, outcome := range []jobs.Outcome{jobs.Completed, jobs.Retried, jobs.Failed, jobs.Cancelled} {
		e := tablestest.End(held[i], outcome)
		e.Result, e.Lines = json.RawMessage(`{"said":"`+foul+`"}`), []jobs.LogLine{
			{At: time.Now(), Text: foul + strings.Repeat("\xff.", 40_000)}}
		if outcome != jobs.Completed {
			e.Error = foul + "\n" + strings.Repeat("\U0001F600", 40_000)
		}
		ends = append(ends, e)
	}
	for i, err := range f.MustSettle(ends...) {
		if err != nil {
			t.Errorf("end %d: %v", i, err)
		}
	}
	if n := f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs WHERE result LIKE '%said%'"); n != 4 {
		t.Errorf("%d results are kept, want 4", n)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM cmsjobs_job_logs"); n != 4 {
		t.Errorf("%d log lines are kept, want 4", n)
	}

	f.narrow(t, "result", "MEDIUMTEXT NULL")
	f.MustEnqueue(tablestest.Job(`5`), tablestest.Job(`6`), tablestest.Job(`7`))
	ends = nil
	for i, c := range f.MustClaim(3) {
		e := tablestest.End(c, jobs.Completed)
		if e.Result = json.RawMessage(`{}`); i == 1 {
			e.Result = json.RawMessage(`{"far":"too long"}`)
			e.FollowUps = []jobs.Spec{tablestest.Job(`8`).On("next")}
		}
		ends = append(ends, e)
	}
	f.MustSettle(ends...)
	if n := f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs WHERE outcome = 'completed' AND result = '{}'"); n != 2 {
		t.Errorf("%d neighbours are completed with their results, want 2", n)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs WHERE job_id = ? AND outcome = 'completed' AND result IS "+
		"NULL", ends[1].Claimed.Job.ID); n != 1 {
		t.Error("the refused end was not written without its result")
	}
	if n := f.CountRows("SELECT COUNT(*) FROM jobs WHERE queue = 'next'"); n != 1 {
		t.Errorf("%d jobs follow, want 1", n)
	}
}

// An end that the database refuses even without its data is given up with the
// reason, and holds up nothing: alone, among others, and with the next job.
func conformARefusedEndHoldsUpNoOther(t *testing.T, f *fixture) {
	f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`), tablestest.Job(`3`), tablestest.Job(`4`))
	held := f.MustClaim(3)
	f.narrow(t, "worker", "VARCHAR(191) NOT NULL")
	ends := []jobs.Settlement{tablestest.End(held[0], jobs.Completed), tablestest.End(held[1], jobs.Completed),
		tablestest.End(held[2], jobs.Completed)}
	ends[1].Worker = "a-name-that-is-too-long"
	errs, err := f.Settle(context.Background(), ends)
	if err != nil {
		t.Fatalf("the worker would ask again for ever: %v", err)
	}
	if errs[0] != nil || errs[2] != nil || errs[1] == nil || database.Classify(errs[1]) != database.JobsFault {
		t.Errorf("%v, want the reason for the second only", errs)
	}
	lost, next, err := f.SettleAndClaim(context.Background(), ends[1:2], askOne)
	if err != nil || lost[0] == nil || len(next) != 0 {
		t.Errorf("%v, %v and %d claimed; want the reason alone", lost, err, len(next))
	}
	if n := f.CountRows("SELECT COUNT(*) FROM jobs"); n != 2 {
		t.Errorf("%d rows, want the refused one and the one that nobody claimed", n)
	}
	if n := f.CountRows(fmt.Sprintf("SELECT COUNT(*) FROM jobs WHERE id = %d", held[1].Job.ID)); n != 1 {
		t.Error("the row of the refused end is gone")
	}
}

// failed_jobs of an old CMS has MySQL's three-byte UTF-8, and the payload a face.
func TestAFaceFailsForGoodInAnOldTable(t *testing.T) {
	jobstest.EachMySQL(t, testAFaceFailsForGoodInAnOldTable)
}

func testAFaceFailsForGoodInAnOldTable(t *testing.T, engine jobstest.Engine) {
	v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
	f := openFixture(t, v, v.Database(t))
	f.DB.MustExec("ALTER TABLE failed_jobs CONVERT TO CHARACTER SET utf8mb3")
	f.MustEnqueue(tablestest.Job(`{"name":"😀 é"}`))
	e := tablestest.End(f.MustClaim(1)[0], jobs.Failed)
	e.Error = "no 😀 here"
	if err := f.MustSettle(e)[0]; err != nil {
		t.Fatal(err)
	}
	var row struct{ Payload, Exception string }
	if err := f.DB.Get(&row, "SELECT payload, exception FROM failed_jobs"); err != nil {
		t.Fatal(err)
	}
	var payload struct{ Data struct{ Name string } }
	if err := json.Unmarshal([]byte(row.Payload), &payload); err != nil || payload.Data.Name != "😀 é" ||
		row.Exception != "no ? here" {
		t.Errorf("%v, %+v", err, row)
	}
}
