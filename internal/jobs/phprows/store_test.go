package phprows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/php"
)

func TestOnlyPHPsRowsOfTheQueueAreClaimed(t *testing.T) {
	each(t, func(f *fixture) {
		f.push("default", `{"type":"test.ours"}`)
		f.push("default", `{"job":"test.ours","data":{}}`)
		f.push("default", `{"type":"nobody.knows"}`)
		f.push("default", `not JSON`)
		f.push("other", payload("Elsewhere", ""))
		first := f.push("default", payload("Mine", `"timeout":7,"backoff":"1,20",`))
		legacy := f.push("default", `{"job":"App\\Handler@run","data":[1]}`)
		later := f.push("default", payload("Later", ""))
		f.exec(fmt.Sprintf("UPDATE jobs SET available_at = available_at + 100 WHERE id = %d", later))
		list := f.claim(10)
		if len(list) != 2 || list[0].Job.ID != first || list[1].Job.ID != legacy {
			t := f.t
			t.Fatalf("claimed %+v", list)
		}
		j := list[0]
		if j.Job.Type != `App\Jobs\Mine` || j.Job.UUID != "Mine-uuid" || j.Job.Attempt != 1 ||
			j.Job.Timeout != 7*time.Second || j.NoTimeout ||
			!slices.Equal(j.Backoff, []time.Duration{time.Second, 20 * time.Second}) ||
			string(j.Payload) != payload("Mine", `"timeout":7,"backoff":"1,20",`) {
			f.t.Errorf("the job is %+v", j)
		}
		if list[1].Job.Type != `App\Handler@run` || list[1].Job.UUID == "" {
			f.t.Errorf("the legacy job is %+v", list[1].Job)
		}
		if n := f.count("jobs WHERE attempts = 1 AND reserved_at IS NOT NULL"); n != 2 {
			f.t.Errorf("%d rows are reserved", n)
		}
		if again := f.claim(10); len(again) != 0 {
			f.t.Errorf("claimed again: %+v", again)
		}
	})
}

func TestOutcomesAreWrittenWithTheirHistory(t *testing.T) {
	each(t, func(f *fixture) {
		for _, name := range []string{"Done", "Released", "Failed", "Crashed"} {
			f.push("default", payload(name, ""))
		}
		list := f.claim(10)
		lines := []jobs.LogLine{{At: time.Now(), Text: "it said\x00so"}}
		f.settle(
			php.End{Job: list[0], Outcome: php.Deleted, Lines: lines, Duration: time.Second},
			php.End{Job: list[1], Outcome: php.Released, Delay: 30 * time.Second},
			php.End{Job: list[2], Outcome: php.Failed, Exception: "LogicException: no\x00t at all in x.php:3"},
			php.End{Job: list[3], Outcome: php.Crashed, Exception: php.DiedInJob + "signal: segmentation fault"})
		if n := f.count("jobs"); n != 2 {
			f.t.Errorf("%d rows are left", n)
		}
		if n := f.count("jobs WHERE reserved_at IS NULL AND attempts = 1"); n != 2 {
			f.t.Errorf("%d rows are released with their attempt", n)
		}
		var failed struct{ UUID, Connection, Queue, Payload, Exception string }
		if err := f.db.Get(&failed, "SELECT uuid, connection, queue, payload, exception FROM failed_jobs"); err != nil {
			f.t.Fatal(err)
		}
		if failed.UUID != "Failed-uuid" || failed.Connection != "database" || failed.Queue != "default" ||
			failed.Payload != payload("Failed", "") ||
			failed.Exception != "LogicException: not at all in x.php:3" {
			f.t.Errorf("failed_jobs has %+v", failed)
		}
		var runs []string
		if err := f.db.Select(&runs, "SELECT outcome FROM cmsjobs_runs ORDER BY id"); err != nil ||
			!slices.Equal(runs, []string{"completed", "released", "failed", "crashed"}) {
			f.t.Errorf("the history has %v, %v", runs, err)
		}
		if n := f.count("cmsjobs_job_logs WHERE uuid = 'Done-uuid' AND line = 'it saidso'"); n != 1 {
			f.t.Error("the line of output is not kept")
		}
		again := f.claim(10) // the crashed one at once, the released one in 30 s
		if len(again) != 1 || again[0].Job.Attempt != 2 || again[0].Crashes != 1 ||
			again[0].LastCrash != "signal: segmentation fault" {
			f.t.Errorf("claimed again: %+v", again)
		}
		f.ahead += 31 * time.Second
		if again = f.claim(10); len(again) != 1 || again[0].Crashes != 0 || again[0].Job.Attempt != 2 {
			f.t.Errorf("after 31 s claimed %+v", again)
		}
	})
}

