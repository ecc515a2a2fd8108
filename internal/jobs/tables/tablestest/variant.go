package tablestest

import (
	"context"
	"fmt"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/migrations"
)

// Variant is one way in which the tables of a CMS may look.
type Variant struct {
	Engine jobstest.Engine
	Layout tables.Layout
	// Indexed adds the offered index; Wall makes the times DATETIME; Old leaves
	// failed_jobs.uuid out.
	Indexed, Wall, Old bool
}

func (v Variant) String() string {
	name := fmt.Sprintf("%s-%s", v.Engine, v.Layout)
	for _, option := range []struct {
		word string
		on   bool
	}{{"-indexed", v.Indexed}, {"-wall", v.Wall}, {"-old", v.Old}} {
		if option.on {
			name += option.word
		}
	}
	return name
}

// WallClock are the variants of an engine whose times are wall clocks.
func WallClock(engine jobstest.Engine) []Variant {
	return []Variant{
		{Engine: engine, Layout: tables.Stock, Wall: true, Old: true},
		{Engine: engine, Layout: tables.Stock, Wall: true, Indexed: true},
	}
}

// Database opens an empty database with the variant's tables.
func (v Variant) Database(t testing.TB) *jobstest.Database {
	t.Helper()
	raw := jobstest.Open(t, v.Engine)
	db, err := database.Connect(context.Background(), database.ConnectOptions{DSN: raw.DSN, MaxConnections: 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	raw.DB = db
	if err := migrations.Up(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	v.createTables(t, raw)
	return raw
}

// createTables makes jobs and failed_jobs as the variant has them.
func (v Variant) createTables(t testing.TB, db *jobstest.Database) {
	t.Helper()
	if v.Wall {
		v.createWallClock(db)
	}
	if _, err := tables.CreateTables(context.Background(), db.DB, v.Layout, ""); err != nil {
		t.Fatal(err)
	}
	if !v.Indexed {
		return
	}
	db.MustExec(open(t, db, tables.Options{Registry: Registry()}).OfferIndex())
	if open(t, db, tables.Options{Registry: Registry()}).Describe().OrderedIndex == "" {
		t.Fatal("the added index is not seen")
	}
}

// createWallClock makes the tables of a program that writes times as text.
func (v Variant) createWallClock(db *jobstest.Database) {
	text, moment, id := "TEXT", "DATETIME", "INTEGER PRIMARY KEY AUTOINCREMENT"
	switch {
	case v.Engine.IsMySQL():
		text, id = "LONGTEXT", "BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY"
		if v.Indexed {
			moment = "TIMESTAMP"
		}
	case v.Engine == jobstest.PostgreSQL:
		moment, id = "TIMESTAMP(0)", "BIGSERIAL PRIMARY KEY"
		if v.Indexed {
			moment = "TIMESTAMPTZ"
		}
	}
	db.MustExec(fmt.Sprintf("CREATE TABLE jobs (id %s, queue VARCHAR(255) NOT NULL, payload %s NOT NULL, attempts "+
		"SMALLINT NOT NULL, "+
		"reserved_at %s NULL, available_at %s NULL, created_at %s NULL)", id, text, moment, moment, moment))
	if v.Old {
		db.MustExec(fmt.Sprintf("CREATE TABLE failed_jobs (id %s, connection TEXT NOT NULL, queue TEXT NOT NULL, "+
			"payload %s NOT NULL, "+
			"exception TEXT NOT NULL, failed_at %s NULL)", id, text, moment))
	}
}
