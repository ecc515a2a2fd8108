package cli

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/worker"
)

// differences are the rows of the table in docs/specifications.md that this test
// carries out: their names, in order.
func differences(t *testing.T) (names []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "specifications.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile(`(?m)^\| (S\d[^|]*) \|`).FindAllStringSubmatch(string(page), -1) {
		names = append(names, strings.TrimSpace(row[1]))
	}
	return names
}

// TestTheExamplesOfTheSpecificationsOverHTTP sends the requests of S1, S2 and S4
// as they are written there, and looks for every field that they show. What
// differs is a row of docs/specifications.md, which is carried out here.
func TestTheExamplesOfTheSpecificationsOverHTTP(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	s := startService(t, "queue: {poll_first: 20ms, poll: 100ms}\nschedule: {enabled: false}\nnotify: {mail: false}\n",
		dsn)
	admin := bearer(s.token("admin"))
	runMailDigest(t, dsn)
	var workers struct{ Items []struct{ ID string } }
	for end := time.Now().Add(time.Minute); len(workers.Items) < 2 && time.Now().Before(end); time.Sleep(
		20 * time.Millisecond) {
		s.ask(200, "GET", "/api/v1/workers", "", admin, &workers) // ours, and that of the example
	}

	var seen []string
	differs := func(name string, ok bool, format any) {
		t.Helper()
		seen = append(seen, name)
		if !ok {
			t.Errorf("docs/specifications.md says otherwise of %q: %v", name, format)
		}
	}
	fields := func(what string, got map[string]any, names ...string) {
		t.Helper()
		for _, name := range names {
			if _, there := got[name]; !there {
				t.Errorf("%s has no %s: %v", what, name, got)
			}
		}
	}

	// S1, "Enqueue": word for word.
	var made map[string]any
	s.ask(201, "POST", "/api/jobs/enqueue", `{
    "topic": "mail_digest",
    "payload": {"userId": "123"},
    "runAt": "2026-01-08T12:00:00Z",
    "maxRetries": 5
}`, admin, &made)
	fields("the answer to S1's enqueue", made, "id", "topic", "status", "run_at", "created")
	if made["topic"] != "mail_digest" || made["status"] != "pending" || made["run_at"] != "2026-01-08T12:00:00Z" {
		t.Errorf("%v", made)
	}
	id, _ := made["id"].(string)
	s.awaitEnd(id, admin)

	// S1, "Get", of the completed job.
	var job map[string]any
	s.ask(200, "GET", "/api/jobs/"+id, "", admin, &job)
	fields("S1's job", job, "id", "topic", "payload", "status", "run_at", "retries", "max_retries", "created", "updated")
	if job["status"] != "completed" || job["retries"] != 0.0 {
		t.Errorf("%v", job)
	}
	differs("S1 max_retries of an ended job", job["max_retries"] == 2.0, job) // its program announced the type

	// S1, "List" and "Stats".
	var list map[string]any
	s.ask(200, "GET", "/api/jobs?topic=mail_digest&status=pending&limit=20&offset=0", "", admin, &list)
	fields("S1's list", list, "items", "total", "limit", "offset")
	var stats map[string]any
	s.ask(200, "GET", "/api/jobs/stats", "", admin, &stats)
	fields("S1's stats", stats, "pending", "processing", "completed", "failed", "success_rate", "avg_execution_time")

	var probe map[string]any
	s.ask(201, "POST", "/api/jobs/enqueue", `{"topic":"cmsjobs.probe","payload":{},"runAt":"2036-01-08T12:00:00Z"}`,
		admin, &probe)
	probeID, _ := probe["id"].(string)
	var shown map[string]any
	s.ask(200, "GET", "/api/jobs/"+probeID, "", admin, &shown)
	differs("S1 max_retries", shown["max_retries"] == 2.0, shown)
	_, locked := shown["locked_until"]
	differs("S1 locked_until", !locked, shown)
	s.ask(204, "DELETE", "/api/jobs/"+probeID, "", admin, nil)

	// S2: the list, by status and type; retry and cancel.
	var admins struct{ Items []map[string]any }
	s.ask(200, "GET", "/api/admin/jobs?status=succeeded&type=mail_digest", "", admin, &admins)
	if len(admins.Items) != 1 {
		t.Fatalf("%v", admins.Items)
	}
	fields("S2's job", admins.Items[0], "id", "type", "payload", "status", "attempts", "maxAttempts", "runAt",
		"succeededAt", "createdAt", "updatedAt")
	differs("S2 maxAttempts", shown["max_attempts"] == 3.0, shown)
	status, answer := s.try("POST", "/api/admin/jobs/"+probeID+"/cancel", "{}", admin)
	differs("S2 cancel", status == 409, string(answer))

	// S4: its words are read.
	var cron map[string]any
	s.ask(201, "POST", "/api/jobs/enqueue", `{"jobType":"send_notification","payload":{"title":"t"},`+
		`"scheduledFor":"2036-01-08T12:00:00Z","maxRetries":3}`, admin, &cron)
	fields("the answer to S4's job", cron, "id", "status", "run_at")
	status, answer = s.try("POST", "/api/jobs/enqueue", `{"jobType":"send_notification","payload":{"title":"t"},`+
		`"retryDelayMs":5000}`, admin)
	differs("S4 retryDelayMs", status == 422, string(answer))
	status, answer = s.try("POST", "/api/jobs/enqueue", `{"jobType":"send_notification","payload":{"title":"t"},`+
		`"priority":5}`, admin)
	differs("S4 priority", status == 422 && strings.Contains(string(answer), "no column"), string(answer))
	_, its := cron["jobType"]
	differs("S4 names in answers", !its && cron["topic"] != nil, cron)

	s.otherShapes(admin, differs)

	if want := differences(t); !slices.Equal(want, seen) {
		t.Errorf("docs/specifications.md has the rows %q; this test carries out %q", want, seen)
	}
}

