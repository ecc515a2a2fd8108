package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/doctor"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// slowPoll is the configuration of a service whose poll finds nothing during a test.
const slowPoll = "queue: {poll_first: 1h, poll: 1h, internal_rows: [cmsjobs.probe]}\nschedule: {enabled: false}\n"

// insertProbe adds a row as another program does.
func insertProbe(t *testing.T, db *jobstest.Database) {
	t.Helper()
	_, err := db.Exec(db.Rebind(`INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES
		('default', ?, 0, ?, ?)`),
		`{"type":"cmsjobs.probe","data":{}}`, time.Now().Unix(), time.Now().Unix())
	if err != nil {
		t.Fatal(err)
	}
}

// worked waits until the jobs table is empty.
func worked(t *testing.T, db *jobstest.Database, why string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var n int
		if err := db.Get(&n, "SELECT COUNT(*) FROM jobs"); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the row still waits: %s", why)
		}
	}
}

// dsnOf is what --dsn takes.
func dsnOf(db *jobstest.Database) string {
	if db.Engine == jobstest.SQLite {
		path := jobstest.SQLiteFile(db.DSN)
		return "sqlite:" + path
	}
	return db.DSN
}

// A row that another program inserts runs at once, not at the next poll.
func TestAPlainInsertRunsWithoutAPoll(t *testing.T) {
	t.Parallel()
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			db := jobstest.Open(t, engine)
			if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
				t.Fatal(err)
			}
			startService(t, slowPoll+"feed: {probe: 20ms}\n", "--dsn="+dsnOf(db))
			for range 3 {
				insertProbe(t, db)
				worked(t, db, "no look found it")
			}
		})
	}
}

// doctor names the rights that an account lacks for the binary log, also those that were
// taken away.
func TestDoctorOnRightsOfTheChangeFeed(t *testing.T) {
	t.Parallel()
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		server := jobstest.Own(t, engine, "--log-bin=log", "--server-id=1", "--binlog-format=ROW", "--sync-binlog=0")
		root := sqlx.NewDb(server.RootMySQL(t), "mysql")
		root.MustExec("CREATE DATABASE site")
		root.MustExec("CREATE USER cms@'127.0.0.1' IDENTIFIED BY 'secret'")
		root.MustExec("GRANT ALL ON site.* TO cms@'127.0.0.1'")
		site := &jobstest.Database{DB: sqlx.MustOpen("mysql", server.MySQLDSN("site")), Engine: engine, Driver: "mysql",
			DSN: server.MySQLDSN("site")}
		t.Cleanup(func() { site.Close() })
		if _, err := tables.CreateTables(t.Context(), site.DB, tables.Stock, ""); err != nil {
			t.Fatal(err)
		}
		dsn := "--dsn=" + site.DSNOf(t, "cms", "secret")
		call(t, nil, dsn, "migrate", "up")
		const grant = "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'cms'@'127.0.0.1'"
		for _, step := range []struct{ statement, says, fix string }{
			{"DO 1", "may not read the server's binary log", grant},
			{grant, "within milliseconds by the binary log", ""},
			{"REVOKE REPLICATION SLAVE, REPLICATION CLIENT ON *.* FROM 'cms'@'127.0.0.1'",
				"may not read the server's binary log", grant},
		} {
			root.MustExec(step.statement)
			f := newJobs(t, dsn)
			if f.Status != doctor.OK || !strings.Contains(f.What, step.says) || !strings.HasPrefix(f.Fix, step.fix) {
				t.Errorf("after %s: %+v", step.statement, f)
			}
		}
	})
}

// newJobs is what doctor says of how soon new jobs are noticed.
func newJobs(t *testing.T, dsn string, more ...string) doctor.Finding {
	t.Helper()
	for _, f := range answer[[]doctor.Finding](t, call(t, nil, append([]string{dsn, "--json", "doctor"}, more...)...)) {
		if f.Check == "new jobs" {
			return f
		}
	}
	t.Fatal("doctor says nothing of new jobs")
	return doctor.Finding{}
}

// doctor says which feed works and what the others need; migrate feed makes
// PostgreSQL's work.
func TestDoctorOnTheChangeFeed(t *testing.T) {
	t.Parallel()
	says := func(dsn string, more ...string) doctor.Finding { return newJobs(t, dsn, more...) }
	for engine, missing := range map[jobstest.Engine]string{
		jobstest.SQLite: "", jobstest.MariaDB: "writes no binary log", jobstest.MySQL: "writes no binary log",
		jobstest.PostgreSQL: "has no trigger"} {
		t.Run(string(engine), func(t *testing.T) {
			dsn := newDatabase(t, engine, tables.Stock)
			call(t, nil, dsn, "migrate", "up")
			f, present := says(dsn), "within milliseconds by the file events"
			if engine != jobstest.SQLite && engine != jobstest.PostgreSQL && jobstest.WritesBinaryLog(t, engine) {
				missing, present = "", "within milliseconds by the binary log" // CI's matrix has MySQL as it ships
			}
			if f.Status != doctor.OK || missing == "" && !strings.Contains(f.What, present) ||
				missing != "" && (!strings.Contains(f.What, missing) || f.Fix == "") {
				t.Errorf("%+v", f)
			}
			if off := says(dsn, "--set", "feed.mode=off"); off.Status != doctor.OK ||
				strings.Contains(off.What, "within milliseconds") {
				t.Errorf("without a feed: %+v", off)
			}
			if engine != jobstest.PostgreSQL {
				want(t, call(t, nil, dsn, "migrate", "feed"), exitUsage, "PostgreSQL")
				return
			}
			if f := says(dsn, "--set", "feed.mode=notify"); f.Status != doctor.Warn || f.Fix != "cmsjobs migrate feed" {
				t.Errorf("of a feed that was asked for: %+v", f)
			}
			want(t, call(t, nil, dsn, "migrate", "feed", "--show"), 0, "CREATE TRIGGER")
			want(t, call(t, nil, dsn, "migrate", "feed"), 0)
			if f := says(dsn); f.Status != doctor.OK ||
				!strings.Contains(f.What, "noticed within milliseconds by the NOTIFY") {
				t.Errorf("with the trigger: %+v", f)
			}
			want(t, call(t, nil, dsn, "migrate", "feed", "--drop"), 0)
			if f := says(dsn); f.Fix == "" {
				t.Errorf("without the trigger again: %+v", f)
			}
			want(t, call(t, nil, dsn, "migrate", "feed", "--replication", "--show"), 0, "CREATE PUBLICATION",
				"publish = 'insert'")
			want(t, call(t, nil, dsn, "migrate", "feed", "--replication"), 0, "The publications are there")
			if f := says(dsn); f.Status != doctor.OK || !strings.Contains(f.What, "wal_level is replica") ||
				!strings.Contains(f.Fix, "ALTER SYSTEM SET wal_level") {
				t.Errorf("with publications of a server that does not replicate: %+v", f)
			}
			want(t, call(t, nil, dsn, "migrate", "feed", "--replication", "--drop"), 0)
			if f := says(dsn); !strings.Contains(f.What, missing) {
				t.Errorf("without the publications again: %+v", f)
			}
		})
	}
}
