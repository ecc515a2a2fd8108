package queue

import (
	"slices"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// TestArraysWriteWhatSingleLinesWrite settles the same jobs together and one by one.
func TestArraysWriteWhatSingleLinesWrite(t *testing.T) {
	v := tablestest.Variant{Engine: jobstest.PostgreSQL, Layout: tables.Stock}
	f := openFixture(t, v, v.Database(t))
	f.MustSettle(f.mixedEnds()...)
	together := f.history(t)
	f.DB.MustExec("DELETE FROM cmsjobs_runs")
	for _, e := range f.mixedEnds() {
		f.MustSettle(e)
	}
	if alone := f.history(t); len(together) != 55 || !slices.Equal(together, alone) {
		t.Errorf("arrays wrote %d lines\n%q\nsingle lines are\n%q", len(together), together, alone)
	}
}

// TestWhatLinesShareIsWrittenOnce: the server would read arrays of a thousand equal texts.
func TestWhatLinesShareIsWrittenOnce(t *testing.T) {
	var s tables.Tables
	lines := make([]tables.RunRow, 3)
	for i := range lines {
		lines[i] = s.RowOf(&tables.Run{Job: jobs.Job{ID: int64(i + 1), UUID: "same", Type: "shop.sync"}})
	}
	statement, args := tables.ArrayInsertion(lines, "1", "gone")
	if arrays := strings.Count(statement, "[])"); arrays != 1 || !strings.Contains(statement, "JOIN gone ON gone.id = t.j") {
		t.Errorf("%d arrays in %s", arrays, statement)
	}
	if len(args) != strings.Count(statement, "?") {
		t.Errorf("%d arguments for %s", len(args), statement)
	}
	lines[1] = s.RowOf(&tables.Run{Job: jobs.Job{ID: 2, UUID: "another", Type: "shop.sync"}, Error: "it broke"})
	if statement, _ = tables.ArrayInsertion(lines, "1", ""); strings.Count(statement, "[])") != 3 {
		t.Errorf("numbers, UUIDs and errors differ, but: %s", statement)
	}
}

// TestAClaimedRowStaysOnItsPage: PostgreSQL then needs no new entry in any index for it.
func TestAClaimedRowStaysOnItsPage(t *testing.T) {
	v := tablestest.Variant{Engine: jobstest.PostgreSQL, Layout: tables.Stock}
	f := &fixture{Fixture: tablestest.Open(t, v, v.Database(t))}
	f.DB.MustExec("DROP TABLE jobs")
	if _, err := tables.CreateTables(t.Context(), f.DB.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	f.setStore(open1(t, f.DB, tables.Options{Registry: tablestest.Registry()}))
	f.fill(1000, func(int) jobs.Spec { return tablestest.Job(`{}`) })
	f.DB.MustExec("CREATE TABLE pages AS SELECT id, (CAST(CAST(ctid AS text) AS point))[0] AS page FROM jobs")
	if got := f.MustClaim(1000); len(got) != 1000 {
		t.Fatalf("claimed %d", len(got))
	}
	moved := f.CountRows("SELECT COUNT(*) FROM jobs JOIN pages USING (id) " +
		"WHERE (CAST(CAST(jobs.ctid AS text) AS point))[0] <> page")
	if moved > 20 {
		t.Errorf("the new versions of %d of 1,000 rows are on other pages", moved)
	}
}
