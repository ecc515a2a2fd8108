package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// proxied is the fixture's store behind a proxy, which counts its round trips.
func (f *fixture) proxied(t *testing.T) *jobstest.Proxy {
	t.Helper()
	port := jobstest.Shared(t, f.Variant.Engine).Port
	proxy := jobstest.NewProxy(t, port)
	db, err := database.Connect(bg, database.ConnectOptions{
		DSN: strings.Replace(f.DB.DSN, fmt.Sprint(":", port), fmt.Sprint(":", proxy.Port), 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	f.setStore(open1(t, &jobstest.Database{DB: db}, tables.Options{Registry: tablestest.Registry(),
		DatabaseClock: f.Clock.Now, Clock: f.Clock.Elapsed}))
	return proxy
}

// Each thing that a worker does takes MySQL no more round trips than MariaDB, and
// the end of runs takes one.
func TestMySQLTakesNoMoreRoundTripsThanMariaDB(t *testing.T) {
	for _, v := range []tablestest.Variant{{Layout: tables.Stock}, {Layout: tables.Extended}} {
		taken := map[jobstest.Engine]map[string]int64{}
		for _, v.Engine = range jobstest.MySQLs() {
			t.Run(v.String(), func(t *testing.T) { taken[v.Engine] = openFixture(t, v, v.Database(t)).roundTrips(t) })
		}
		for what, n := range taken[jobstest.MySQL] {
			if maria := taken[jobstest.MariaDB][what]; n > maria {
				t.Errorf("%s: %s takes MySQL %d round trips and MariaDB %d", v, what, n, maria)
			}
		}
		for engine, of := range taken {
			for _, what := range []string{"settle one", "settle eleven", "settle and claim"} {
				if of[what] != 1 {
					t.Errorf("%s, %s: %s takes %d round trips, want 1", engine, v.Layout, what, of[what])
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
	f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`), tablestest.Job(`3`))
	held := f.claimAhead()
	f.cursorOf("default", 0).next = f.tables.Options.Clock().Add(time.Hour)
	f.classesOf("default").next = f.tables.Options.Clock().Add(time.Hour)
	held, _ = f.relay(tablestest.End(held[0], jobs.Completed)) // what is asked once is asked
	if len(held) != 1 {
		t.Fatal("no job was claimed along")
	}
	count("settle and claim", func() { held, _ = f.relay(tablestest.End(held[0], jobs.Completed)) })
	if len(held) != 1 {
		t.Fatal("no job was claimed along")
	}
	count("settle one", func() { f.MustSettle(tablestest.End(held[0], jobs.Completed)) })
	f.cursorOf("default", 0).next = time.Time{}
	f.classesOf("default").next = time.Time{}
	ten := make([]jobs.Spec, 10)
	for i := range ten {
		ten[i] = tablestest.Job(`1`)
	}
	count("enqueue one", func() { f.MustEnqueue(tablestest.Job(`1`)) })
	count("enqueue ten", func() { f.MustEnqueue(ten...) })
	count("enqueue a named one", func() { f.MustEnqueue(tablestest.Job(`1`).Named("a-name")) })
	f.MustEnqueue(ten...)
	f.Clock.Lengths += time.Minute
	count("claim one", func() { held = f.claimOnce(t, 1) })
	f.Clock.Lengths += time.Minute
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
	count("retry", func() { f.MustSettle(tablestest.End(held[0], jobs.Retried)) })
	count("fail", func() { f.MustSettle(tablestest.End(held[1], jobs.Failed)) })
	var ends []jobs.Settlement
	for _, c := range held[2:] {
		ends = append(ends, tablestest.End(c, jobs.Completed))
	}
	count("settle eleven", func() { f.MustSettle(ends...) })
	if n := f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs WHERE outcome = 'completed'"); n != 14 {
		t.Errorf("%d runs are completed, want 14", n)
	}
	t.Log(taken)
	return taken
}

func (f *fixture) claimOnce(t *testing.T, limit int) []jobs.Claimed {
	t.Helper()
	got, err := f.Claim(bg, jobs.ClaimRequest{Worker: "host:1:x", Queues: []string{"default"}, Limit: limit,
		Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A statement in the middle of the round trip that settles is refused: nothing of
// it remains, no lock is held, and the next settlement writes it once.
func TestASettlementThatFailsHalfWayIsUndone(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
		f := openFixture(t, v, v.Database(t))
		for _, table := range []string{"cmsjobs_runs", "cmsjobs_unique"} {
			t.Run(table, func(t *testing.T) {
				f.DB.MustExec("DELETE FROM cmsjobs_runs")
				f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`))
				held := f.MustClaim(2)
				ends := []jobs.Settlement{tablestest.End(held[0], jobs.Completed),
					tablestest.End(held[1], jobs.Completed)}
				f.DB.MustExec("RENAME TABLE " + table + " TO away")
				_, err := f.Settle(bg, ends)
				f.DB.MustExec("RENAME TABLE away TO " + table)
				if database.Classify(err) != database.Schema {
					t.Fatalf("without %s: %v", table, err)
				}
				tx := f.DB.MustBegin()
				var free int
				if err := tx.Get(&free, "SELECT COUNT(*) FROM (SELECT id FROM jobs FOR UPDATE) held"); err != nil ||
					free != 2 {
					t.Errorf("%d jobs are there unlocked, want 2: %v", free, err)
				}
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
				if n := f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs"); n != 0 {
					t.Errorf("%d runs are written, want none", n)
				}
				for _, err := range f.MustSettle(ends...) {
					if err != nil {
						t.Error(err)
					}
				}
				if rows, runs := f.CountRows("SELECT COUNT(*) FROM jobs"),
					f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs"); rows != 0 || runs != 2 {
					t.Errorf("%d jobs, %d runs; want 0, 2", rows, runs)
				}
			})
		}
	})
}