// A row that another worker has taken, or a person removed, stays as it is, and keeps
// no other end from being written. The same end twice is no loss.
func TestALostLeaseChangesNothing(t *testing.T) {
	each(t, func(f *fixture) {
		for i := range 4 {
			f.push("default", payload(fmt.Sprint("J", i), ""))
		}
		list := f.claim(4)
		f.exec("UPDATE jobs SET attempts = 2 WHERE id = ?", list[0].Job.ID)
		f.exec("UPDATE jobs SET reserved_at = reserved_at + 1 WHERE id = ?", list[1].Job.ID)
		f.exec("DELETE FROM jobs WHERE id = ?", list[2].Job.ID)
		ends := []php.End{{Job: list[0], Outcome: php.Deleted}, {Job: list[1], Outcome: php.Failed, Exception: "x"},
			{Job: list[2], Outcome: php.Released}, {Job: list[3], Outcome: php.Deleted}}
		for range 2 {
			results, err := f.Settle(bg, ends)
			if err != nil {
				f.t.Fatal(err)
			}
			for i, want := range []error{jobs.ErrLeaseLost, jobs.ErrLeaseLost, jobs.ErrLeaseLost, nil} {
				if !errors.Is(results[i], want) {
					f.t.Errorf("end %d: %v, want %v", i, results[i], want)
				}
			}
		}
		if a, b, c := f.count("jobs"), f.count("failed_jobs"), f.count("cmsjobs_runs"); a != 2 || b != 0 || c != 1 {
			f.t.Errorf("%d jobs, %d failed, %d runs", a, b, c)
		}
		renewed, err := f.Renew(bg, []jobs.Lease{list[0].Lease, list[2].Lease}, lease)
		if err != nil || renewed[0].ID != 0 || renewed[1].ID != 0 {
			f.t.Errorf("renewed %+v, %v", renewed, err)
		}
	})
}

// A lease that holds is not called lost where the server deletes nothing once.
func TestARowThatIsNotDeletedOnceIsDeletedThen(t *testing.T) {
	f := newFixture(t, jobstest.PostgreSQL, false)
	f.push("default", payload("Kept", ""))
	jobstest.SkipFirstDelete(t, f.db, "jobs")
	f.settle(php.End{Job: f.claim(1)[0], Outcome: php.Deleted})
	if rows, runs := f.count("jobs"), f.count("cmsjobs_runs"); rows != 0 || runs != 1 {
		t.Errorf("%d jobs, %d runs; want 0, 1", rows, runs)
	}
}

// The copy in failed_jobs is undone with its transaction, and not there twice.
func TestAFailedJobBesideALostLeaseIsCopiedOnce(t *testing.T) {
	each(t, func(f *fixture) {
		f.push("default", payload("Failed", ""))
		f.push("default", payload("Lost", ""))
		list := f.claim(2)
		f.exec("DELETE FROM jobs WHERE id = ?", list[1].Job.ID)
		results, err := f.Settle(bg, []php.End{{Job: list[0], Outcome: php.Failed, Exception: "x"},
			{Job: list[1], Outcome: php.Deleted}})
		if err != nil || results[0] != nil || !errors.Is(results[1], jobs.ErrLeaseLost) {
			f.t.Fatalf("%v, %v", results, err)
		}
		if a, b := f.count("jobs"), f.count("failed_jobs"); a != 0 || b != 1 {
			f.t.Errorf("%d jobs, %d failed; want 0 and 1", a, b)
		}
	})
}

