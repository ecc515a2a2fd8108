package cli

import (
	"strings"
	"testing"
	"time"

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
		path, _, _ := strings.Cut(strings.TrimPrefix(db.DSN, "file:"), "?")
		return "sqlite:" + path
	}
	return db.DSN
}

// A row that another program inserts runs at once, not at the next poll.
func TestAPlainInsertRunsWithoutAPoll(t *testing.T) {
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

// doctor says which feed works and what the others need; migrate feed makes
// PostgreSQL's work.
func TestDoctorOnTheChangeFeed(t *testing.T) {
	says := func(dsn string, more ...string) doctor.Finding {
		for _, f := range answer[[]doctor.Finding](t,
			call(t, nil, append([]string{dsn, "--json", "doctor"}, more...)...)) {
			if f.Check == "new jobs" {
				return f
			}
		}
		t.Fatal("doctor says nothing of new jobs")
		return doctor.Finding{}
	}
	for engine, missing := range map[jobstest.Engine]string{
		jobstest.SQLite: "", jobstest.MariaDB: "writes no binary log", jobstest.MySQL: "writes no binary log",
		jobstest.PostgreSQL: "has no trigger"} {
		t.Run(string(engine), func(t *testing.T) {
			dsn := newDatabase(t, engine, tables.Stock)
			call(t, nil, dsn, "migrate", "up")
			f := says(dsn)
			if f.Status != doctor.OK || missing == "" &&
				!strings.Contains(f.What, "within milliseconds by the file events") ||
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
