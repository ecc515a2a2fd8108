package queue

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

func numbers(from, to int64) (list []int64) {
	for i := from; i <= to; i++ {
		list = append(list, i)
	}
	return list
}

// TestRowsNamesExactlyTheRows asks SQLite which of 100 rows each condition means.
func TestRowsNamesExactlyTheRows(t *testing.T) {
	v := tablestest.Variant{Engine: jobstest.SQLite, Layout: tables.Stock}
	f := openFixture(t, v, v.Database(t))
	f.fill(100, func(int) jobs.Spec { return tablestest.Job(`{}`) })
	d, err := database.DialectOf("mysql")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		ids  []int64
		want string
	}{
		{numbers(7, 7), "id IN (7)"},
		{numbers(3, 40), "(id BETWEEN 3 AND 39 OR id IN (40))"},
		{slices.Concat(numbers(1, 30), numbers(33, 60), numbers(70, 70)), "(id BETWEEN 1 AND 29 OR id BETWEEN 33 AND " +
			"59 OR id IN (30,60,70))"},
		{slices.Concat(numbers(1, 30), numbers(40, 41)), "(id BETWEEN 1 AND 29 OR id IN (30,40,41))"},
		{[]int64{1, 3, 5, 7}, "id IN (1,3,5,7)"},
	} {
		condition, _ := d.IDRanges(x.ids)
		if condition != x.want {
			t.Errorf("%v is %s", x.ids, condition)
		}
		var got []int64
		if err := f.DB.Select(&got, "SELECT id FROM jobs WHERE "+condition+" ORDER BY id"); err != nil ||
			!slices.Equal(got, x.ids) {
			t.Errorf("%s names %v, %v", condition, got, err)
		}
	}
}

// TestAnUncommittedInsertKeepsNobodyWaiting claims and settles all rows before
// one that a CMS is still inserting. A range up to the last row waits for it.
func TestAnUncommittedInsertKeepsNobodyWaiting(t *testing.T) {
	jobstest.EachMySQL(t, testAnUncommittedInsertKeepsNobodyWaiting)
}

func testAnUncommittedInsertKeepsNobodyWaiting(t *testing.T, engine jobstest.Engine) {
	for _, indexed := range []bool{false, true} {
		v := tablestest.Variant{Engine: engine, Layout: tables.Stock, Indexed: indexed}
		t.Run(fmt.Sprint(indexed), func(t *testing.T) {
			f := openFixture(t, v, v.Database(t))
			f.fill(40, func(int) jobs.Spec { return tablestest.Job(`{}`) })
			slow := f.DB.MustBegin()
			defer tables.Rollback(slow)
			slow.MustExec("INSERT INTO jobs (queue, payload, attempts, available_at, created_at) SELECT queue, " +
				"payload, attempts, available_at, created_at FROM jobs LIMIT 1")
			before := f.lockWaits()
			claimed := f.MustClaim(40)
			var ends []jobs.Settlement
			for _, c := range claimed {
				ends = append(ends, tablestest.End(c, jobs.Completed))
			}
			f.MustSettle(ends...)
			if waits := f.lockWaits() - before; len(claimed) != 40 || waits != 0 {
				t.Errorf("%d were claimed, %d statements waited for a lock", len(claimed), waits)
			}
		})
	}
}

// lockWaits is how often a statement has waited for a row on this server.
func (f *fixture) lockWaits() int {
	schema := map[jobstest.Engine]string{jobstest.MariaDB: "information_schema",
		jobstest.MySQL: "performance_schema"}[f.Variant.Engine]
	return f.CountRows("SELECT variable_value FROM " + schema + ".global_status WHERE variable_name = " +
		"'Innodb_row_lock_waits'")
}
