package queue

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// mixedEnds are many jobs of two types and a few that need more than the
// common form: results, a UUID with quotes, types that are rare.
func (f *fixture) mixedEnds() (ends []jobs.Settlement) {
	f.fill(30, func(i int) jobs.Spec {
		return tablestest.Job(fmt.Sprintf(`{"n":%d,"text":"\t<b>it's\\n\\u0000 \\\\ grün 🎉</b>"}`, i)).Named(
			fmt.Sprintf("plain-%d", i))
	})
	f.fill(20, func(i int) jobs.Spec { return tablestest.Job(`{}`).Named(fmt.Sprintf("empty-%d", i)) })
	f.fill(5, func(i int) jobs.Spec { return tablestest.Job(`{}`).Named(fmt.Sprintf(`it's "\%d`, i)) })
	for i, c := range append(f.MustClaim(40), f.MustClaim(40)...) {
		e := tablestest.End(c, jobs.Completed)
		if i%11 == 0 {
			e.Result = json.RawMessage(`{"made":"it's \"done\""}`)
		}
		ends = append(ends, e)
	}
	return ends
}

// history is what the runs hold, but for times and claims.
func (f *fixture) history(t *testing.T) (lines []string) {
	t.Helper()
	if err := f.DB.Select(&lines, "SELECT CONCAT_WS('|', uuid, type, queue, attempt, outcome, worker, LENGTH(lease), "+
		"duration_ms, wait_ms, error, result, data) FROM cmsjobs_runs ORDER BY uuid"); err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestSharedValuesWriteWhatSingleOnesWrite settles the same jobs in both forms.
func TestSharedValuesWriteWhatSingleOnesWrite(t *testing.T) {
	for engine, shared := range map[jobstest.Engine]string{jobstest.MariaDB: "JSON_TABLE", jobstest.MySQL: "JSON_TABLE",
		jobstest.SQLite: "(VALUES"} {
		t.Run(string(engine), func(t *testing.T) { testSharedValues(t, engine, shared) })
	}
}

func testSharedValues(t *testing.T, engine jobstest.Engine, shared string) {
	v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
	f := openFixture(t, v, v.Database(t))
	if engine.IsMySQL() {
		if f.tables.ProbeJSONTable(bg); !f.tables.JSONTable { // on MySQL, too, which has it and gets VALUES
			t.Skip("this server has no JSON_TABLE")
		}
	}
	f.MustSettle(f.mixedEnds()...)
	inOne := f.history(t)
	f.DB.MustExec("DELETE FROM cmsjobs_runs")
	had := f.tables.Dialect.ValuesTable
	f.tables.JSONTable, f.tables.Dialect.ValuesTable = false, false
	f.MustSettle(f.mixedEnds()...)
	inValues := f.history(t)
	if len(inOne) != 55 || !slices.Equal(inOne, inValues) {
		t.Errorf("%s wrote %d lines\n%q\nVALUES wrote\n%q", shared, len(inOne), inOne, inValues)
	}
	f.tables.JSONTable, f.tables.Dialect.ValuesTable = engine.IsMySQL(), had
	statements, args := f.tables.FewInsertions(make([]tables.RunRow, tables.FewAlike), "1")
	if len(statements) != 1 || !strings.Contains(statements[0], shared) || len(args) != strings.Count(statements[0], "?") {
		t.Errorf("lines that are alike are written by %q with %q", statements, args)
	}
}
