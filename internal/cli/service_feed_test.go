package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// slowPoll is the configuration of a service whose poll finds nothing during a test.
const slowPoll = "queue: {poll_first: 1h, poll: 1h, internal_rows: [cmsjobs.probe]}\nschedule: {enabled: false}\n"

// insertProbe adds a row as another program does.
func insertProbe(t *testing.T, db *jobstest.Database) {
	t.Helper()
	_, err := db.Exec(db.Rebind(`INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES ('default', ?, 0, ?, ?)`),
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
