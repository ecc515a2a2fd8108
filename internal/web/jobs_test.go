package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	jobpages "github.com/cmsjobs/cmsjobs/internal/web/feature/jobs"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/compat"
)

// everywhere runs a test on each database.
func everywhere(t *testing.T, test func(t *testing.T, s *site), changes ...func(*config)) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) { test(t, newSite(t, engine, changes...)) })
	}
}

func TestAJobsWholeLifeOverHTTP(t *testing.T) {
	everywhere(t, func(t *testing.T, s *site) {
		at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		var made compat.S1Enqueued
		s.admin("POST", "/api/jobs/enqueue", map[string]any{"topic": "mail.send", "payload": map[string]any{
			"to": "a@b.example"}, "runAt": at, "maxRetries": 5}).want(t, 201).into(t, &made)
		if made.ID == "" || made.Topic != "mail.send" || made.Status != "pending" || !made.RunAt.Equal(at) ||
			made.Created.IsZero() {
			t.Errorf("enqueue: %+v", made)
		}
		var old compat.S1Job
		s.admin("GET", "/api/jobs/"+made.ID, nil).want(t, 200).into(t, &old)
		if job := old; job.ID != made.ID || job.Status != "pending" || job.MaxRetries != 5 || job.MaxAttempts != 6 ||
			job.Retries != 0 || !job.RunAt.Equal(at) || !strings.Contains(string(job.Payload), "a@b.example") {
			t.Errorf("show: %+v %s", job, job.Payload)
		}
		var job ops.JobView
		s.admin("GET", fmt.Sprintf("/api/v1/jobs/%d", old.Number), nil).want(t, 200).into(t, &job)
		if job.ID != made.ID {
			t.Errorf("by number: %+v", job)
		}
		s.work()
		s.admin("GET", "/api/v1/jobs/"+made.ID, nil).want(t, 200).into(t, &job)
		if job.Status != "queued" || job.Detail != "delayed" {
			t.Errorf("a job of the next hour ran: %+v", job)
		}
		s.admin("POST", "/api/jobs/"+made.ID+"/requeue", nil).want(t, 200)
		s.work()
		s.admin("GET", "/api/v1/jobs/"+made.ID, nil).want(t, 200).into(t, &job)
		if job.Status != "completed" || job.EndedAt.IsZero() || !strings.Contains(string(job.Result), "a@b.example") {
			t.Errorf("done: %+v", job)
		}
		s.admin("DELETE", "/api/jobs/"+made.ID, nil).want(t, 409)
		s.admin("POST", "/api/v1/jobs/"+made.ID+"/cancel", nil).want(t, 409)
		var again ops.JobView
		s.admin("POST", "/api/v1/jobs/"+made.ID+"/requeue", nil).want(t, 200).into(t, &again)
		if again.ID == made.ID || again.Status != "queued" || !strings.Contains(string(again.Payload), "a@b.example") {
			t.Errorf("a finished job again: %+v", again)
		}
		s.admin("DELETE", "/api/v1/jobs/"+again.ID, nil).want(t, 204)
		s.admin("GET", "/api/v1/jobs/"+again.ID, nil).want(t, 200).into(t, &again)
		if again.Status != "cancelled" {
			t.Errorf("a deleted waiting job is %s, want cancelled", again.Status)
		}
	})
}

