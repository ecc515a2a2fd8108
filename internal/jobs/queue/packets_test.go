package queue

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// proxied is the fixture's store behind a proxy, which counts its round trips.
func (f *fixture) proxied(t *testing.T) *jobstest.Proxy {
	t.Helper()
	port := jobstest.Shared(t, f.v.engine).Port
	proxy := jobstest.NewProxy(t, port)
	db, err := database.Connect(bg, database.ConnectOptions{DSN: strings.Replace(f.db.DSN, fmt.Sprint(":", port), fmt.Sprint(":", proxy.Port), 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	f.Store = open1(t, &jobstest.Database{DB: db}, tables.Options{Registry: registry(), Mode: f.v.mode, DatabaseClock: f.clock.now, Clock: f.clock.elapsed})
	return proxy
}

// Each thing that a worker does takes MySQL no more round trips than MariaDB, and
// the end of runs takes one.
func TestMySQLTakesNoMoreRoundTripsThanMariaDB(t *testing.T) {
	for _, v := range []variant{{layout: tables.Stock, mode: tables.Skip}, {layout: tables.Extended, mode: tables.CAS}} {
		taken := map[jobstest.Engine]map[string]int64{}
		for _, v.engine = range jobstest.MySQLs() {
			t.Run(v.String(), func(t *testing.T) { taken[v.engine] = v.fixture(t, v.database(t)).roundTrips(t) })
		}
		for what, n := range taken[jobstest.MySQL] {
			if maria := taken[jobstest.MariaDB][what]; n > maria {
				t.Errorf("%s: %s takes MySQL %d round trips and MariaDB %d", v, what, n, maria)
			}
		}
		for engine, of := range taken {
			for _, what := range []string{"settle one", "settle eleven", "settle and claim"} {
				if of[what] != 1 {
					t.Errorf("%s, %s: %s takes %d round trips, want 1", engine, v.layout, what, of[what])
				}
			}
		}
	}
}

func (f *fixture) roundTrips(t *testing.T) map[string]int64 {
	proxy := f.proxied(t)
	taken := map[string]int64{}
	count := func(what string, do func()) {
		before := proxy.Commands()
		do()
		taken[what] = proxy.Commands() - before
	}
	f.enqueue(job(`1`), job(`2`), job(`3`))
	held := f.claimOnce(t, 1)
	f.lane("default", 0).next = f.Options.Clock().Add(time.Hour)
	f.classesOf("default").next = f.Options.Clock().Add(time.Hour)
	_, held = f.relay(end(held[0], jobs.Completed)) // what is asked once is asked
	if len(held) != 1 {
		t.Fatal("no job was claimed along")
	}
	count("settle and claim", func() { _, held = f.relay(end(held[0], jobs.Completed)) })
	if len(held) != 1 {
		t.Fatal("no job was claimed along")
	}
	count("settle one", func() { f.settle(end(held[0], jobs.Completed)) })
	f.lane("default", 0).next = time.Time{}
	f.classesOf("default").next = time.Time{}
	ten := make([]jobs.Spec, 10)
	for i := range ten {
		ten[i] = job(`1`)
	}
	count("enqueue one", func() { f.enqueue(job(`1`)) })
	count("enqueue ten", func() { f.enqueue(ten...) })
	count("enqueue a named one", func() { f.enqueue(job(`1`).Named("a-name")) })
	f.enqueue(ten...)
	f.clock.lengths += time.Minute
	count("claim one", func() { held = f.claimOnce(t, 1) })
	f.clock.lengths += time.Minute
	count("claim twelve", func() { held = append(held, f.claimOnce(t, 12)...) })
	if len(held) != 13 {
		t.Fatalf("%d are claimed, want 13", len(held))
	}
	leases := make([]jobs.Lease, len(held))
	for i, c := range held {
		leases[i] = c.Lease
	}
	count("renew", func() {
		var err error
		if leases, err = f.Renew(bg, leases, lease); err != nil {
			t.Error(err)
		}
	})
	for i := range held {
		held[i].Lease = leases[i]
	}
	count("retry", func() { f.settle(end(held[0], jobs.Retried)) })
	count("bury", func() { f.settle(end(held[1], jobs.Failed)) })
	var ends []jobs.Settlement
	for _, c := range held[2:] {
		ends = append(ends, end(c, jobs.Completed))
	}
	count("settle eleven", func() { f.settle(ends...) })
	if n := f.count("SELECT COUNT(*) FROM cmsjobs_runs WHERE outcome = 'completed'"); n != 14 {
		t.Errorf("%d runs are completed, want 14", n)
	}
	t.Log(taken)
	return taken
}

func (f *fixture) claimOnce(t *testing.T, limit int) []jobs.Claimed {
	t.Helper()
	got, err := f.Claim(bg, jobs.ClaimRequest{Worker: "host:1:x", Queues: []string{"default"}, Limit: limit, Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A statement in the middle of the round trip that settles is refused: nothing of
// it remains, no lock is held, and the next settlement writes it once.
func TestASettlementThatFailsHalfWayIsUndone(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		v := variant{engine: engine, layout: tables.Stock, mode: tables.Skip}
		f := v.fixture(t, v.database(t))
		for _, table := range []string{"cmsjobs_runs", "cmsjobs_unique"} {
			t.Run(table, func(t *testing.T) {
				f.db.MustExec("DELETE FROM cmsjobs_runs")
				f.enqueue(job(`1`), job(`2`))
				held := f.claim(2)
				ends := []jobs.Settlement{end(held[0], jobs.Completed), end(held[1], jobs.Completed)}
				f.db.MustExec("RENAME TABLE " + table + " TO away")
				_, err := f.Settle(bg, ends)
				f.db.MustExec("RENAME TABLE away TO " + table)
				if database.Classify(err) != database.Schema {
					t.Fatalf("without %s: %v", table, err)
				}
				tx := f.db.MustBegin()
				var free int
				if err := tx.Get(&free, "SELECT COUNT(*) FROM (SELECT id FROM jobs FOR UPDATE) held"); err != nil || free != 2 {
					t.Errorf("%d jobs are there unlocked, want 2: %v", free, err)
				}
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
				if n := f.count("SELECT COUNT(*) FROM cmsjobs_runs"); n != 0 {
					t.Errorf("%d runs are written, want none", n)
				}
				for _, err := range f.settle(ends...) {
					if err != nil {
						t.Error(err)
					}
				}
				if rows, runs := f.count("SELECT COUNT(*) FROM jobs"), f.count("SELECT COUNT(*) FROM cmsjobs_runs"); rows != 0 || runs != 2 {
					t.Errorf("%d jobs, %d runs; want 0, 2", rows, runs)
				}
			})
		}
	})
}

// A person ends the statement, or the connection, while the settlement waits for a
// lock: its outcome is unclear, and written again it is there once.
func TestAKilledSettlementIsWrittenOnce(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		v := variant{engine: engine, layout: tables.Stock, mode: tables.Skip}
		f := v.fixture(t, v.database(t))
		for _, kill := range []string{"KILL QUERY", "KILL"} {
			t.Run(kill, func(t *testing.T) {
				f.db.MustExec("DELETE FROM cmsjobs_runs")
				f.enqueue(job(`1`))
				e := end(f.claim(1)[0], jobs.Completed)
				tx := f.db.MustBegin()
				tx.MustExec("SELECT id FROM jobs FOR UPDATE")
				ended := make(chan error, 1)
				go func() { _, err := f.Settle(bg, []jobs.Settlement{e}); ended <- err }()
				var id int
				for id == 0 {
					if err := f.db.Get(&id, "SELECT COALESCE(MAX(id), 0) FROM information_schema.processlist WHERE info LIKE '%DELETE FROM `jobs`%' AND id <> CONNECTION_ID() AND db = DATABASE()"); err != nil {
						t.Fatal(err)
					}
				}
				f.db.MustExec(fmt.Sprint(kill, " ", id))
				if err := <-ended; database.Classify(err) != database.Unknown {
					t.Errorf("%v is %v", err, database.Classify(err))
				}
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
				if err := f.settle(e)[0]; err != nil {
					t.Error(err)
				}
				if rows, runs := f.count("SELECT COUNT(*) FROM jobs"), f.count("SELECT COUNT(*) FROM cmsjobs_runs"); rows != 0 || runs != 1 {
					t.Errorf("%d jobs, %d runs; want 0, 1", rows, runs)
				}
			})
		}
	})
}

// answering sends nothing and answers with an error.
type answering struct{ err error }

func (a answering) Send(context.Context, *sqlx.DB, []string, []any) ([]int64, error) {
	return nil, a.err
}

// Where a packet cannot be sent, now or ever, jobs are settled all the same.
func TestWithoutPacketsJobsAreSettled(t *testing.T) {
	v := variant{engine: jobstest.MySQL, layout: tables.Stock, mode: tables.Skip}
	f := v.fixture(t, v.database(t))
	settled := func(t *testing.T) {
		t.Helper()
		f.db.MustExec("DELETE FROM cmsjobs_runs")
		f.enqueue(job(`1`), job(`2`))
		for _, c := range f.claim(2) {
			if err := f.settle(end(c, jobs.Completed))[0]; err != nil {
				t.Error(err)
			}
		}
		if n := f.count("SELECT COUNT(*) FROM cmsjobs_runs"); n != 2 {
			t.Errorf("%d runs, want 2", n)
		}
	}
	mine := database.PacketsOf(f.Store.DB)
	t.Run("another sends", func(t *testing.T) {
		mine.Sending.Lock()
		defer mine.Sending.Unlock()
		settled(t)
		if !f.oneStatement.Load() {
			t.Error("no packet is sent any more")
		}
	})
	t.Run("too few connections", func(t *testing.T) {
		db, err := database.Connect(bg, database.ConnectOptions{DSN: f.db.DSN, MaxConnections: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		own := f.Store
		defer func() { f.Store = own }()
		f.Store = open1(t, &jobstest.Database{DB: db}, tables.Options{Registry: registry(), Mode: tables.Skip, DatabaseClock: f.clock.now, Clock: f.clock.elapsed})
		settled(t)
		if n := database.PacketsOf(db).DB.Stats().OpenConnections; n != 0 || f.oneStatement.Load() {
			t.Errorf("%d connections beside the two", n)
		}
	})
	t.Run("refused", func(t *testing.T) {
		f.packets = answering{fmt.Errorf("%w: %w", database.ErrUnsent, database.ErrNoPackets)}
		settled(t)
		if f.oneStatement.Load() {
			t.Error("it is tried again and again")
		}
	})
}

// The packets' connection is one of those that the database may have, and closes
// with it; no other takes a second statement.
func TestPacketsKeepToTheirConnection(t *testing.T) {
	v := variant{engine: jobstest.MySQL, layout: tables.Stock, mode: tables.Skip}
	f := v.fixture(t, v.database(t))
	db, err := database.Connect(bg, database.ConnectOptions{DSN: f.db.DSN, MaxConnections: 4})
	if err != nil {
		t.Fatal(err)
	}
	f.Store = open1(t, &jobstest.Database{DB: db}, tables.Options{Registry: registry(), Mode: tables.Skip, DatabaseClock: f.clock.now, Clock: f.clock.elapsed})
	f.enqueue(job(`1`))
	f.settle(end(f.claim(1)[0], jobs.Completed))
	p := database.PacketsOf(db)
	if mine, theirs := p.DB.Stats().OpenConnections, db.Stats().MaxOpenConnections; mine != 1 || theirs != 3 {
		t.Errorf("%d connections of packets, %d of others; want 1, 3", mine, theirs)
	}
	if _, err := db.Exec("DO 1; DO 2"); err == nil {
		t.Error("two statements are taken by a connection that is everybody's")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.DB.Ping(); err == nil {
		t.Error("the packets' connection outlives its database")
	}
}