func TestARenewedLeaseIsHeldAndALapsedOneIsNot(t *testing.T) {
	each(t, func(f *fixture) {
		f.push("default", payload("A", ""))
		f.push("default", payload("B", ""))
		list := f.claim(2)
		other := f.another()
		f.exec("INSERT INTO cmsjobs_workers (id, host, pid, version, queues, types, slots, status, started_at, "+
			"heartbeat_at, memory_bytes, done, failed, running, php) VALUES ('gone:1:x', 'gone', 1, '', '[]', '[]', 1, "+
			"'running', 1, 1, 0, 0, 0, '[]', ?)", fmt.Sprintf(`[{"queue":"default","pid":4711,"job":{"id":%d,"attempt":1}}]`,
			list[1].Job.ID))
		f.ahead += 60 * time.Second
		renewed, err := f.Renew(bg, []jobs.Lease{list[0].Lease}, lease)
		if err != nil || renewed[0].ReservedAt != list[0].Lease.ReservedAt+60 {
			f.t.Fatalf("renewed %+v, %v", renewed, err)
		}
		f.ahead += 40 * time.Second
		got, err := other.Claim(bg, php.Request{Queue: "default", Limit: 10, Lease: lease})
		if err != nil || len(got) != 1 || got[0].Job.ID != list[1].Job.ID || got[0].Job.Attempt != 2 ||
			!got[0].Rescued {
			f.t.Fatalf("another claimed %+v, %v", got, err)
		}
		if n := f.count("cmsjobs_runs WHERE outcome = 'crashed' AND lease = ''"); n != 1 || got[0].Crashes != 0 {
			f.t.Errorf("%d lines on the lost worker, %d crashes of the job", n, got[0].Crashes)
		}
		if n := f.count("cmsjobs_runs WHERE worker = 'gone:1:x' AND error LIKE '%(gone:1:x, PHP process 4711)'"); n != 1 {
			f.t.Error("the line does not name who ran it")
		}
		list[0].Lease = renewed[0]
		results,
			err := f.Settle(bg, []php.End{{Job: list[0], Outcome: php.Deleted}, {Job: list[1], Outcome: php.Deleted}})
		if err != nil || results[0] != nil || !errors.Is(results[1], jobs.ErrLeaseLost) {
			f.t.Errorf("settled: %v, %v", results, err)
		}
	})
}

// A job that never started keeps its number of attempts, and another lease with the next claim.
func TestReleasedJobsAreNotCounted(t *testing.T) {
	each(t, func(f *fixture) {
		f.push("default", payload("A", ""))
		list := f.claim(1)
		if err := f.Release(bg, list); err != nil {
			f.t.Fatal(err)
		}
		if n := f.count("jobs WHERE attempts = 0 AND reserved_at IS NULL"); n != 1 {
			f.t.Fatal("the row is not released uncounted")
		}
		f.ahead += 2 * time.Second
		again := f.claim(1)
		if len(again) != 1 || again[0].Job.Attempt != 1 || again[0].Lease.ReservedAt == list[0].Lease.ReservedAt {
			f.t.Fatalf("claimed again: %+v", again)
		}
		if err := f.Release(bg, list); err != nil { // the old lease
			f.t.Fatal(err)
		}
		if n := f.count("jobs WHERE attempts = 1 AND reserved_at IS NOT NULL"); n != 1 {
			f.t.Error("the old lease released the row of the new one")
		}
	})
}

func TestManyClaimersGetEachRowOnce(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			f := newFixture(t, engine, false)
			const n = 200
			for i := range n {
				f.push("default", payload(fmt.Sprint("J", i), ""))
			}
			var mu sync.Mutex
			seen := map[int64]int{}
			var group sync.WaitGroup
			for range 4 {
				s := f.another()
				group.Go(func() {
					for range n {
						list, err := s.Claim(bg, php.Request{Queue: "default", Limit: 7, Lease: lease})
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						for i := range list {
							seen[list[i].Job.ID]++
						}
						whole := len(seen) == n
						mu.Unlock()
						if whole {
							return
						}
					}
				})
			}
			group.Wait()
			for id, times := range seen {
				if times != 1 {
					t.Errorf("row %d was claimed %d times", id, times)
				}
			}
			if len(seen) != n || f.count("jobs WHERE attempts <> 1") != 0 {
				t.Errorf("%d of %d rows claimed", len(seen), n)
			}
		})
	}
}

// Thousands of others' rows before PHP's are stepped over in bounded claims.
func TestRowsBehindManyOfOthersAreFound(t *testing.T) {
	each(t, func(f *fixture) {
		f.push("default", `{"type":"test.ours"}`)
		for have := 1; have < 4096; have *= 2 {
			f.db.MustExec("INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at) SELECT " +
				"queue, payload, attempts, reserved_at, available_at, created_at FROM jobs")
		}
		last := f.push("default", payload("Last", ""))
		for try := 1; ; try++ {
			list, err := f.Claim(bg, php.Request{Queue: "default", Limit: 5, Lease: lease})
			if len(list) == 1 && list[0].Job.ID == last {
				break
			}
			if !errors.Is(err, jobs.ErrUnseen) || try > 5 {
				f.t.Fatalf("try %d: %+v, %v", try, list, err)
			}
		}
	})
}