func TestFailedJobsAreRetriedAndDeleted(t *testing.T) {
	everywhere(t, func(t *testing.T, s *site) {
		var ids []string
		for i := range 3 {
			ids = append(ids,
				s.enqueue(fmt.Sprintf(`{"type":"mail.send","payload":{"to":"u%d@b.example","subject":"fail"}}`, i)))
		}
		s.work()
		var list jobpages.S2List
		s.admin("GET", "/api/admin/jobs?status=failed&type=mail.send", nil).want(t, 200).into(t, &list)
		if len(list.Items) != 3 || list.Items[0].Status != "failed" || list.Items[0].FailedAt.IsZero() ||
			!strings.Contains(list.Items[0].LastError, "550") {
			t.Fatalf("list: %+v", list)
		}
		var groups jobpages.GroupList
		s.admin("GET", "/api/v1/failed/groups", nil).want(t, 200).into(t, &groups)
		if len(groups.Items) != 1 || groups.Items[0].Count != 3 {
			t.Errorf("groups: %+v", groups)
		}
		s.admin("POST", "/api/admin/jobs/"+ids[0]+"/retry", nil).want(t, 200)
		var dry ops.Changed
		s.admin("POST", "/api/v1/failed/retry", `{"type":["mail.send"],"dry_run":true}`).want(t, 200).into(t, &dry)
		if dry.Count != 2 || dry.Changed != 0 || !dry.DryRun {
			t.Errorf("dry run: %+v", dry)
		}
		s.admin("POST", "/api/v1/failed/retry", `{}`).want(t, 422)
		s.admin("POST", "/api/v1/failed/delete", map[string]any{"ids": ids[1:2]}).want(t, 200).into(t, &dry)
		if dry.Changed != 1 {
			t.Errorf("delete by id: %+v", dry)
		}
		s.admin("GET", "/api/v1/jobs/"+ids[1], nil).want(t, 404)
		s.admin("POST", "/api/v1/failed/retry", `{"all":true}`).want(t, 200).into(t, &dry)
		if dry.Changed != 1 {
			t.Errorf("retry all: %+v", dry)
		}
		var stats compat.S1Stats
		s.admin("GET", "/api/jobs/stats", nil).want(t, 200).into(t, &stats)
		if stats.Pending != 2 || stats.Failed != 0 {
			t.Errorf("stats: %+v", stats)
		}
	})
}

