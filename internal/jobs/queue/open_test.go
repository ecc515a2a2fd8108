package queue

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
	"github.com/cmsjobs/cmsjobs/migrations"
)

func TestOpenSaysWhatIsMissing(t *testing.T) {
	ctx := context.Background()
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			db := jobstest.Migrated(t, engine)
			try := func(want string, o tables.Options) {
				t.Helper()
				o.Registry = tablestest.Registry()
				if _, err := Open(ctx, db.DB, o); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
			}
			try("no table jobs", tables.Options{})
			try("no table wp_jobs", tables.Options{Prefix: "wp_"})
			try("letters, digits", tables.Options{Prefix: "x; DROP"})
			db.MustExec("CREATE TABLE jobs (id INTEGER PRIMARY KEY, queue VARCHAR(10), payload TEXT, attempts INTEGER)")
			try("lacks the columns reserved_at, available_at, created_at", tables.Options{})
			db.MustExec("DROP TABLE jobs")
			db.MustExec("CREATE TABLE jobs (id INTEGER PRIMARY KEY, queue VARCHAR(10), payload_json TEXT, status " +
				"VARCHAR(10), attempts INTEGER)")
			try("lacks the columns name, priority", tables.Options{})
			db.MustExec("DROP TABLE jobs")
			for range 2 { // making them twice is harmless
				if _, err := tables.CreateTables(ctx, db.DB, tables.Stock, ""); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Open(ctx, db.DB, tables.Options{Registry: tablestest.Registry()}); err != nil {
				t.Error(err)
			}
			db.MustExec("DROP TABLE cmsjobs_control_signals")
			try("cmsjobs migrate up", tables.Options{})
		})
	}
}

// MariaDB writes the lines of one statement at a time: they are to be few.
func TestMariaDBHoldsHalfAsManyJobsAhead(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			s := open1(t, tablestest.Variant{Engine: engine, Layout: tables.Stock}.Database(t),
				tables.Options{Registry: tablestest.Registry()})
			want := 256
			if engine == jobstest.MariaDB {
				want = 128
			}
			if got := s.LeastAhead(); got != want {
				t.Errorf("%d jobs are claimed ahead at least, want %d", got, want)
			}
		})
	}
}

func TestAPrefixIsHonoured(t *testing.T) {
	db := jobstest.Migrated(t, jobstest.SQLite)
	if made, err := tables.CreateTables(context.Background(), db.DB, tables.Extended, "cms_"); err != nil ||
		fmt.Sprint(made) != "[cms_jobs cms_failed_jobs]" {
		t.Fatal(made, err)
	}
	s := open1(t, db, tables.Options{Registry: tablestest.Registry(), Prefix: "cms_"})
	if _, err := s.Enqueue(context.Background(), tablestest.Job(`1`)); err != nil {
		t.Fatal(err)
	}
	if d := s.Describe(); d.Layout != tables.Extended || d.Table != "cms_jobs" || d.OrderedIndex == "" {
		t.Errorf("%+v", d)
	}
}

func TestConnectionsThatCountChangedRowsAreRefused(t *testing.T) {
	jobstest.EachMySQL(t, testConnectionsThatCountChangedRowsAreRefused)
}

func testConnectionsThatCountChangedRowsAreRefused(t *testing.T, engine jobstest.Engine) {
	v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
	db := v.Database(t)
	bare := *db
	bare.DB = openRaw(t, strings.Replace(db.DSN, "clientFoundRows=true", "clientFoundRows=false", 1))
	if _, err := Open(context.Background(), bare.DB, tables.Options{Registry: tablestest.Registry()}); err == nil ||
		!strings.Contains(err.Error(), "clientFoundRows") {
		t.Errorf("%v", err)
	}
}

// A table whose engine knows no transactions is worked row by row.
func TestAnEngineWithoutTransactions(t *testing.T) {
	jobstest.EachMySQL(t, testAnEngineWithoutTransactions)
}

