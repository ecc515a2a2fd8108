package history

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// endedRun is a run as a test puts it into the history.
type endedRun struct {
	at             time.Time
	kind, queue    string
	outcome        string
	duration, wait int64
}

func (f *fixture) insertRuns(runs ...endedRun) {
	f.T.Helper()
	for i, r := range runs {
		f.DB.MustExec(fmt.Sprintf("INSERT INTO cmsjobs_runs (job_id, uuid, type, queue, attempt, outcome, worker, lease, "+
			"ended_at, duration_ms, wait_ms) VALUES (%d,'u%d','%s','%s',1,'%s','w','x',%d,%d,%d)", i, i, r.kind, r.queue,
			r.outcome, r.at.UnixMilli(), r.duration, r.wait))
	}
}

// seriesRuns are in four half hours: the first step has twenty attempts, the second seven types and
// one attempt of each other end, the third is empty, the fourth is now.
func seriesRuns(start time.Time) []endedRun {
	var runs []endedRun
	for i := range 20 {
		runs = append(runs, endedRun{start.Add(time.Duration(i) * time.Minute), "mail.send", "mail", "completed",
			int64(i + 1), 1000})
	}
	second := start.Add(30 * time.Minute)
	for i, kind := range []string{"a", "a", "a", "b", "b", "c", "c", "d", "d", "e", "f", "g"} {
		runs = append(runs, endedRun{second.Add(time.Duration(i) * time.Second), kind, "default", "completed", 5, 0})
	}
	for i, outcome := range []string{"failed", "retried", "crashed", "released", "cancelled"} {
		runs = append(runs, endedRun{second.Add(time.Duration(i) * time.Minute), "a", "default", outcome, 40_000, -7})
	}
	return append(runs, endedRun{start.Add(90*time.Minute + time.Second), "mail.send", "mail", "failed", 0, 0})
}

// TestSeriesAreExact counts by each split, from the runs themselves, from what is
// kept of them, and when they are deleted.
func TestSeriesAreExact(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
			f := openFixture(t, v, v.Database(t))
			now, err := f.Now(bg)
			if err != nil {
				t.Fatal(err)
			}
			start := now.Truncate(30 * time.Minute).Add(-90 * time.Minute)
			f.insertRuns(seriesRuns(start)...)
			f.seriesAre(t, f.Store, start)
			f.seriesAre(t, f.another(), start)
			f.DB.MustExec(fmt.Sprintf("DELETE FROM cmsjobs_runs WHERE ended_at < %d",
				start.Add(60*time.Minute).UnixMilli()))
			f.seriesAre(t, f.another(), start)
		})
	}
}

func (f *fixture) seriesAre(t *testing.T, s *Store, start time.Time) {
	t.Helper()
	want := map[jobs.SeriesSplit][]jobs.NamedCounts{
		jobs.ByOutcome: {{Name: "completed", Counts: []int64{20, 12, 0, 0}}, {Name: "retried", Counts: []int64{0, 2, 0, 0}},
			{Name: "failed", Counts: []int64{0, 1, 0, 1}}},
		jobs.ByQueue: {{Name: "mail", Counts: []int64{20, 0, 0, 1}}, {Name: "default", Counts: []int64{0, 15, 0, 0}}},
		jobs.ByType: {{Name: "mail.send", Counts: []int64{20, 0, 0, 1}}, {Name: "a", Counts: []int64{0, 6, 0, 0}},
			{Name: "b", Counts: []int64{0, 2, 0, 0}}, {Name: "c", Counts: []int64{0, 2, 0, 0}},
			{Name: "d", Counts: []int64{0, 2, 0, 0}}, {Name: "", Counts: []int64{0, 3, 0, 0}}},
	}
	ms := func(n, p50, p95, p99 int) jobs.Percentiles {
		return jobs.Percentiles{Attempts: int64(n), P50: time.Duration(p50) * time.Millisecond,
			P95: time.Duration(p95) * time.Millisecond, P99: time.Duration(p99) * time.Millisecond}
	}
	for by, counts := range want {
		got, err := s.Series(bg, 4, 30*time.Minute, by)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Since.Equal(start) || got.Step != 30*time.Minute || !reflect.DeepEqual(got.Counts, counts) {
			t.Errorf("by %s: since %s, %+v, want since %s, %+v", by, got.Since, got.Counts, start, counts)
		}
		// 1000 lies in 960 to 1023, 40,000 in 36,864 to 40,959, 19 and 20 in ranges of two
		if waits := []jobs.Percentiles{ms(20, 991, 991, 991), ms(15, 0, 0, 0), {}, ms(1, 0, 0, 0)}; !slices.Equal(got.Waits,
			waits) || got.AllWaits != ms(36, 991, 991, 991) {
			t.Errorf("waits %+v, all %+v", got.Waits, got.AllWaits)
		}
		if lasts := []jobs.Percentiles{ms(20, 10, 18, 20), ms(15, 5, 38911, 38911), {}, ms(1, 0, 0,
			0)}; !slices.Equal(got.Durations, lasts) || got.AllDurations != ms(36, 5, 38911, 38911) {
			t.Errorf("durations %+v, all %+v", got.Durations, got.AllDurations)
		}
	}
}

