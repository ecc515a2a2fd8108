package tablestest

import (
	"context"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Lease is the length of the leases that MustClaim takes.
const Lease = 30 * time.Second

// worker is who claims and settles.
const worker = "host:1:x"

// Queue is what a Fixture asks of the queue under test.
type Queue interface {
	jobs.Enqueuer
	Claim(context.Context, jobs.ClaimRequest) ([]jobs.Claimed, error)
	Settle(context.Context, []jobs.Settlement) ([]error, error)
}

// Clock is the database's clock, and the one that measures lengths, in tests
// that move them.
type Clock struct{ Ahead, Lengths time.Duration }

// Now is the database's clock.
func (c *Clock) Now() time.Time { return time.Now().Add(c.Ahead) }

// Elapsed is the clock that measures lengths: a test moves it to make full
// rescans due.
func (c *Clock) Elapsed() time.Time { return time.Now().Add(c.Lengths) }

// Fixture is the emptied tables of a variant with a clock of the test's. Its
// queue is what the test opens on Tables.
type Fixture struct {
	T       testing.TB
	DB      *jobstest.Database
	Variant Variant
	Clock   *Clock
	Tables  *tables.Tables
	Queue   Queue
}

// Open empties the tables of a variant and opens them.
func Open(t testing.TB, v Variant, db *jobstest.Database) *Fixture {
	t.Helper()
	for _, table := range []string{"jobs", "failed_jobs", "cmsjobs_runs", "cmsjobs_throughput", "cmsjobs_run_figures",
		"cmsjobs_workers", "cmsjobs_job_logs", "cmsjobs_unique", "cmsjobs_permits", "cmsjobs_cursors", "cmsjobs_paused",
		"cmsjobs_control_signals", "cmsjobs_cancels"} {
		db.MustExec("DELETE FROM " + table)
	}
	f := &Fixture{T: t, Variant: v, DB: db, Clock: &Clock{}}
	f.Tables = open(t, db, f.Options())
	return f
}

// Options are those of the fixture's tables: another process's store has the same.
func (f *Fixture) Options() tables.Options {
	return tables.Options{Registry: Registry(), DatabaseClock: f.Clock.Now,
		Clock: f.Clock.Elapsed}
}

// MustEnqueue enqueues jobs.
func (f *Fixture) MustEnqueue(list ...jobs.Spec) []jobs.Receipt {
	f.T.Helper()
	receipts, err := f.Queue.Enqueue(context.Background(), list...)
	if err != nil {
		f.T.Fatal(err)
	}
	return receipts
}

// MustClaim claims what is there.
func (f *Fixture) MustClaim(limit int, queues ...string) []jobs.Claimed {
	f.T.Helper()
	return f.ClaimBy(f.Queue, limit, queues...)
}

// ClaimBy claims what is there for another process. It looks up to three times:
// a full rescan, which the moved clock makes due, finds what the first look did not.
func (f *Fixture) ClaimBy(q Queue, limit int, queues ...string) []jobs.Claimed {
	f.T.Helper()
	if len(queues) == 0 {
		queues = []string{"default"}
	}
	var all []jobs.Claimed
	for range 3 {
		got, err := q.Claim(context.Background(), jobs.ClaimRequest{Worker: worker, Queues: queues,
			Limit: limit - len(all), Lease: Lease})
		if err != nil {
			f.T.Fatal(err)
		}
		if all = append(all, got...); len(all) >= limit {
			break
		}
		f.Clock.Lengths += time.Minute
		f.DB.MustExec("UPDATE cmsjobs_cursors SET rescan_until = 0") // and it may be anybody's turn
	}
	return all
}

// MustSettle settles runs and returns each one's error.
func (f *Fixture) MustSettle(ends ...jobs.Settlement) []error {
	f.T.Helper()
	errs, err := f.Queue.Settle(context.Background(), ends)
	if err != nil {
		f.T.Fatal(err)
	}
	return errs
}

// CountRows reads one number.
func (f *Fixture) CountRows(query string, args ...any) int {
	f.T.Helper()
	var n int
	if _, err := f.Tables.QueryRow(context.Background(), f.DB.DB, []any{&n}, query, args...); err != nil {
		f.T.Fatalf("%s: %v", query, err)
	}
	return n
}

// InsertRaw writes a due row as a CMS does.
func (f *Fixture) InsertRaw(queue, payload string) {
	f.T.Helper()
	t, now := f.Tables.Layout.Table(), f.Tables.SecondsNow()
	statement := "INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES (?, ?, 0, "
	if f.Variant.Layout == tables.Extended {
		statement = "INSERT INTO jobs (queue, name, payload_json, run_at, created_at) VALUES (?, '', ?, "
	}
	statement += t.Due.FromExpr(now) + ", " + t.Created.FromExpr(now) + ")"
	if _, err := f.Tables.Exec(context.Background(), f.DB.DB, statement, queue, payload); err != nil {
		f.T.Fatal(err)
	}
}

// End is how a claimed job's run ended.
func End(c jobs.Claimed, o jobs.Outcome) jobs.Settlement {
	s := jobs.Settlement{Claimed: c, Outcome: o, Worker: worker, Duration: 20 * time.Millisecond, Wait: time.Second}
	if o == jobs.Retried || o == jobs.Failed {
		s.Error = "it broke\nat line 3"
	}
	return s
}