func testAnEngineWithoutTransactions(t *testing.T, engine jobstest.Engine) {
	v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
	db := v.Database(t)
	db.MustExec("ALTER TABLE jobs MODIFY queue VARCHAR(100) NOT NULL, ENGINE = MyISAM")
	var name, enforced string
	if err := db.QueryRow("SHOW GLOBAL VARIABLES LIKE 'enforce_gtid_consistency'").Scan(&name,
		&enforced); err == nil && enforced == "ON" {
		refusedUnderGTIDs(t, db) // a server that the environment names
		return
	}
	f := openFixture(t, v, db)
	if d := f.Describe(); d.Transactional {
		t.Errorf("%+v", d)
	}
	f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`), tablestest.Job(`3`))
	got := f.MustClaim(3)
	if len(got) != 3 {
		t.Fatalf("%d claimed", len(got))
	}
	lost := got[1]
	lost.Lease.Attempt = 9
	errs := f.MustSettle(tablestest.End(got[0], jobs.Completed), tablestest.End(lost, jobs.Completed),
		tablestest.End(got[2], jobs.Failed))
	if errs[0] != nil || errs[1] == nil || errs[2] != nil {
		t.Error(errs)
	}
}

// Where the server enforces GTID consistency, a job on a table without transactions
// could be run but not settled, so the store does not open.
func TestAnEngineWithoutTransactionsUnderGTIDs(t *testing.T) {
	server := jobstest.OwnMySQL(t, "--gtid-mode=ON", "--enforce-gtid-consistency=ON")
	root := server.RootMySQL(t)
	if _, err := root.Exec("CREATE DATABASE site"); err != nil {
		t.Fatal(err)
	}
	db, err := database.Connect(t.Context(), database.ConnectOptions{DSN: server.MySQLDSN("site")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := migrations.Up(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := tables.CreateTables(t.Context(), db, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	db.MustExec("ALTER TABLE jobs MODIFY queue VARCHAR(100) NOT NULL, ENGINE = MyISAM")
	refusedUnderGTIDs(t, &jobstest.Database{DB: db, Engine: jobstest.MySQL})
	db.MustExec("ALTER TABLE jobs ENGINE = InnoDB")
	if _, err := Open(t.Context(), db, tables.Options{Registry: tablestest.Registry()}); err != nil {
		t.Errorf("with InnoDB: %v", err)
	}
}

func refusedUnderGTIDs(t *testing.T, db *jobstest.Database) {
	t.Helper()
	_, err := Open(t.Context(), db.DB, tables.Options{Registry: tablestest.Registry()})
	if err == nil || !strings.Contains(err.Error(), "enforce_gtid_consistency") ||
		!strings.Contains(err.Error(), "ENGINE=InnoDB") {
		t.Errorf("opening jobs with MyISAM under GTIDs: %v", err)
	}
}

// Non-strict servers keep 255 without a word, strict ones refuse 256; columns
// of newer Laravels are smallint.
func TestAttemptsColumns(t *testing.T) { jobstest.EachMySQL(t, testAttemptsColumns) }

func testAttemptsColumns(t *testing.T, engine jobstest.Engine) {
	for _, strict := range []string{"STRICT_TRANS_TABLES", ""} {
		for column, limit := range map[string]int{"TINYINT UNSIGNED": 255, "SMALLINT UNSIGNED": 65535} {
			t.Run(column+strict, func(t *testing.T) {
				v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
				db := v.Database(t)
				db.MustExec("ALTER TABLE jobs MODIFY attempts " + column + " NOT NULL")
				db.SetMaxOpenConns(1)
				db.MustExec("SET SESSION sql_mode = '" + strict + "'")
				f := openFixture(t, v, db)
				if d := f.Describe(); d.AttemptsLimit != limit {
					t.Fatalf("the limit is read as %d", d.AttemptsLimit)
				}
				for _, attempts := range []int{limit - 1, limit} {
					f.InsertRaw("default", fmt.Sprintf(`{"type":"test.often","maxTries":%d}`, limit+500))
					db.MustExec("UPDATE jobs SET attempts = ?", attempts)
					got := f.MustClaim(1)
					if len(got) != 1 || (got[0].Fault != nil) != (attempts == limit) {
						t.Fatalf("at %d attempts: %+v", attempts, got)
					}
					outcome := jobs.Completed
					if got[0].Fault != nil {
						outcome = jobs.Failed
					}
					if err := f.MustSettle(tablestest.End(got[0], outcome))[0]; err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// The clock of a worker's host decides nothing.
func TestTheDatabasesClockDecides(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		db := tablestest.Variant{Engine: engine, Layout: tables.Stock}.Database(t)
		s := open1(t, db, tables.Options{Registry: tablestest.Registry(), Clock: func() time.Time {
			return time.Now().Add(48 * time.Hour)
		}})
		if _, err := s.Enqueue(context.Background(), tablestest.Job(`"later"`).In(time.Hour),
			tablestest.Job(`"now"`)); err != nil {
			t.Fatal(err)
		}
		got, err := s.Claim(context.Background(), jobs.ClaimRequest{Queues: []string{"default"}, Limit: 5,
			Lease: lease})
		if err != nil || len(got) != 1 || string(got[0].Job.Data) != `"now"` {
			t.Errorf("%s: %+v, %v", engine, got, err)
		}
		if since := time.Since(got[0].Job.EnqueuedAt).Abs(); since > time.Minute {
			t.Errorf("%s: enqueued %v ago", engine, since)
		}
	}
}

// Laravel's own test of a row: reserved_at <= now - 90.
func TestAPHPWorkerRespectsOurLease(t *testing.T) {
	jobstest.EachMySQL(t, testAPHPWorkerRespectsOurLease)
}

func testAPHPWorkerRespectsOurLease(t *testing.T, engine jobstest.Engine) {
	v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
	db := v.Database(t)
	s := open1(t, db, tables.Options{Registry: tablestest.Registry()})
	ctx := context.Background()
	for _, length := range []time.Duration{30 * time.Second, 90 * time.Second, 300 * time.Second} {
		db.MustExec("DELETE FROM jobs")
		if _, err := s.Enqueue(ctx, tablestest.Job(`1`)); err != nil {
			t.Fatal(err)
		}
		got, err := s.Claim(ctx, jobs.ClaimRequest{Queues: []string{"default"}, Limit: 1, Lease: length})
		for err == nil && len(got) == 0 { // put there behind the floor: a sweep finds it
			got, err = s.Claim(ctx, jobs.ClaimRequest{Queues: []string{"default"}, Limit: 1, Lease: length})
		}
		if err != nil {
			t.Fatal(err)
		}
		free := func(after time.Duration) int {
			var n int
			if err := db.Get(&n, "SELECT COUNT(*) FROM jobs WHERE reserved_at IS NULL OR reserved_at <= "+
				"UNIX_TIMESTAMP() + ? - 90", int(after.Seconds())); err != nil {
				t.Fatal(err)
			}
			return n
		}
		if free(length-20*time.Second) != 0 || free(length+time.Second) != 1 {
			t.Errorf("a lease of %v: PHP may take the row after %v: %d, after its end: %d", length,
				length-20*time.Second, free(length-20*time.Second), free(length+time.Second))
		}
	}
}

// Our tables in a separate database.
func TestOwnDatabase(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		cms, own := jobstest.Open(t, engine), jobstest.Migrated(t, engine)
		if _, err := tables.CreateTables(context.Background(), cms.DB, tables.Stock, ""); err != nil {
			t.Fatal(err)
		}
		s := open1(t, cms, tables.Options{Registry: tablestest.Registry(), OwnDB: own.DB})
		f := &fixture{Store: s, Fixture: &tablestest.Fixture{T: t, DB: own, Clock: &tablestest.Clock{},
			Tables: s.tables, Queue: s}}
		ctx := context.Background()
		r := f.MustEnqueue(tablestest.Job(`1`).Unique("k"), tablestest.Limited.New([]byte(`2`)))
		if again := f.MustEnqueue(tablestest.Job(`1`).Unique("k"))[0]; !again.Existing || again.ID != r[0].ID {
			t.Errorf("%s: %+v", engine, again)
		}
		got, err := s.Claim(ctx, jobs.ClaimRequest{Queues: []string{"default"}, Limit: 5, Lease: lease})
		if err != nil || len(got) != 2 {
			t.Fatalf("%s: %d, %v", engine, len(got), err)
		}
		f.MustSettle(tablestest.End(got[0], jobs.Completed), tablestest.End(got[1], jobs.Failed))
		if n := f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs"); n != 2 {
			t.Errorf("%s: %d runs", engine, n)
		}
		var left int
		if err := cms.Get(&left, "SELECT COUNT(*) FROM jobs"); err != nil || left != 0 {
			t.Errorf("%s: %d jobs left, %v", engine, left, err)
		}
	}
}

// No claim sorts, and none locks more than what it takes: a sort locked every
// waiting row of the queue where the specification's own statement ran.
func TestAClaimNeitherSortsNorLocksTheQueue(t *testing.T) {
	jobstest.EachMySQL(t, testAClaimNeitherSortsNorLocksTheQueue)
}

// neverSorts fails if the server sorts for a statement.
func (f *fixture) neverSorts(statement string, args ...any) {
	f.T.Helper()
	rows, err := f.DB.Queryx("EXPLAIN "+statement, args...)
	if err != nil {
		f.T.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		plan := map[string]any{}
		if err := rows.MapScan(plan); err != nil {
			f.T.Fatal(err)
		}
		if text := fmt.Sprintf("%s", plan); strings.Contains(text, "filesort") {
			f.T.Errorf("the claim sorts: %s", text)
		}
	}
}

func testAClaimNeitherSortsNorLocksTheQueue(t *testing.T, engine jobstest.Engine) {
	ctx := context.Background()
	for _, v := range []tablestest.Variant{{Layout: tables.Stock}, {Layout: tables.Stock, Indexed: true},
		{Layout: tables.Extended}, {Layout: tables.Extended, Old: true}} {
		v.Engine = engine
		t.Run(v.String(), func(t *testing.T) {
			db := v.Database(t)
			if v.Old { // the specification's own indexes only
				db.MustExec("DROP INDEX idx_queue_status_priority_run ON jobs")
			}
			f := openFixture(t, v, db)
			f.fill(3000, func(i int) jobs.Spec { return tablestest.Job(fmt.Sprint(i)) })
			got := f.MustClaim(20)
			l := f.cursorOf("default", 0)
			look := f.between(l, l.lowWater, tables.RowPosition{}, f.Store.tables.Layout.Waiting(), 20)
			f.neverSorts(f.tables.Reading(look), look.Args...)
			look.Cursor = &tables.Cursor{Name: l.name, Queue: l.queue} // beside the cursor, as of an idle queue
			args := append([]any{l.queue, l.name}, look.Args...)
			if f.tables.OrderedByTime() {
				args = args[1:]
			}
			f.neverSorts(f.tables.Reading(look), args...)
			x, err := f.tables.Begin(ctx, f.Store.tables.DB)
			if err != nil {
				t.Fatal(err)
			}
			defer tables.Rollback(x)
			found, _, err := f.tables.ReadCandidates(ctx, x, f.between(l, tables.RowPosition{}, tables.RowPosition{},
				f.Store.tables.Layout.Waiting(), 20))
			if err != nil || len(found) != 20 {
				t.Fatal(len(found), err)
			}
			if err := f.compareAndSet(ctx, x, found, f.tables.LeaseMark(f.Clock.Now().Unix(), 30), "w/00"); err != nil {
				t.Fatal(err)
			}
			var connection, locked int
			if _, err := f.tables.QueryRow(ctx, x, []any{&connection}, "SELECT CONNECTION_ID()"); err != nil {
				t.Fatal(err)
			}
			// A site's account has no PROCESS right, which the server's own tables ask.
			if err := db.Root(t).Get(&locked, "SELECT trx_rows_locked FROM information_schema.innodb_trx WHERE "+
				"trx_mysql_thread_id = ?", connection); err != nil || locked == 0 || locked > 2*len(got) {
				t.Errorf("claiming %d jobs locks %d rows, %v", len(found), locked, err)
			}
		})
	}
}
