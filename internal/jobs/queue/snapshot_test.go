package queue

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
	"github.com/cmsjobs/cmsjobs/migrations"
)

// stream is a separate server whose queue is filled and emptied in small rounds.
type stream struct {
	*fixture
	took []time.Duration // of its claims
}

const perRound = 50

// newStream starts a server; purging what one has deleted is a server's work, so
// two that are compared must not share it.
func newStream(t *testing.T, engine jobstest.Engine) *stream {
	t.Helper()
	server := jobstest.Own(t, engine)
	db, err := database.Connect(context.Background(), database.ConnectOptions{DSN: server.MySQLDSN("mysql")})
	if err != nil {
		t.Fatal(err)
	}
	db.MustExec("CREATE DATABASE flow")
	db.Close()
	if db, err = database.Connect(context.Background(), database.ConnectOptions{
		DSN: server.MySQLDSN("flow")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := migrations.Up(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
	d := &jobstest.Database{Engine: v.Engine, Driver: db.DriverName(), DSN: server.MySQLDSN("flow"), DB: db}
	if _, err := tables.CreateTables(bg, db, v.Layout, ""); err != nil {
		t.Fatal(err)
	}
	f := &fixture{Fixture: &tablestest.Fixture{T: t, Variant: v, DB: d, Clock: &tablestest.Clock{}}}
	f.setStore(open1(t, d, tables.Options{Registry: tablestest.Registry()}))
	f.Tables = f.tables
	return &stream{fixture: f}
}

// round enqueues, claims and completes a few jobs, and times the claim.
func (f *stream) round() {
	f.T.Helper()
	f.fill(perRound, func(int) jobs.Spec { return tablestest.Job(`{}`) })
	begun := time.Now()
	got, err := f.Claim(context.Background(), jobs.ClaimRequest{Worker: "host:1:x", Queues: []string{"default"},
		Limit: perRound, Lease: time.Minute})
	f.took = append(f.took, time.Since(begun))
	if err != nil || len(got) != perRound {
		f.T.Fatalf("%d of %d claimed, %v", len(got), perRound, err)
	}
	var ends []jobs.Settlement
	for _, c := range got {
		ends = append(ends, jobs.Settlement{Claimed: c, Outcome: jobs.Completed})
	}
	if _, err := f.Settle(context.Background(), ends); err != nil {
		f.T.Fatal(err)
	}
}

func (f *stream) percentile(p int) time.Duration {
	slices.Sort(f.took)
	return f.took[len(f.took)*p/100]
}

// F12: a snapshot that stays open, as a backup's does, keeps the server from
// removing what was deleted; claims do not walk over it. Two servers take turns,
// so that what else the machine does slows both. With CMSJOBS_SOAK=1 it lasts
// until 200,000 jobs have gone through in at least ten minutes, and claims beside the
// snapshot may take at most twice as long; otherwise it is too short to judge
// by the clock, and only the work is checked.
func TestClaimsBesideALongSnapshot(t *testing.T) {
	jobstest.EachMySQL(t, testClaimsBesideALongSnapshot)
}

func testClaimsBesideALongSnapshot(t *testing.T, engine jobstest.Engine) {
	rounds, atLeast := 30, time.Duration(0)
	full := os.Getenv("CMSJOBS_SOAK") == "1"
	if full {
		rounds, atLeast = 200_000/perRound, 10*time.Minute
	}
	free, held := newStream(t, engine), newStream(t, engine)
	held.fill(perRound, func(int) jobs.Spec { return tablestest.Job(`{}`).In(24 * time.Hour) }) // something to see
	defer held.snapshot()()
	begun, done := time.Now(), 0
	for ; done < rounds || time.Since(begun) < atLeast; done++ {
		free.round()
		held.round()
	}
	var history int
	if err := held.DB.Get(&history, "SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = "+
		"'trx_rseg_history_len'"); err != nil || history < done {
		t.Errorf("the snapshot holds only %d old versions after %d jobs: %v", history, done*perRound, err)
	}
	t.Logf("%d jobs each in %v, %d old versions held: p50 %v beside the snapshot, %v without; p99 %v and %v",
		done*perRound, time.Since(begun).Round(time.Second), history,
		held.percentile(50), free.percentile(50), held.percentile(99), free.percentile(99))
	if full && held.percentile(99) > 2*free.percentile(99) {
		t.Errorf("a claim beside the snapshot takes %v at the 99th percentile, without it %v", held.percentile(99),
			free.percentile(99))
	}
}