// TestRangesOfLengths compares what each server computes with its definition: the
// range holds the length and is at most an eighth of it wide.
func TestRangesOfLengths(t *testing.T) {
	var lengths []int64
	for x := int64(0); x < 1<<30; x += 1 + x/23 {
		lengths = append(lengths, x)
	}
	lengths = append(lengths, 15, 16, 17, 31, 32, 1<<30-1)
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
			f := openFixture(t, v, v.Database(t))
			for _, x := range lengths {
				first, width := rangeStart(f.rangeOf(x))
				if x < first || x >= first+width || width > max(x/8, 1) {
					t.Errorf("%d is in the range of %d from %d", x, width, first)
				}
			}
			for x, want := range map[int64]int{-1: 0, 1 << 30: lastRange, 1 << 40: lastRange} {
				if got := f.rangeOf(x); got != want {
					t.Errorf("%d is in range %d, want %d", x, got, want)
				}
			}
		})
	}
}

func (f *fixture) rangeOf(x int64) (n int) {
	f.T.Helper()
	if _, err := f.tables.QueryRow(bg, f.tables.OwnDB, []any{&n}, fmt.Sprintf("SELECT CAST(%s AS %s) FROM (SELECT "+
		"%d AS x) AS one", rangeSQL("x"), f.wholeNumber(), x)); err != nil {
		f.T.Fatal(err)
	}
	return n
}

func TestASeriesIsBounded(t *testing.T) {
	v := tablestest.Variant{Engine: jobstest.SQLite, Layout: tables.Stock}
	f := openFixture(t, v, v.Database(t))
	for _, c := range []struct {
		steps int
		step  time.Duration
	}{{60, time.Millisecond}, {1001, time.Second}, {0, time.Minute}, {-60, time.Minute}} {
		if got, err := f.Series(bg, c.steps, c.step, jobs.ByType); err == nil {
			t.Errorf("%d steps of %s: %d steps", c.steps, c.step, len(got.Waits))
		}
	}
	for _, steps := range []int{0, -60} { // since a moment that is still to come
		if got, err := f.Throughput(bg, steps, time.Minute); err != nil || len(got) != 0 {
			t.Errorf("%d steps: %d, %v", steps, len(got), err)
		}
	}
	if _, err := f.Throughput(bg, 10_001, time.Minute); err == nil {
		t.Error("10,001 steps are counted")
	}
}

// A run of a host whose clock stood in 1970 costs a statement or two, not one for each day
// since then.
func TestARunOfLongAgoCostsLittle(t *testing.T) {
	for _, v := range variants() {
		if v.Wall || v.Indexed || v.Layout == tables.Extended {
			continue
		}
		t.Run(v.String(), func(t *testing.T) {
			f := openFixture(t, v, v.Database(t))
			f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`))
			for _, c := range f.MustClaim(2) {
				f.MustSettle(tablestest.End(c, jobs.Completed))
			}
			f.DB.MustExec("UPDATE cmsjobs_runs SET ended_at = 1000 + id WHERE job_id = (SELECT MIN(job_id) FROM " +
				"(SELECT job_id FROM cmsjobs_runs) AS r)")
			asked := f.Tables.Statements()
			stats, err := f.Stats(bg)
			if err != nil || stats.Completed != 2 {
				t.Fatalf("%d completed, %v; want 2", stats.Completed, err)
			}
			if n := f.Tables.Statements() - asked; n > 40 {
				t.Errorf("the history is counted by %d statements, want 40 at most", n)
			}
		})
	}
}
