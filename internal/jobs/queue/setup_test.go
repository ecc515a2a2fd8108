package queue

import (
	"context"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// variants are all shapes of tables.
func variants() []tablestest.Variant {
	var list []tablestest.Variant
	for _, engine := range jobstest.Engines() {
		list = append(list, tablestest.Variant{Engine: engine, Layout: tables.Stock},
			tablestest.Variant{Engine: engine, Layout: tables.Extended},
			tablestest.Variant{Engine: engine, Layout: tables.Stock, Indexed: true})
		list = append(list, tablestest.WallClock(engine)...)
	}
	return list
}

var bg = context.Background()

const lease = tablestest.Lease

// past is embedded below the Store, whose tables are the same.
type past struct{ *history.Store }

// fixture is the queue under test, with its tables and its history.
type fixture struct {
	*Store
	past
	*tablestest.Fixture
}

func openFixture(t testing.TB, v tablestest.Variant, db *jobstest.Database) *fixture {
	t.Helper()
	f := &fixture{Fixture: tablestest.Open(t, v, db)}
	s, err := New(bg, f.Tables)
	if err != nil {
		t.Fatal(err)
	}
	f.setStore(s)
	f.past.Store = history.New(f.Tables)
	return f
}

// setStore replaces the queue under test.
func (f *fixture) setStore(s *Store) { f.Store, f.Queue = s, s }

// another is one more store on the same tables, as another process has it.
func (f *fixture) another() *Store { return open1(f.T, f.DB, f.Options()) }

func open1(t testing.TB, db *jobstest.Database, o tables.Options) *Store {
	t.Helper()
	s, err := Open(bg, db.DB, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// openRaw opens a MySQL DSN as it is.
func openRaw(t testing.TB, dsn string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
