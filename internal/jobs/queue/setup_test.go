package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/migrations"
)

// types that the tests know.
var (
	plainKind    = jobs.Kind[json.RawMessage]{Name: "test.plain"}
	limitedKind  = jobs.Kind[json.RawMessage]{Name: "test.limited", Policy: jobs.Policy{Limit: 2}}
	oftenKind    = jobs.Kind[json.RawMessage]{Name: "test.often", Policy: jobs.Policy{MaxAttempts: 100_000}}
	coalesceKind = jobs.Kind[json.RawMessage]{Name: "test.coalesce", Policy: jobs.Policy{Coalesce: true}}
)

func registry() *jobs.Registry {
	r := jobs.NewRegistry()
	never := func(context.Context, jobs.Job, json.RawMessage) error { return nil }
	jobs.Handle(r, plainKind, never)
	jobs.Handle(r, limitedKind, never)
	jobs.Handle(r, oftenKind, never)
	jobs.Handle(r, coalesceKind, never)
	return r
}

// variant is one way in which the tables of a CMS may look.
type variant struct {
	engine jobstest.Engine
	layout tables.Layout
	mode   tables.Mode
	// indexed adds the offered index; wall makes the times DATETIME; old leaves
	// failed_jobs.uuid out.
	indexed, wall, old bool
}

func (v variant) String() string {
	name := fmt.Sprintf("%s-%s-%s", v.engine, v.layout, v.mode)
	for word, on := range map[string]bool{"indexed": v.indexed} {
		if on {
			name += "-" + word
		}
	}
	if v.wall {
		name += "-wall"
	}
	if v.old {
		name += "-old"
	}
	return name
}

func variants() []variant {
	var list []variant
	for _, engine := range jobstest.Engines() {
		for _, mode := range []tables.Mode{tables.Skip, tables.CAS} {
			list = append(list, variant{engine: engine, layout: tables.Stock, mode: mode}, variant{engine: engine, layout: tables.Extended, mode: mode},
				variant{engine: engine, layout: tables.Stock, mode: mode, indexed: true})
		}
		list = append(list, variant{engine: engine, layout: tables.Stock, mode: tables.Auto, wall: true, old: true}, variant{engine: engine, layout: tables.Stock, mode: tables.CAS, wall: true, indexed: true})
	}
	return list
}

var bg = context.Background()

// clock is the database's clock in tests that must move it.
type clock struct{ ahead, lengths time.Duration }

func (c *clock) now() time.Time { return time.Now().Add(c.ahead) }

// elapsed is the clock that measures lengths: a test moves it to make sweeps due.
func (c *clock) elapsed() time.Time { return time.Now().Add(c.lengths) }

// past is embedded below the Store, whose tables are the same.
type past struct{ *history.Store }

type fixture struct {
	*Store
	past
	t     testing.TB
	db    *jobstest.Database
	v     variant
	clock *clock
}

