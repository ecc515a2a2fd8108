package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
	"github.com/cmsjobs/cmsjobs/internal/php/phpjob"
)

// TestHistory runs every promise of the history on all shapes of tables.
func TestHistory(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.String(), func(t *testing.T) {
			db := v.Database(t)
			for _, c := range []struct {
				name string
				test func(*testing.T, *fixture)
			}{
				{"a job is found wherever it lies", promiseFinds},
				{"pages meet each job once", promisePages},
				{"filters", promiseFilters},
				{"filters by worker and tag", promiseFiltersByWorkerAndTag},
				{"changes rows without a UUID", promiseChangesPlainRows},
				{"cancel", promiseCancels},
				{"run now", promiseRunsNow},
				{"retry", promiseRetries},
				{"retry edited", promiseRetriesEdited},
				{"delete and causes", promiseDeletes},
				{"stats", promiseStats},
				{"history", promiseHistory},
			} {
				t.Run(c.name, func(t *testing.T) {
					db.MustExec("DELETE FROM cmsjobs_failures")
					c.test(t, openFixture(t, v, db))
				})
			}
		})
	}
}

func (f *fixture) jobs(filter jobs.Filter) []jobs.Record {
	f.T.Helper()
	list, err := f.Jobs(bg, filter, jobs.Page{Limit: 200})
	if err != nil {
		f.T.Fatal(err)
	}
	if n, err := f.Count(bg, filter); err != nil || n != int64(len(list.Items)) {
		f.T.Errorf("Count = %d, %v; Jobs lists %d", n, err, len(list.Items))
	}
	return list.Items
}

// mustFail makes a job and lets it fail for good with a message.
func (f *fixture) mustFail(n jobs.Spec, message string) jobs.Job {
	f.T.Helper()
	f.MustEnqueue(n)
	got := f.MustClaim(1, "default", "other")
	if len(got) != 1 {
		f.T.Fatalf("claimed %d jobs", len(got))
	}
	e := tablestest.End(got[0], jobs.Failed)
	e.Error = message
	if err := f.MustSettle(e)[0]; err != nil {
		f.T.Fatal(err)
	}
	return got[0].Job
}

func one(data string) jobs.Spec {
	return jobs.Spec{Type: tablestest.Plain.Name, Data: json.RawMessage(data)}
}

func promiseFinds(t *testing.T, f *fixture) {
	check := func(id string, state jobs.Status, detail string) jobs.Record {
		t.Helper()
		r, err := f.Job(bg, id)
		if err != nil || r.Status != state || r.Detail != detail || r.Type != tablestest.Plain.Name {
			t.Errorf("Job(%s) = %q %q %q, %v; want %s %s", id, r.Status, r.Detail, r.Type, err, state, detail)
		}
		return r
	}
	uuid := f.MustEnqueue(one(`{"a":1}`))[0].UUID
	waiting := check(uuid, jobs.StatusQueued, "")
	if d := time.Since(waiting.EnqueuedAt); d < -time.Minute || d > 5*time.Minute {
		t.Errorf("enqueued at %s", waiting.EnqueuedAt)
	}
	later := f.MustEnqueue(one(`{}`).In(time.Hour))[0].UUID
	check(later, jobs.StatusQueued, "delayed")
	got := f.MustClaim(1)
	early := check(uuid, jobs.StatusProcessing, "")
	if d := time.Since(early.StartedAt); d < -time.Minute || d > 5*time.Minute {
		t.Errorf("before its worker's heartbeat it runs since %s", early.StartedAt)
	}
	if _, err := f.queue.Heartbeat(bg, jobs.WorkerInfo{ID: "host:1:x", Status: "running", Queues: []string{"default"},
		Running: []jobs.RunningJob{
			{ID: got[0].Job.ID, UUID: uuid, Since: time.Now(), Progress: &jobs.Progress{
				Done: 3, Total: 9}}}}); err != nil {
		t.Fatal(err)
	}
	running := check(uuid, jobs.StatusProcessing, "")
	if d := time.Since(running.StartedAt); d < -time.Minute || d > 5*time.Minute {
		t.Errorf("it runs since %s", running.StartedAt)
	}
	if running.Worker != "host:1:x" || running.Progress == nil || running.Progress.Done != 3 || running.Attempt != 1 {
		t.Errorf("the running job is %+v", running)
	}
	if err := f.MustSettle(tablestest.End(got[0], jobs.Completed))[0]; err != nil {
		t.Fatal(err)
	}
	done := check(uuid, jobs.StatusCompleted, "")
	if done.EnqueuedAt.Sub(waiting.EnqueuedAt).Abs() > time.Second {
		t.Errorf("the completed job was enqueued at %s, it says %s", waiting.EnqueuedAt, done.EnqueuedAt)
	}
	if done.Duration != 20*time.Millisecond || done.EndedAt.IsZero() || string(done.Payload) == "" {
		t.Errorf("the completed job is %+v", done)
	}
	failed := f.mustFail(one(`{}`), "no luck\nmore")
	dead := check(failed.UUID, jobs.StatusFailed, "")
	if dead.Attempt != 1 || dead.EnqueuedAt.IsZero() || dead.RunAt.IsZero() || dead.StartedAt.IsZero() {
		t.Errorf("the failed job lost its attempts or times: %+v", dead)
	}
	if !strings.HasPrefix(dead.Error, "no luck") || time.Since(dead.EndedAt).Abs() > 10*time.Minute {
		t.Errorf("the failed job is %+v", dead)
	}
	if r, err := f.Job(bg, later); err == nil {
		check(fmt.Sprint(r.ID), jobs.StatusQueued, "delayed")
	}
	if _, err := f.Job(bg, "no-such-id"); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("an unknown id: %v", err)
	}
	if _, err := f.Job(bg, "987654321"); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("an unknown number: %v", err)
	}
	f.InsertRaw("default", `{"type":"test.plain"}`)
	nameless := f.jobs(jobs.Filter{Statuses: []jobs.Status{jobs.StatusQueued}})[0]
	check(nameless.UUID, jobs.StatusQueued, "")
}