func TestTheSameKeyMakesOneJob(t *testing.T) {
	everywhere(t, func(t *testing.T, s *site) {
		body, key := `{"type":"cache.clear","payload":{"tags":["pages"]}}`, header("Idempotency-Key", "publish-17")
		var mu sync.Mutex
		ids := map[string]int{}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				a := s.admin("POST", "/api/v1/jobs", body, key)
				var got ops.Enqueued
				if err := json.Unmarshal(a.body, &got); err != nil || (a.status != 201 && a.status != 200) {
					t.Errorf("%d %s", a.status, a.body)
				}
				mu.Lock()
				ids[got.ID]++
				mu.Unlock()
			})
		}
		wg.Wait()
		var list jobpages.JobList
		s.admin("GET", "/api/v1/jobs", nil).want(t, 200).into(t, &list)
		if len(ids) != 1 || len(list.Items) != 1 {
			t.Errorf("%d ids, %d jobs", len(ids), len(list.Items))
		}
		s.work()
		var late ops.Enqueued
		s.admin("POST", "/api/v1/jobs", body, key).want(t, 200).into(t, &late)
		if ids[late.ID] == 0 || !late.Existing {
			t.Errorf("after the job ended: %+v", late)
		}
		s.admin("POST", "/api/v1/jobs", `{"type":"cache.clear","payload":{"tags":["posts"]}}`, key).want(t, 409)
		s.do("POST", "/api/v1/jobs", body, key, bearer(s.tokens[access.Enqueue])).want(t, 201) // another caller's key
	})
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	s := newSite(t, jobstest.SQLite, func(c *config) { c.BodyLimit = 1 << 16 })
	large := `{"type":"cache.clear","payload":{"x":"` + strings.Repeat("x", 1<<16) + `"}}`
	deep := `{"type":"cache.clear","payload":` + strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 101)
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"POST", "/api/v1/jobs", ``, 422, "type"},
		{"POST", "/api/v1/jobs", `{`, 400, "JSON"},
		{"POST", "/api/v1/jobs", `[]`, 400, "object"},
		{"POST", "/api/v1/jobs", `{} {}`, 400, "more than one"},
		{"POST", "/api/v1/jobs", "{\"type\":\"\xff\"}", 400, "UTF-8"},
		{"POST", "/api/v1/jobs", deep, 400, "deeper"},
		{"POST", "/api/v1/jobs", large, 413, "bytes"},
		{"POST", "/api/v1/jobs", `{"type":"nope"}`, 422, "mail.send"},
		{"POST", "/api/v1/jobs", `{"type":7}`, 422, "type"},
		{"POST", "/api/v1/jobs", `{"type":"mail.send","to":"a@b"}`, 422, "payload"},
		{"POST", "/api/v1/jobs", `{"type":"mail.send","payload":{"to":"nobody"}}`, 422, "no mail address"},
		{"POST", "/api/v1/jobs", `{"type":"mail.send","payload":[1]}`, 422, "payload"},
		{"POST", "/api/v1/jobs", `{"type":"cache.clear","max_attempts":0}`, 422, "1 to 255"},
		{"POST", "/api/v1/jobs", `{"type":"cache.clear","delay":-1}`, 422, "delay"},
		{"POST", "/api/v1/jobs", `{"type":"cache.clear","run_at":"soon"}`, 400, ""},
		{"POST", "/api/v1/jobs", `{"type":"cache.clear","run_at":"9999-01-01T00:00:00Z"}`, 422, "2105"},
		{"POST", "/api/v1/jobs", `{"type":"cache.clear","metadata":[1]}`, 422, "metadata"},
		{"POST", "/api/v1/jobs", `{"type":"cache.clear","id":"x"}`, 422, "UUID"},
		{"POST", "/api/v1/jobs/batch", `{"jobs":[]}`, 422, "1000"},
		{"POST", "/api/v1/jobs/batch", `{"jobs":[{"type":"cache.clear"},{"type":"nope"}]}`, 422, "Job 2"},
		{"POST", "/api/v1/jobs/bulk", `{"action":"explode","all":true}`, 422, "retry"},
		{"GET", "/api/v1/jobs?status=odd", ``, 400, "odd"},
		{"GET", "/api/v1/jobs?limit=x", ``, 400, "limit"},
		{"GET", "/api/v1/jobs?since=x", ``, 400, "since"},
		{"GET", "/api/v1/throughput?since=x", ``, 400, "since"},
		{"GET", "/api/v1/audit?cursor=%00", ``, 422, "cursor"},
		{"GET", "/api/v1/jobs/0b3e8c1e-0000-4000-8000-000000000000", ``, 404, ""},
		{"GET", "/api/v1/jobs/9999", ``, 404, ""},
		{"GET", "/api/v1/jobs/..%2f..%2fetc", ``, 404, ""},
		{"GET", "/api/v1/backups", ``, 404, "not configured"},
		{"GET", "/api/v1/nothing", ``, 404, ""},
		{"PUT", "/api/v1/jobs", ``, 405, ""},
	} {
		a := s.admin(c.method, c.path, c.body)
		var p web.Problem
		if a.status != c.status || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s %.60s: %d %s %s, want %d", c.method, c.path, c.body, a.status,
				a.header.Get("Content-Type"), a.body, c.status)
			continue
		}
		a.into(t, &p)
		if p.Status != c.status || p.Title == "" || p.Instance == "" || !strings.Contains(p.Detail, c.says) {
			t.Errorf("%s %s: %s; want %q in it", c.method, c.path, a.body, c.says)
		}
	}
	if a := s.admin("POST", "/api/v1/jobs", `topic=x`,
		header("Content-Type", "application/x-www-form-urlencoded")); a.status != http.StatusUnsupportedMediaType {
		t.Errorf("a form: %d", a.status)
	}
	var list jobpages.JobList
	s.admin("GET", "/api/v1/jobs", nil).want(t, 200).into(t, &list)
	if len(list.Items) != 0 {
		t.Errorf("refused requests left %d jobs", len(list.Items))
	}
}

func TestSecretsInPayloadsAreMasked(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	id := s.enqueue(
		`{"type":"mail.send","payload":{"to":"a@b.example","password":"hunter2","body":"private words"},"metadata":{"api_key":"k123","userId":900719925474099312}}`)
	for _, path := range []string{"/api/v1/jobs/" + id, "/api/v1/jobs?text=b.example", "/api/admin/jobs/" + id} {
		a := s.admin("GET", path, nil).want(t, 200)
		for _, secret := range []string{"hunter2", "private words", "k123"} {
			if strings.Contains(string(a.body), secret) {
				t.Errorf("%s shows %q", path, secret)
			}
		}
		if !strings.Contains(string(a.body), "a@b.example") {
			t.Errorf("%s hides what is no secret: %s", path, a.body)
		}
	}
	if a := s.admin("GET", "/api/v1/jobs/"+id, nil); !strings.Contains(string(a.body), "900719925474099312") {
		t.Errorf("a long number lost digits: %s", a.body)
	}
}