// connect opens a database of the variant's shape.
func (v variant) database(t testing.TB) *jobstest.Database {
	t.Helper()
	raw := jobstest.Open(t, v.engine)
	dsn := raw.DSN
	db, err := database.Connect(context.Background(), database.ConnectOptions{DSN: dsn, MaxConnections: 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	raw.DB = db
	if err := migrations.Up(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	v.tables(t, raw)
	return raw
}

// tables makes jobs and failed_jobs as the variant has them.
func (v variant) tables(t testing.TB, db *jobstest.Database) {
	t.Helper()
	if v.wall {
		text := map[bool]string{true: "LONGTEXT", false: "TEXT"}[v.engine.IsMySQL()]
		kind, id := "DATETIME", map[jobstest.Engine]string{jobstest.SQLite: "INTEGER PRIMARY KEY AUTOINCREMENT", jobstest.MariaDB: "BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY", jobstest.MySQL: "BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY", jobstest.PostgreSQL: "BIGSERIAL PRIMARY KEY"}[v.engine]
		if v.engine == jobstest.PostgreSQL {
			kind = "TIMESTAMP(0)"
			if v.indexed {
				kind = "TIMESTAMPTZ"
			}
		}
		if v.engine.IsMySQL() && v.indexed {
			kind = "TIMESTAMP"
		}
		db.MustExec(fmt.Sprintf("CREATE TABLE jobs (id %s, queue VARCHAR(255) NOT NULL, payload %s NOT NULL, attempts SMALLINT NOT NULL, reserved_at %s NULL, available_at %s NULL, created_at %s NULL)", id, text, kind, kind, kind))
		if v.old {
			db.MustExec(fmt.Sprintf("CREATE TABLE failed_jobs (id %s, connection TEXT NOT NULL, queue TEXT NOT NULL, payload %s NOT NULL, exception TEXT NOT NULL, failed_at %s NULL)", id, text, kind))
		}
	}
	if _, err := tables.CreateTables(context.Background(), db.DB, v.layout, ""); err != nil {
		t.Fatal(err)
	}
	if v.indexed {
		s := open1(t, db, tables.Options{Registry: registry(), Mode: v.mode})
		if err := s.AddIndex(context.Background()); err != nil {
			t.Fatal(err)
		}
		if s.Describe().OrderedIndex == "" {
			t.Fatal("the added index is not seen")
		}
	}
}

func open1(t testing.TB, db *jobstest.Database, o tables.Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), db.DB, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fixture opens a store on emptied tables.
func (v variant) fixture(t testing.TB, db *jobstest.Database) *fixture {
	t.Helper()
	for _, table := range []string{"jobs", "failed_jobs", "cmsjobs_runs", "cmsjobs_throughput", "cmsjobs_workers", "cmsjobs_job_logs", "cmsjobs_unique", "cmsjobs_permits", "cmsjobs_paused", "cmsjobs_control_signals", "cmsjobs_cancels"} {
		db.MustExec("DELETE FROM " + table)
	}
	f := &fixture{t: t, v: v, db: db, clock: &clock{}}
	f.Store = f.another()
	f.past.Store = history.New(f.Tables)
	return f
}

// another is one more store on the same tables, as another process has it.
func (f *fixture) another() *Store {
	return open1(f.t, f.db, tables.Options{Registry: registry(), Mode: f.v.mode, DatabaseClock: f.clock.now, Clock: f.clock.elapsed})
}

func (f *fixture) enqueue(list ...jobs.Spec) []jobs.Receipt {
	f.t.Helper()
	receipts, err := f.Enqueue(context.Background(), list...)
	if err != nil {
		f.t.Fatal(err)
	}
	return receipts
}

const lease = 30 * time.Second

// claim takes what is there. A second look finds what a sweep must find.
func (f *fixture) claim(limit int, queues ...string) []jobs.Claimed {
	return f.claimBy(f.Store, limit, queues...)
}

func (f *fixture) claimBy(s *Store, limit int, queues ...string) []jobs.Claimed {
	f.t.Helper()
	if len(queues) == 0 {
		queues = []string{"default"}
	}
	var all []jobs.Claimed
	for range 3 {
		got, err := s.Claim(context.Background(), jobs.ClaimRequest{Worker: "host:1:x", Queues: queues, Limit: limit - len(all), Lease: lease})
		if err != nil {
			f.t.Fatal(err)
		}
		if all = append(all, got...); len(all) >= limit {
			break
		}
		f.clock.lengths += time.Minute // a sweep is due
	}
	return all
}

func (f *fixture) settle(ends ...jobs.Settlement) []error {
	f.t.Helper()
	errs, err := f.Settle(context.Background(), ends)
	if err != nil {
		f.t.Fatal(err)
	}
	return errs
}

func end(c jobs.Claimed, v jobs.Outcome) jobs.Settlement {
	return jobs.Settlement{Claimed: c, Outcome: v, Worker: "host:1:x", Duration: 20 * time.Millisecond, Wait: time.Second, Error: map[bool]string{true: "it broke\nat line 3"}[v == jobs.Retried || v == jobs.Failed]}
}

func (f *fixture) count(query string, args ...any) int {
	f.t.Helper()
	var n int
	if _, err := f.QueryRow(context.Background(), f.db.DB, []any{&n}, query, args...); err != nil {
		f.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// insertRaw writes a row as a CMS does.
func (f *fixture) insertRaw(queue, payload string) {
	f.t.Helper()
	t := f.Store.Layout.Table()
	ctx := context.Background()
	var err error
	if f.v.layout == tables.Extended {
		_, err = f.Exec(ctx, f.db.DB, "INSERT INTO jobs (queue, name, payload_json, run_at, created_at) VALUES (?, '', ?, "+t.Due.FromExpr(f.SecondsNow())+", "+t.Created.FromExpr(f.SecondsNow())+")", queue, payload)
	} else {
		_, err = f.Exec(ctx, f.db.DB, "INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES (?, ?, 0, "+t.Due.FromExpr(f.SecondsNow())+", "+t.Created.FromExpr(f.SecondsNow())+")", queue, payload)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func job(data string) jobs.Spec { return plainKind.New(json.RawMessage(data)) }

// jobstestOpen opens a MySQL DSN as it is.
func jobstestOpen(t testing.TB, dsn string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
