package queue

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// Many processes open a CMS's fresh database at the same moment, while the CMS
// reads it: turning it to WAL needs the file alone for an instant, and SQLite
// does not wait for that by itself.
func TestManyOpenAFreshSQLiteDatabaseAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cms.sqlite")
	cms, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer cms.Close()
	if _, err := cms.Exec(
		"CREATE TABLE pages (id INTEGER PRIMARY KEY); INSERT INTO pages VALUES (1), (2)"); err != nil {
		t.Fatal(err)
	}
	reading, err := cms.Query("SELECT id FROM pages") // holds its lock until it is closed
	if err != nil || !reading.Next() {
		t.Fatal(err)
	}
	time.AfterFunc(300*time.Millisecond, func() { reading.Close() })
	var openers sync.WaitGroup
	for i := range 12 {
		openers.Go(func() {
			db, err := database.Connect(context.Background(), database.ConnectOptions{DSN: "sqlite:" + path})
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			if _, err := db.Exec(fmt.Sprintf("INSERT INTO pages VALUES (%d)", 10+i)); err != nil {
				t.Error(err)
			}
			var mode string
			if err := db.Get(&mode, "PRAGMA journal_mode"); err != nil || mode != "wal" {
				t.Error(mode, err)
			}
		})
	}
	openers.Wait()
}

// A settlement asks for the store's lock inside of its transaction, for which
// a claim of a limited type waits on SQLite: the claim may not hold the lock.
func TestAClaimOfALimitedKindWaitsWithoutTheStoresLock(t *testing.T) {
	v := tablestest.Variant{Engine: jobstest.SQLite, Layout: tables.Stock}
	f := openFixture(t, v, v.Database(t))
	ctx := context.Background()
	settling, err := f.DB.DB.BeginTxx(ctx, nil) // SQLite's one writer
	if err != nil {
		t.Fatal(err)
	}
	asked, made := f.tables.Statements(), make(chan error, 1)
	go func() { made <- f.ensurePermits(ctx, permitSet{name: tablestest.Limited.Name, size: 2}) }()
	for f.tables.Statements() == asked {
		runtime.Gosched()
	}
	locked := make(chan struct{})
	go func() { f.forgetUnclear(nil); close(locked) }()
	select {
	case <-locked:
	case <-time.After(30 * time.Second):
		t.Error("the settlement waits for the claim, which waits for the settlement")
	}
	if err := settling.Rollback(); err != nil {
		t.Error(err)
	}
	if err := <-made; err != nil {
		t.Error(err)
	}
}