func TestALargePayloadComesWholeAndGoesToFailedJobsWhole(t *testing.T) {
	each(t, func(f *fixture) {
		text := payload("Large", fmt.Sprintf(`"big":%q,`, strings.Repeat("x", 2<<20)))
		f.push("default", text)
		list := f.claim(1)
		if len(list) != 1 || string(list[0].Payload) != text || list[0].Job.Type != `App\Jobs\Large` {
			f.t.Fatalf("claimed %d jobs", len(list))
		}
		f.settle(php.End{Job: list[0], Outcome: php.Failed, Exception: strings.Repeat("y", 1<<20)})
		var kept string
		if err := f.db.Get(&kept, "SELECT payload FROM failed_jobs"); err != nil || kept != text {
			f.t.Errorf("failed_jobs has %d bytes, %v", len(kept), err)
		}
	})
}

// queue:retry inserts into jobs before it deletes from failed_jobs.
func TestAJobThatFailsAgainBesideItsLastFailureIsKept(t *testing.T) {
	each(t, func(f *fixture) {
		for range 2 {
			f.push("default", payload("Again", ""))
			f.settle(php.End{Job: f.claim(1)[0], Outcome: php.Failed, Exception: "x"})
		}
		if n := f.count("failed_jobs"); n != 2 {
			f.t.Errorf("%d rows in failed_jobs", n)
		}
	})
}

// The rows that a claim's look at the newest rows does not see are found by the next
// look at all of them.
func TestARowBelowTheFloorIsFound(t *testing.T) {
	f := newFixture(t, jobstest.SQLite, false)
	f.push("default", payload("A", ""))
	list := f.claim(1)
	f.claim(1)
	l := f.lookOf("default")
	l.floor, l.next = list[0].Job.ID, time.Now().Add(time.Hour) // as after a look that took minutes
	f.settle(php.End{Job: list[0], Outcome: php.Released})
	l.next = l.next.Add(f.lengths)
	if got := f.claim(1); len(got) != 0 {
		t.Fatalf("claimed %+v below the floor", got)
	}
	f.lengths += 2 * time.Hour
	if got := f.claim(1); len(got) != 1 {
		t.Error("the row below the floor is not found when all are looked at")
	}
}

func TestTheExtendedLayoutIsRefused(t *testing.T) {
	f := newFixture(t, jobstest.SQLite, false)
	if _, err := tables.CreateTables(bg, f.db.DB, tables.Extended, "x_"); err != nil {
		t.Fatal(err)
	}
	opened, err := tables.Open(bg, f.db.DB, tables.Options{Registry: jobs.NewRegistry(), Prefix: "x_"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(opened, "database", "w"); err == nil {
		t.Error("a table that Laravel cannot use is taken")
	}
}

func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(payload("A", `"timeout":0,"backoff":[1,2],`)))
	f.Add([]byte(`{"job":{},"timeout":"9","delay":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, whole := range []bool{true, false} {
			e, ok := readEnvelope(data, whole)
			limit, _ := e.timeout()
			if ok != (e.Job != "") || limit < 0 || slices.ContainsFunc(e.backoff(), func(d time.Duration) bool {
				return d < 0
			}) {
				t.Errorf("%+v", e)
			}
		}
	})
}

// How long a queue waits is the wait of its oldest due job of PHP that nobody has.
func TestTheOldestJobSaysHowLongAQueueWaits(t *testing.T) {
	each(t, func(f *fixture) {
		waits := func(want time.Duration, when string) {
			f.t.Helper()
			if got, err := f.Waits(bg, "default"); err != nil || got != want {
				f.t.Errorf("%s: the queue waits %s, %v; want %s", when, got, err, want)
			}
		}
		for range 2 * waitRows {
			f.push("default", `{"job":"test.ours","data":{}}`)
		}
		f.push("other", payload("Elsewhere", ""))
		f.ahead = time.Minute
		waits(0, "with jobs of ours")
		first := f.push("default", payload("First", ""))
		f.exec(fmt.Sprintf("UPDATE jobs SET available_at = available_at + 30 WHERE id = %d", first))
		f.ahead += 20 * time.Second
		waits(0, "before it is due")
		f.push("default", payload("Second", ""))
		f.ahead += 40 * time.Second
		waits(40*time.Second, "with two due")
		f.claim(2)
		waits(0, "when they are claimed")
	})
}