func TestDisabledJobsRunAtOnce(t *testing.T) {
	var doer jobpages.InlineExecutor
	var ended []string
	s := newSite(t, jobstest.SQLite, func(c *config) {
		doer = jobpages.NewInline(c.Registry, time.Now, func(_ context.Context, n jobs.Spec, end jobs.Settlement) {
			ended = append(ended, fmt.Sprint(n.Type, " ", end.Outcome))
		})
		c.Inline = doer
	})
	var got ops.Enqueued
	s.admin("POST", "/api/v1/jobs", `{"type":"mail.send","payload":{"to":"a@b.example"}}`).want(t, 200).into(t, &got)
	if got.Status != "completed" || !strings.Contains(string(got.Result), "a@b.example") {
		t.Errorf("%+v %s", got, got.Result)
	}
	s.admin("POST", "/api/v1/jobs", `{"type":"mail.send","payload":{"to":"a@b.example","subject":"fail"}}`).want(t,
		200).into(t, &got)
	if got.Status != "failed" || !strings.Contains(got.Error, "550") {
		t.Errorf("%+v", got)
	}
	s.admin("POST", "/api/v1/jobs", `{"type":"mail.send","payload":{"to":"a@b.example"},"delay":60}`).want(t, 422)
	if !slices.Equal(ended, []string{"mail.send completed", "mail.send failed"}) {
		t.Errorf("what was written of them: %v", ended)
	}
	var rows int
	if err := s.db.Get(&rows, "SELECT COUNT(*) FROM jobs"); err != nil || rows != 0 {
		t.Errorf("%d rows were enqueued (%v)", rows, err)
	}
}

func TestLargeChangesAreLeftToAJob(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	var batch jobpages.EnqueueBatch
	for i := range 1000 {
		batch.Jobs = append(batch.Jobs, jobpages.EnqueueRequest{
			Type: "mail.send", Payload: json.RawMessage(fmt.Sprintf(`{"to":"u%d@b.example","subject":"fail"}`, i))})
	}
	s.admin("POST", "/api/v1/jobs/batch", batch).want(t, 201)
	s.admin("POST", "/api/v1/jobs/batch", batch).want(t, 201)
	s.work()
	var answer ops.Changed
	s.admin("POST", "/api/v1/jobs/bulk", `{"action":"delete","type":["mail.send"]}`).want(t, 202).into(t, &answer)
	if answer.Count != 2000 || answer.Job == "" {
		t.Fatalf("%+v", answer)
	}
	s.work()
	var job ops.JobView
	s.admin("GET", "/api/v1/jobs/"+answer.Job, nil).want(t, 200).into(t, &job)
	var left int
	if err := s.db.Get(&left, "SELECT COUNT(*) FROM failed_jobs"); err != nil || left != 0 ||
		job.Status != "completed" || !strings.Contains(string(job.Result), "2000") {
		t.Errorf("%d are left (%v); the job: %s %s", left, err, job.Status, job.Result)
	}
}

// accepted is a result that says what it holds.
type accepted struct {
	Accepted string `json:"accepted"`
}

func (a accepted) Summary() (s phrase.Summary) {
	s.Say("The channel %s was notified.", a.Accepted)
	return s
}

// TestAResultIsReadOnTheJobsPage looks at a type whose results have a summary, and at
// one of which only the fields are known.
func TestAResultIsReadOnTheJobsPage(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	id := s.enqueue(`{"type":"mail.send","payload":{"to":"<b>@b.example"}}`)
	s.work()
	page := func(language string) string {
		return string(s.do("GET", "/admin/jobs/"+id, nil, basic("admin", "right"),
			header("Accept-Language", language)).want(t, 200).body)
	}
	if got := page("en"); !strings.Contains(got, `<td class="wrap-code">accepted</td><td class="wrap-code">&lt;b&gt;@`) ||
		!strings.Contains(got, "<summary>As JSON</summary>") {
		t.Errorf("the fields are not a table: %s", got)
	}
	jobs.Results[accepted](s.registry, mailKind)
	for language, want := range map[string]string{"en": "<p>The channel &lt;b&gt;@b.example was notified.</p>",
		"vi": "<p>Đã báo cho kênh &lt;b&gt;@b.example.</p>"} {
		if got := page(language); !strings.Contains(got, want) {
			t.Errorf("%s: %q is not on the page: %s", language, want, got)
		}
	}
}