// A server that deletes nothing and gives no error, as MariaDB in some moment of KILL QUERY:
// a lease that holds is not called lost.
func TestARowThatIsNotDeletedOnceIsDeletedThen(t *testing.T) {
	for _, count := range []int{1, 2} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			v := tablestest.Variant{Engine: jobstest.PostgreSQL, Layout: tables.Stock}
			f := openFixture(t, v, v.Database(t))
			for i := range count {
				f.MustEnqueue(tablestest.Job(fmt.Sprint(i)))
			}
			jobstest.SkipFirstDelete(t, f.DB, "jobs")
			var ends []jobs.Settlement
			for _, c := range f.MustClaim(count) {
				ends = append(ends, tablestest.End(c, jobs.Completed))
			}
			for _, err := range f.MustSettle(ends...) {
				if err != nil {
					t.Error(err)
				}
			}
			if rows, runs := f.CountRows("SELECT COUNT(*) FROM jobs"),
				f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs"); rows != 0 || runs != count {
				t.Errorf("%d jobs, %d runs; want 0, %d", rows, runs, count)
			}
		})
	}
}

// A person ends the statement, or the connection, while the settlement waits for a
// lock: its outcome is unclear, and written again it is there once.
func TestAKilledSettlementIsWrittenOnce(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
		f := openFixture(t, v, v.Database(t))
		for _, kill := range []string{"KILL QUERY", "KILL"} {
			t.Run(kill, func(t *testing.T) {
				f.DB.MustExec("DELETE FROM cmsjobs_runs")
				f.MustEnqueue(tablestest.Job(`1`))
				e := tablestest.End(f.MustClaim(1)[0], jobs.Completed)
				tx := f.DB.MustBegin()
				tx.MustExec("SELECT id FROM jobs FOR UPDATE")
				ended := make(chan error, 1)
				go func() {
					results, err := f.Settle(bg, []jobs.Settlement{e})
					ended <- errors.Join(append(results, err)...)
				}()
				var id int
				for id == 0 {
					if err := f.DB.Get(&id, "SELECT COALESCE(MAX(id), 0) FROM information_schema.processlist WHERE "+
						"info LIKE '%DELETE FROM `jobs`%' AND id <> CONNECTION_ID() AND db = DATABASE()"); err != nil {
						t.Fatal(err)
					}
				}
				f.DB.MustExec(fmt.Sprint(kill, " ", id))
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
				// MariaDB sometimes ends a DELETE so without an error: it is written once more then.
				if err := <-ended; err != nil && database.Classify(err) != database.Unknown ||
					err == nil && engine != jobstest.MariaDB {
					t.Errorf("%v is %v", err, database.Classify(err))
				}
				if err := f.MustSettle(e)[0]; err != nil {
					t.Error(err)
				}
				if rows, runs := f.CountRows("SELECT COUNT(*) FROM jobs"),
					f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs"); rows != 0 || runs != 1 {
					t.Errorf("%d jobs, %d runs; want 0, 1", rows, runs)
				}
			})
		}
	})
}

// answering sends nothing and answers with an error.
type answering struct{ err error }

func (a answering) Send(context.Context, *sqlx.DB, []string, []any) ([]database.Sent, error) {
	return nil, a.err
}

// Where a packet cannot be sent, now or ever, jobs are settled all the same.
func TestWithoutPacketsJobsAreSettled(t *testing.T) {
	v := tablestest.Variant{Engine: jobstest.MySQL, Layout: tables.Stock}
	f := openFixture(t, v, v.Database(t))
	settled := func(t *testing.T) {
		t.Helper()
		f.DB.MustExec("DELETE FROM cmsjobs_runs")
		f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`))
		for _, c := range f.MustClaim(2) {
			if err := f.MustSettle(tablestest.End(c, jobs.Completed))[0]; err != nil {
				t.Error(err)
			}
		}
		if n := f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs"); n != 2 {
			t.Errorf("%d runs, want 2", n)
		}
	}
	mine := database.PacketsOf(f.Store.tables.DB)
	t.Run("another sends", func(t *testing.T) {
		mine.Sending.Lock()
		defer mine.Sending.Unlock()
		settled(t)
		if !f.oneStatement.Load() {
			t.Error("no packet is sent any more")
		}
	})
	t.Run("too few connections", func(t *testing.T) {
		db, err := database.Connect(bg, database.ConnectOptions{DSN: f.DB.DSN, MaxConnections: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		own := f.Store
		defer func() { f.setStore(own) }()
		f.setStore(open1(t, &jobstest.Database{DB: db}, tables.Options{Registry: tablestest.Registry(),
			DatabaseClock: f.Clock.Now, Clock: f.Clock.Elapsed}))
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
	v := tablestest.Variant{Engine: jobstest.MySQL, Layout: tables.Stock}
	f := openFixture(t, v, v.Database(t))
	db, err := database.Connect(bg, database.ConnectOptions{DSN: f.DB.DSN, MaxConnections: 4})
	if err != nil {
		t.Fatal(err)
	}
	f.setStore(open1(t, &jobstest.Database{DB: db}, tables.Options{Registry: tablestest.Registry(),
		DatabaseClock: f.Clock.Now, Clock: f.Clock.Elapsed}))
	f.MustEnqueue(tablestest.Job(`1`))
	f.MustSettle(tablestest.End(f.MustClaim(1)[0], jobs.Completed))
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
