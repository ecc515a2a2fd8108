package history

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// crowd fills the history and failed_jobs as a month of work does: a tenth
// failed, a hundredth was cancelled, one run a hundred is of a rare type.
func crowd(t *testing.T, db *jobstest.Database, now time.Time, runs, failed int) {
	t.Helper()
	month := (30 * 24 * time.Hour).Milliseconds()
	insert := func(into string, n int, row func(i int) string) {
		for from := 0; from < n; {
			var values []string
			for ; from < n && len(values) < 2000; from++ {
				values = append(values, row(from))
			}
			db.MustExec("INSERT INTO " + into + " VALUES " + strings.Join(values, ","))
		}
	}
	insert("cmsjobs_runs (job_id, uuid, type, queue, attempt, outcome, worker, lease, ended_at, duration_ms, "+
		"wait_ms, data)", runs, func(i int) string {
		outcome, kind := "completed", []string{"plain", "other", "third"}[i%3]
		switch {
		case i%10 == 0:
			outcome = "failed"
		case i%100 == 7:
			outcome = "cancelled"
		case i%100 == 9:
			kind = "rare"
		}
		return fmt.Sprintf("(%d,'u%d','%s','default',1,'%s','w','x%d',%d,%d,5,'{\"n\":%d}')", i, i, kind, outcome, i,
			now.UnixMilli()-month+int64(i)*month/int64(runs), i%900, i)
	})
	insert("failed_jobs (uuid, connection, queue, payload, exception)", failed, func(i int) string {
		return fmt.Sprintf(`('f%d','database','default','{"type":"plain","data":{"n":%d}}','5%d mailbox is full')`, i,
			i, i%5)
	})
	for _, table := range []string{"cmsjobs_runs", "failed_jobs"} {
		db.MustExec(map[string]string{"mysql": "ANALYZE TABLE ", "pgx": "ANALYZE ",
			"sqlite": "ANALYZE "}[db.DriverName()] + table)
	}
}

var wholeTable = map[string]*regexp.Regexp{
	"mysql":  regexp.MustCompile(`type:ALL`),
	"pgx":    regexp.MustCompile(`Seq Scan on (cmsjobs_runs|failed_jobs)`),
	"sqlite": regexp.MustCompile(`SCAN (cmsjobs_runs|failed_jobs)\b`),
}

// plan is what a database says that it will do, in one text.
func plan(t *testing.T, db *jobstest.Database, statement string, args []any) string {
	t.Helper()
	explain := map[string]string{"mysql": "EXPLAIN ", "pgx": "EXPLAIN ",
		"sqlite": "EXPLAIN QUERY PLAN "}[db.DriverName()]
	rows, err := db.Queryx(sqlx.Rebind(sqlx.BindType(db.DriverName()), explain+statement), args...)
	if err != nil {
		t.Fatalf("%v: %s", err, statement)
	}
	defer rows.Close()
	var text strings.Builder
	for rows.Next() {
		row := map[string]any{}
		if err := rows.MapScan(row); err != nil {
			t.Fatal(err)
		}
		for name, value := range row {
			fmt.Fprintf(&text, "%s:%s ", name, value)
		}
		text.WriteString("\n")
	}
	return text.String()
}

// TestNoPageReadsAWholeTable asks what pages ask and looks at the plan of each
// statement on the large tables: none may read all of one.
func TestNoPageReadsAWholeTable(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
			db := v.Database(t)
			f := openFixture(t, v, db)
			crowd(t, db, time.Now(), 30_000, 12_000)
			seen := 0
			f.tables.Watch = func(statement string, args []any) {
				if !strings.Contains(statement, "cmsjobs_runs") && !strings.Contains(statement, f.tables.Failed.Name) {
					return
				}
				if strings.HasPrefix(statement, "SELECT COUNT(*) FROM "+f.tables.Failed.Name) &&
					!strings.Contains(statement, "WHERE") {
					return // its shortest index is counted, which no plan betters
				}
				seen++
				if found := plan(t, db, statement, args); wholeTable[db.DriverName()].MatchString(found) &&
					!walksAnIndex(db.DriverName(), statement, found) {
					t.Errorf("%s\nis read by\n%s", statement, found)
				}
			}
			f.asPagesDo(t)
			if seen < 40 {
				t.Errorf("only %d statements were looked at", seen)
			}
		})
	}
}

// walksAnIndex is a list that is read in an index's order and ends early.
func walksAnIndex(driver, statement, plan string) bool {
	return driver == "sqlite" && strings.Contains(statement, " LIMIT ") && !strings.Contains(plan, "TEMP B-TREE")
}

// asPagesDo reads everything that pages read of the large tables.
func (f *fixture) asPagesDo(t *testing.T) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := f.Stats(bg)
	check(err)
	for _, step := range []time.Duration{time.Minute, 30 * time.Minute, 24 * time.Hour} {
		_, err = f.Throughput(bg, 50, step)
		check(err)
		for _, by := range []jobs.SeriesSplit{jobs.ByOutcome, jobs.ByType, jobs.ByQueue} {
			_, err = f.Series(bg, 50, step, by)
			check(err)
		}
	}
	_, err = f.Groups(bg, jobs.Filter{})
	check(err)
	day := time.Now().Add(-24 * time.Hour)
	for _, filter := range []jobs.Filter{{}, {Statuses: []jobs.Status{jobs.StatusCompleted}},
		{Statuses: []jobs.Status{jobs.StatusCancelled}, Types: []string{"plain"}},
		{Statuses: []jobs.Status{jobs.StatusFailed}},
		{Types: []string{"rare"}}, {Queues: []string{"default"}}, {Queues: []string{"elsewhere"}}, {Text: "nowhere"},
		{Since: day}, {Until: day}, {Types: []string{"plain"}, Since: day}, {UUIDs: []string{"u9"}}} {
		list, err := f.Jobs(bg, filter, jobs.Page{Limit: 50, Uncounted: true})
		check(err)
		if list.Next != "" {
			_, err = f.Jobs(bg, filter, jobs.Page{Limit: 50, Uncounted: true, Cursor: list.Next})
			check(err)
		}
		_, err = f.Runs(bg, filter, jobs.Page{Limit: 50})
		check(err)
	}
	_, err = f.Job(bg, "u77")
	check(err)
}