// otherShapes sends what the specifications write otherwise than a request of this API.
func (s *service) otherShapes(admin map[string][]string, differs func(name string, ok bool, format any)) {
	s.t.Helper()
	for _, c := range []struct {
		name, body string
		status     int
		says       string
	}{
		{"S0 payload as a whole request", `{"type": "sitemap.generate", "force": false}`, 422, "belongs into"},
		{"S2 webhook.deliver", `{"type":"webhook.deliver","payload":{"event":"a","subscription":1}}`, 403,
			"made by the service itself"},
		{"S3 task", `{"type":"App\\Queue\\Tasks\\Reports\\Generate","data":{"foo":"bar"}}`, 422, "no type"},
		{"S3 queue by class", `{"type":"mail_digest","queue":"App\\Queue\\Queues\\Reports","data":{"userId":"123"}}`,
			422, "name of a queue"},
		{"S3 data that is no object", `{"type":"mail_digest","data":"bar"}`, 422, "object"},
	} {
		status, answer := s.try("POST", "/api/jobs/enqueue", c.body, admin)
		differs(c.name, status == c.status && strings.Contains(string(answer), c.says),
			fmt.Sprintf("%d %s", status, answer))
	}
}

// runMailDigest is the program of S1's example: it runs the type mail_digest.
func runMailDigest(t *testing.T, dsn string) {
	t.Helper()
	db, err := sql.Open("sqlite", strings.TrimPrefix(dsn, "--dsn=sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	w, err := worker.New(t.Context(), db, "sqlite", worker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	worker.Register(w, "mail_digest", func(_ context.Context, p map[string]any) error {
		if p["userId"] != "123" {
			text, _ := json.Marshal(p)
			return worker.Permanent(errors.New(string(text)))
		}
		return nil
	})
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := errors.Join(w.Stop(ctx), db.Close()); err != nil {
			t.Error(err)
		}
	})
}