func promisePages(t *testing.T, f *fixture) {
	want := map[string]int{}
	for range 7 {
		for _, r := range f.MustEnqueue(one(`{}`), one(`{}`), one(`{}`)) {
			want[r.UUID]++
		}
		got := f.MustClaim(3)
		if errs := f.MustSettle(tablestest.End(got[0], jobs.Completed), tablestest.End(got[1], jobs.Released),
			tablestest.End(got[2], jobs.Failed)); errors.Join(errs...) != nil {
			t.Fatal(errs)
		}
	}
	for _, size := range []int{1, 4, 100} {
		met := map[string]int{}
		var last time.Time
		cursor := ""
		for range 50 {
			list, err := f.Jobs(bg, jobs.Filter{}, jobs.Page{Limit: size, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range list.Items {
				met[r.UUID]++
				when := record{Record: r}.when().Truncate(time.Second)
				if !last.IsZero() && when.After(last.Add(2*time.Second)) {
					t.Errorf("%s comes after %s", when, last)
				}
				last = when
			}
			if list.Total != int64(len(want)) {
				t.Errorf("Total = %d, want %d", list.Total, len(want))
			}
			if cursor = list.Next; cursor == "" {
				break
			}
		}
		if len(met) != len(want) {
			t.Errorf("pages of %d met %d jobs, want %d", size, len(met), len(want))
		}
		for uuid, n := range met {
			if n != 1 || want[uuid] != 1 {
				t.Errorf("pages of %d met %s %d times", size, uuid, n)
			}
		}
	}
	// A filter that only Go can decide is counted too where the tables are small.
	for _, limit := range []int{5, 100} {
		list, err := f.Jobs(bg, jobs.Filter{Types: []string{tablestest.Plain.Name}}, jobs.Page{Limit: limit})
		if err != nil || list.Total != int64(len(want)) {
			t.Errorf("of one type, by pages of %d: total %d, %v; want %d", limit, list.Total, err, len(want))
		}
	}
	if list, err := f.Jobs(bg, jobs.Filter{}, jobs.Page{Limit: 5, Offset: 18}); err != nil ||
		len(list.Items) != len(want)-18 {
		t.Errorf("the part from 18 on has %d jobs, %v", len(list.Items), err)
	}
	for _, bad := range []string{"x", "w", "q1", "w!"} {
		if _, err := f.Jobs(bg, jobs.Filter{}, jobs.Page{Cursor: bad}); err == nil {
			t.Errorf("the cursor %q is taken", bad)
		}
	}
}

func promiseFilters(t *testing.T, f *fixture) {
	f.MustEnqueue(one(`{"city":"Lima"}`), one(`{}`).On("other"), jobs.Spec{Type: tablestest.Limited.Name,
		Data: json.RawMessage(`{}`)})
	f.InsertRaw("default", php)
	dead := f.mustFail(one(`{"city":"Oslo 100%"}`).On("other"), "timeout after 30 s")
	for _, c := range []struct {
		name string
		f    jobs.Filter
		want int
	}{
		{"all", jobs.Filter{}, 5},
		{"type", jobs.Filter{Types: []string{tablestest.Plain.Name}}, 3},
		{"type and status", jobs.Filter{Types: []string{tablestest.Plain.Name}, Statuses: []jobs.Status{
			jobs.StatusFailed}}, 1},
		{"PHP's type", jobs.Filter{Types: []string{`App\Jobs\Mail`}}, 1},
		{"queue", jobs.Filter{Queues: []string{"other"}}, 2},
		{"text ignores case", jobs.Filter{Text: "LIMA"}, 1},
		{"text in an error", jobs.Filter{Text: "timeout after"}, 1},
		{"signs of LIKE are plain", jobs.Filter{Text: "100%"}, 1},
		{"signs of LIKE match nothing else", jobs.Filter{Text: "Li_a"}, 0},
		{"UUID", jobs.Filter{UUIDs: []string{dead.UUID, "none"}}, 1},
		{"since", jobs.Filter{Since: time.Now().Add(-time.Hour)}, 5},
		{"since tomorrow", jobs.Filter{Since: time.Now().Add(24 * time.Hour)}, 0},
		{"until an hour ago", jobs.Filter{Until: time.Now().Add(-time.Hour)}, 0},
		{"cause", jobs.Filter{Cause: Fingerprint(tablestest.Plain.Name, "timeout after 99 s")}, 1},
		{"processing", jobs.Filter{Statuses: []jobs.Status{jobs.StatusProcessing}}, 0},
	} {
		if got := f.jobs(c.f); len(got) != c.want {
			t.Errorf("%s: %d jobs, want %d", c.name, len(got), c.want)
		}
	}
	foreign := f.jobs(jobs.Filter{Types: []string{`App\Jobs\Mail`}})
	if len(foreign) == 1 && (!foreign[0].Foreign || foreign[0].UUID != "8a2e") {
		t.Errorf("PHP's job is %+v", foreign[0])
	}
}

// promiseFiltersByWorkerAndTag: who runs or ran a job is known wherever its row
// lies, and so are the tags of PHP's jobs.
func promiseFiltersByWorkerAndTag(t *testing.T, f *fixture) {
	dead := f.mustFail(one(`{"n":1}`), "it broke")
	f.MustEnqueue(one(`{"n":2}`), one(`{"n":3}`), one(`{"n":4}`))
	got := f.MustClaim(2)
	done := tablestest.End(got[0], jobs.Completed)
	done.Worker = "web-1:7:a"
	if err := f.MustSettle(done)[0]; err != nil {
		t.Fatal(err)
	}
	if _, err := f.queue.Heartbeat(bg, jobs.WorkerInfo{ID: "web-1:8:b", Status: "running", Queues: []string{"default"},
		Running: []jobs.RunningJob{{ID: got[1].Job.ID, UUID: got[1].Job.UUID, Since: time.Now()}}}); err != nil {
		t.Fatal(err)
	}
	f.InsertRaw("default", strings.Replace(php, `"maxTries":null`, `"maxTries":null,"tags":["App\\Post:5","two words"]`, 1))
	ended := tables.Run{Job: jobs.Job{ID: 99, UUID: "ended", Type: `App\Jobs\Mail`, Queue: "default",
		Metadata: json.RawMessage(phpjob.Mark)}, Outcome: "completed", Worker: "web-2:1:c",
		Data: json.RawMessage(`{"tags":["App\\Post:5"]}`)}
	own := tables.Run{Job: jobs.Job{ID: 98, UUID: "own", Type: "own", Queue: "default"}, Outcome: "completed",
		Worker: "web-22:1:c", Data: json.RawMessage(`{"tags":["App\\Post:5"]}`)}
	if err := f.Tables.InsertRuns(bg, f.Tables.OwnDB, []tables.Run{ended, own}); err != nil {
		t.Fatal(err)
	}
	failedBy := f.jobs(jobs.Filter{UUIDs: []string{dead.UUID}})[0].Worker
	for _, c := range []struct {
		name string
		f    jobs.Filter
		want []string
	}{
		{"a completed job's worker", jobs.Filter{Workers: []string{"web-1:7:a"}}, []string{got[0].Job.UUID}},
		{"a running job's worker", jobs.Filter{Workers: []string{"web-1:8:b"}}, []string{got[1].Job.UUID}},
		{"a host's workers", jobs.Filter{Workers: []string{"web-1"}}, []string{got[0].Job.UUID, got[1].Job.UUID}},
		{"a failed job's worker", jobs.Filter{Workers: []string{failedBy}, Statuses: []jobs.Status{jobs.StatusFailed}},
			[]string{dead.UUID}},
		{"half a host's name", jobs.Filter{Workers: []string{"web"}}, nil},
		{"signs of LIKE", jobs.Filter{Workers: []string{"web_1"}}, nil},
		{"a tag of PHP's jobs", jobs.Filter{Tags: []string{`App\Post:5`}}, []string{"8a2e", "ended"}},
		{"a tag with a space", jobs.Filter{Tags: []string{"two words"}}, []string{"8a2e"}},
		{"half a tag", jobs.Filter{Tags: []string{`App\Post`}}, nil},
	} {
		var ids []string
		for _, r := range f.jobs(c.f) {
			ids = append(ids, r.UUID)
		}
		slices.Sort(ids)
		slices.Sort(c.want)
		if !slices.Equal(ids, c.want) {
			t.Errorf("%s: %v, want %v", c.name, ids, c.want)
		}
	}
	list, err := f.Runs(bg, jobs.Filter{Workers: []string{"web-1"}}, jobs.Page{})
	if err != nil || len(list.Items) != 1 || list.Total != 1 {
		t.Errorf("runs of a host: %d of %d, %v", len(list.Items), list.Total, err)
	}
}

// A row that a person inserted carries no UUID: what it is shown by is what it
// is changed by.
func promiseChangesPlainRows(t *testing.T, f *fixture) {
	f.MustEnqueue(one(`{}`))
	for range 2 {
		f.InsertRaw("default", fmt.Sprintf(`{"type":%q,"data":{}}`, tablestest.Plain.Name))
	}
	list, err := f.Jobs(bg, jobs.Filter{}, jobs.Page{Limit: 5})
	if err != nil || len(list.Items) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	uuid := list.Items[0].UUID
	if r, err := f.Job(bg, uuid); err != nil || r.ID != list.Items[0].ID {
		t.Errorf("%+v, %v", r, err)
	}
	if n, err := f.Cancel(bg, jobs.Filter{UUIDs: []string{uuid}}, 1); err != nil || n != 1 {
		t.Errorf("Cancel = %d, %v", n, err)
	}
	if left := f.CountRows("SELECT COUNT(*) FROM jobs"); left != 2 {
		t.Errorf("%d rows are left, want the other two", left)
	}
	if r, err := f.Job(bg, uuid); err != nil || r.Status != jobs.StatusCancelled {
		t.Errorf("the row is %s, %v", r.Status, err)
	}
}

func promiseCancels(t *testing.T, f *fixture) {
	f.InsertRaw("default", php)
	waiting := f.MustEnqueue(one(`{}`).Unique("k"), one(`{}`), one(`{}`).On("other"))
	running := f.MustClaim(1, "other")[0]
	n, err := f.Cancel(bg, jobs.Filter{}, 0)
	if err != nil || n != 3 {
		t.Errorf("Cancel = %d, %v; want two waiting and one running", n, err)
	}
	if again, err := f.Cancel(bg, jobs.Filter{}, 0); err != nil || again != 0 {
		t.Errorf("the second Cancel = %d, %v: an order that stands is not given again", again, err)
	}
	if r, err := f.Job(bg, waiting[0].UUID); err != nil || r.Status != jobs.StatusCancelled {
		t.Errorf("the waiting job is %s, %v", r.Status, err)
	}
	orders, err := f.queue.Heartbeat(bg, jobs.WorkerInfo{ID: "host:1:x", Running: []jobs.RunningJob{
		{UUID: running.Job.UUID}}})
	if err != nil || !slices.Equal(orders.Cancelled, []string{running.Job.UUID}) {
		t.Errorf("the worker receives %+v, %v", orders, err)
	}
	if left := f.CountRows("SELECT COUNT(*) FROM jobs"); left != 2 {
		t.Errorf("%d rows are left, want PHP's and the running one", left)
	}
	if key := f.MustEnqueue(one(`{}`).Unique("k"))[0]; key.Existing {
		t.Error("the unique key of a cancelled job still holds")
	}
}

func promiseRunsNow(t *testing.T, f *fixture) {
	f.MustEnqueue(one(`{}`).In(time.Hour), one(`{}`).In(2*time.Hour), one(`{}`))
	if n, err := f.RunNow(bg, jobs.Filter{}, 0); err != nil || n != 2 {
		t.Errorf("RunNow = %d, %v", n, err)
	}
	if got := f.MustClaim(5); len(got) != 3 {
		t.Errorf("%d jobs are due, want 3", len(got))
	}
}

func promiseRetries(t *testing.T, f *fixture) {
	var uuids []string
	for i := range 3 {
		uuids = append(uuids, f.mustFail(one(fmt.Sprintf(`{"n":%d}`, i)).WithMaxAttempts(2), "e").UUID)
	}
	f.failedPHP()
	if n, err := f.Retry(bg, jobs.Filter{UUIDs: uuids[:1]}, 1); err != nil || n != 1 {
		t.Fatalf("Retry one = %d, %v", n, err)
	}
	got := f.MustClaim(5)
	if len(got) != 1 || got[0].Job.UUID != uuids[0] || got[0].Job.Attempt != 1 || got[0].Job.MaxAttempts != 2 ||
		string(got[0].Job.Data) != `{"n":0}` {
		t.Fatalf("the retried job is claimed as %+v", got)
	}
	if n, err := f.Retry(bg, jobs.Filter{}, 2); err != nil || n != 2 {
		t.Errorf("Retry at most two = %d, %v", n, err)
	}
	if n, err := f.Retry(bg, jobs.Filter{}, 0); err != nil || n != 1 {
		t.Errorf("Retry the rest = %d, %v", n, err)
	}
	var payload string
	t1 := f.t1()
	if _, err := f.tables.QueryRow(bg, f.DB.DB, []any{&payload}, "SELECT "+t1.Payload+" FROM jobs WHERE "+t1.Payload+
		" LIKE '%CallQueued%' AND attempts = 0"); err != nil || payload != php {
		t.Errorf("PHP's own job went back as %s, %v", payload, err)
	}
	if got := f.MustClaim(5); len(got) != 2 {
		t.Errorf("%d retried jobs are claimed, want our two", len(got))
	}
	if n := f.CountRows("SELECT COUNT(*) FROM failed_jobs"); n != 0 {
		t.Errorf("%d rows are left in failed_jobs", n)
	}
}

func (f *fixture) t1() *tables.JobsTable { return f.tables.Layout.Table() }

// failedPHP writes a failed job as Laravel does.
func (f *fixture) failedPHP() {
	f.T.Helper()
	columns, values := "connection, queue, payload, exception, failed_at",
		"'database', 'default', ?, 'ErrorException: x', "+f.tables.FailedAt(time.Now().Unix())
	args := []any{php}
	if f.tables.Failed.UUID {
		columns, values = "uuid, "+columns, "'8a2e', "+values
	}
	if _, err := f.tables.Exec(bg, f.DB.DB, "INSERT INTO failed_jobs ("+columns+") VALUES ("+values+")",
		args...); err != nil {
		f.T.Fatal(err)
	}
}

func promiseRetriesEdited(t *testing.T, f *fixture) {
	dead := f.mustFail(one(`{"to":"wrong"}`).WithMetadata(map[string]int{"userId": 1}), "e")
	receipt, err := f.RetryEdited(bg, dead.UUID, json.RawMessage(`{"to":"right"}`))
	if err != nil || receipt.UUID != dead.UUID {
		t.Fatalf("RetryEdited = %+v, %v", receipt, err)
	}
	got := f.MustClaim(1)
	if len(got) != 1 || string(got[0].Job.Data) != `{"to":"right"}` || string(got[0].Job.Metadata) != `{"userId":1}` ||
		got[0].Job.UUID != dead.UUID {
		t.Errorf("claimed %+v", got)
	}
	if _, err := f.RetryEdited(bg, dead.UUID, json.RawMessage(`{}`)); !errors.Is(err, jobs.ErrConflict) {
		t.Errorf("a job that is no longer failed: %v", err)
	}
	f.failedPHP()
	if _, err := f.RetryEdited(bg, fmt.Sprint(f.CountRows("SELECT MAX(id) FROM failed_jobs")),
		json.RawMessage(`{}`)); !errors.Is(err, jobs.ErrConflict) && !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("PHP's own job: %v", err)
	}
}

func promiseDeletes(t *testing.T, f *fixture) {
	f.mustFail(one(`{}`), `cannot reach 10.0.0.7:25: "refused"`)
	f.mustFail(one(`{}`), `cannot reach 10.0.0.8:587: "timed out"`)
	f.mustFail(one(`{}`), "disk is full")
	groups, err := f.Groups(bg, jobs.Filter{})
	if err != nil || len(groups) != 2 || groups[0].Count != 2 || !strings.Contains(groups[0].Message, "10.0.0.8") ||
		groups[0].Type != tablestest.Plain.Name {
		t.Fatalf("Groups = %+v, %v", groups, err)
	}
	byQueue, err := f.Groups(bg, jobs.Filter{Queues: []string{"default"}})
	if err != nil || len(byQueue) != 2 || byQueue[0].Cause != groups[0].Cause || byQueue[0].Count != 2 {
		t.Errorf("Groups of a queue = %+v, %v", byQueue, err)
	}
	// Somebody else takes a row away and adds one: PHP's queue:forget, its worker.
	f.DB.MustExec("DELETE FROM failed_jobs WHERE exception LIKE 'disk%'")
	f.failedPHP()
	groups, err = f.Groups(bg, jobs.Filter{})
	if err != nil || len(groups) != 2 || groups[1].Type != `App\Jobs\Mail` {
		t.Errorf("after PHP's changes Groups = %+v, %v", groups, err)
	}
	if n, err := f.Delete(bg, jobs.Filter{Cause: groups[0].Cause}, 0); err != nil || n != 2 {
		t.Errorf("Forget a cause = %d, %v", n, err)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM failed_jobs"); n != 1 {
		t.Errorf("%d failed jobs are left, want PHP's", n)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM cmsjobs_failures"); n != 1 {
		t.Errorf("%d rows are left in the index, want 1", n)
	}
}

func promiseStats(t *testing.T, f *fixture) {
	f.mustFail(one(`{}`), "e")
	f.MustEnqueue(one(`{}`), one(`{}`), one(`{}`).In(time.Hour), one(`{}`).On("other"))
	if errs := f.MustSettle(tablestest.End(f.MustClaim(1)[0], jobs.Completed)); errs[0] != nil {
		t.Fatal(errs)
	}
	f.MustClaim(1, "other")
	f.InsertRaw("default", php)
	if err := f.Pause(bg, "other", "me"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.queue.Heartbeat(bg, jobs.WorkerInfo{ID: "w", Queues: []string{"default", "idle"}}); err != nil {
		t.Fatal(err)
	}
	s, err := f.Stats(bg)
	if err != nil || s.Queued != 1 || s.Delayed != 1 || s.Processing != 1 || s.Completed != 1 || s.Failed != 1 ||
		s.SuccessRate != 0.5 || s.AverageDuration != 20*time.Millisecond {
		t.Errorf("Stats = %+v, %v", s, err)
	}
	byName := map[string]jobs.QueueStats{}
	for _, q := range s.Queues {
		byName[q.Queue] = q
	}
	if q := byName["default"]; q.Foreign != 1 || q.Workers != 1 || q.Queued != 1 {
		t.Errorf("default = %+v", q)
	}
	if q := byName["other"]; !q.Paused || q.Processing != 1 || q.Workers != 0 {
		t.Errorf("other = %+v", q)
	}
	if q := byName["idle"]; q.Workers != 1 {
		t.Errorf("idle = %+v", q)
	}
	workers, err := f.Workers(bg)
	if err != nil || len(workers) != 1 || !workers[0].Alive ||
		!slices.Equal(workers[0].Queues, []string{"default", "idle"}) {
		t.Errorf("Workers = %+v, %v", workers, err)
	}
}

func promiseHistory(t *testing.T, f *fixture) {
	f.MustEnqueue(one(`{}`))
	got := f.MustClaim(1)[0]
	e := tablestest.End(got, jobs.Retried)
	e.Lines = []jobs.LogLine{{At: time.Now(), Text: "first"}, {At: time.Now(), Text: "second"}}
	if errs := f.MustSettle(e); errs[0] != nil {
		t.Fatal(errs)
	}
	got = f.MustClaim(1)[0]
	if errs := f.MustSettle(tablestest.End(got, jobs.Completed)); errs[0] != nil {
		t.Fatal(errs)
	}
	runs, err := f.Runs(bg, jobs.Filter{UUIDs: []string{got.Job.UUID}}, jobs.Page{Limit: 1})
	if err != nil || len(runs.Items) != 1 || runs.Items[0].Outcome != "completed" || runs.Items[0].Attempt != 2 ||
		runs.Next == "" {
		t.Fatalf("Runs = %+v, %v", runs, err)
	}
	runs, err = f.Runs(bg, jobs.Filter{UUIDs: []string{got.Job.UUID}}, jobs.Page{Limit: 1, Cursor: runs.Next})
	if err != nil || len(runs.Items) != 1 || runs.Items[0].Outcome != "retried" || runs.Next != "" ||
		runs.Items[0].Wait != time.Second {
		t.Errorf("the next page = %+v, %v", runs, err)
	}
	lines, err := f.Log(bg, got.Job.UUID, 0)
	if err != nil || len(lines) != 2 || lines[0].Text != "first" {
		t.Errorf("Log = %+v, %v", lines, err)
	}
	flows, err := f.Throughput(bg, 60, time.Minute)
	if err != nil || len(flows) != 60 {
		t.Fatalf("Throughput has %d steps, %v", len(flows), err)
	}
	var done, failed int64
	for _, x := range flows {
		done, failed = done+x.Completed, failed+x.FailedAttempts
	}
	if done != 1 || failed != 1 {
		t.Errorf("Throughput counts %d completed and %d failed runs", done, failed)
	}
}

func TestFingerprintsSeeTheCauseNotTheCase(t *testing.T) {
	same := [][2]string{
		{"dial tcp 10.0.0.1:25: i/o timeout", "dial tcp 192.168.7.3:587: i/o timeout"},
		{`no row "a b" in posts`, `no row "c" in posts`},
		{"job 8a2ec4de-91f0-4d6e-b1a1-0f0e0d0c0b0a is gone", "job 11111111-2222-3333-4444-555555555555 is gone"},
		{"open /var/www/a.jpg: denied", "open /srv/site/b/c.png: denied"},
		{"mail to a@b.example refused\nstack 1", "mail to x.y@z.example refused\nother stack"},
		{"got 5 of 10 in 1.5s", "got 7 of 900 in 22.75s"},
	}
	for _, pair := range same {
		if Fingerprint("k", pair[0]) != Fingerprint("k", pair[1]) {
			t.Errorf("%q and %q are distinguished", pair[0], pair[1])
		}
	}
	if Fingerprint("k", "disk is full") == Fingerprint("k", "disk is gone") ||
		Fingerprint("a", "x") == Fingerprint("b", "x") {
		t.Error("different causes or types have one fingerprint")
	}
}

func FuzzFingerprint(f *testing.F) {
	f.Add("k", "dial tcp 10.0.0.1:25: \"x\" /a/b 'c")
	f.Fuzz(func(t *testing.T, kind, text string) {
		if got := Fingerprint(kind, text); len(got) != 16 || got != Fingerprint(kind, text) {
			t.Errorf("Fingerprint = %q", got)
		}
	})
}

// BenchmarkGroups lists the causes of 100,000 failed jobs on MariaDB.
func BenchmarkGroups(b *testing.B) {
	v := tablestest.Variant{Engine: jobstest.MariaDB, Layout: tables.Stock}
	f := openFixture(b, v, v.Database(b))
	f.DB.MustExec("SET @n = 0")
	f.DB.MustExec(`INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at)
		SELECT CONCAT('u', seq), 'database', 'default', '{"type":"test.plain","to":"x"}', CONCAT('cause ', CHAR(65 + seq
		MOD 20), ' of job ', seq), NOW() FROM ` + jobstest.Numbers(100000))
	if _, err := f.Groups(bg, jobs.Filter{}); err != nil { // indexes them
		b.Fatal(err)
	}
	for b.Loop() {
		if groups, err := f.Groups(bg, jobs.Filter{}); err != nil || len(groups) != 20 {
			b.Fatalf("%d groups, %v", len(groups), err)
		}
	}
}