// TestASearchGoesOnWhereItStopped looks for what lies deep in the history: no
// one page may look through all of it, and together they find it once.
func TestASearchGoesOnWhereItStopped(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
			db := v.Database(t)
			f := openFixture(t, v, db)
			crowd(t, db, time.Now(), 26_000, 13_000)
			for text, want := range map[string]int{`"n":41}`: 2, `"n":12999}`: 2, "nowhere": 0} {
				found, pages := 0, 0
				for cursor := ""; pages < 20; {
					list, err := f.Jobs(bg, jobs.Filter{Text: text}, jobs.Page{Limit: 50, Cursor: cursor})
					if err != nil {
						t.Fatal(err)
					}
					pages, found = pages+1, found+len(list.Items)
					if cursor = list.Next; cursor == "" {
						break
					}
				}
				if found != want || pages > 5 || want == 0 && pages < 2 {
					t.Errorf("%s was found %d times on %d pages", text, found, pages)
				}
			}
		})
	}
}

// TestHalfHoursAreCountedOnce compares totals and plots with the rows
// themselves while time goes on and old runs are deleted.
func TestHalfHoursAreCountedOnce(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
			db := v.Database(t)
			f := openFixture(t, v, db)
			crowd(t, db, time.Now(), 20_000, 0)
			f.totals(t, 20_000)
			var kept int
			if err := db.Get(&kept, "SELECT COUNT(*) FROM cmsjobs_throughput"); err != nil || kept < 3000 {
				t.Errorf("%d half hours were kept, %v", kept, err)
			}
			f.MustEnqueue(one(`{}`), one(`{}`))
			f.MustSettle(tablestest.End(f.MustClaim(1)[0], jobs.Completed),
				tablestest.End(f.MustClaim(1)[0], jobs.Retried))
			f.totals(t, 20_002)
			f.Clock.Ahead += 40 * time.Minute
			f.totals(t, 20_002)
			if n, err := f.RotateRuns(bg, 7, 20); err != nil || n == 0 {
				t.Fatal(n, err)
			}
			f.totals(t, 20_002)
			f.another().totals(t, db, 20_002)
		})
	}
}

func (f *fixture) totals(t *testing.T, ever int64) { t.Helper(); f.Store.totals(t, f.DB, ever) }

// totals holds Stats and Throughput against the rows. The plots of half hours
// show all that ever ended.
func (s *Store) totals(t *testing.T, db *jobstest.Database, ever int64) {
	t.Helper()
	var completed, cancelled int64
	for outcome, into := range map[string]*int64{"completed": &completed, "cancelled": &cancelled} {
		if err := db.Get(into, "SELECT COUNT(*) FROM cmsjobs_runs WHERE outcome = '"+outcome+"'"); err != nil {
			t.Fatal(err)
		}
	}
	st, err := s.Stats(bg)
	if err != nil || st.Completed != completed || st.Cancelled != cancelled {
		t.Errorf("Stats count %d completed and %d cancelled, rows are %d and %d, %v", st.Completed, st.Cancelled,
			completed, cancelled, err)
	}
	flows, err := s.Throughput(bg, 31*12, 2*time.Hour)
	var sum int64
	for _, x := range flows {
		sum += x.Completed + x.FailedAttempts
	}
	if expect := ever - 200; err != nil || sum != expect {
		t.Errorf("plots show %d runs, want %d, %v", sum, expect, err)
	}
}

// A list out of the history is read from its index in order, also in its
// middle, where the optimizer by itself prefers to sort.
func TestTheHistoryIsListedWithoutASort(t *testing.T) {
	jobstest.EachMySQL(t, testTheHistoryIsListedWithoutASort)
}

func testTheHistoryIsListedWithoutASort(t *testing.T, engine jobstest.Engine) {
	db := tablestest.Variant{Engine: engine, Layout: tables.Stock}.Database(t)
	found, err := tables.Open(bg, db.DB, tables.Options{Registry: tablestest.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	s := New(found)
	db.MustExec(`INSERT INTO cmsjobs_runs (job_id, uuid, type, queue, attempt, outcome, worker, lease, ended_at,
		duration_ms, wait_ms)
		SELECT seq, CONCAT('u', seq), ELT(1+seq%7,'a','b','c','d','e','f','g'), 'default', 1,
		IF(seq%50=0,'failed','completed'), 'w', 'x', seq*10, 5, 5 FROM ` + jobstest.Numbers(20000))
	for column, value := range map[string]string{"outcome": "completed", "type": "c", "queue": "default"} {
		list := "FROM cmsjobs_runs" + s.runsHint(column) + " WHERE " + column +
			" = ? AND ended_at <= ? AND NOT (ended_at = ? AND id >= ?) ORDER BY ended_at DESC, id DESC LIMIT 50"
		plan := map[string]any{}
		if err := db.QueryRowx("EXPLAIN SELECT id, uuid "+list, value, 100000, 100000, 10000).MapScan(
			plan); err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprintf("%s", plan); strings.Contains(text, "filesort") ||
			!strings.Contains(text, "cmsjobs_runs_"+column) {
			t.Errorf("the list by %s: %s", column, text)
		}
	}
}
