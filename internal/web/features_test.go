package web_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/binlog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/remote"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/feature"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/analytics"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/backups"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/health"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/mail"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/media"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/tokens"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/usage"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/webhooks"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// features stands for the handlers: one thing in each.
type features struct {
	schedule jobs.ScheduleRecord
	slots    int // of all workers
}

func receipt() (jobs.Receipt, error) {
	return jobs.Receipt{UUID: "0b3e8c1e-0000-4000-8000-000000000001"}, nil
}

func one[T any](item T) (jobs.List[T], error) { return jobs.List[T]{Items: []T{item}, Total: 1}, nil }

func (h *features) Workers(context.Context) ([]jobs.WorkerRecord, error) {
	return []jobs.WorkerRecord{
		{Alive: true, SeenAt: noon, WorkerInfo: jobs.WorkerInfo{ID: "host:1:a", Status: "running", StartedAt: noon,
			Slots: 2, ConfiguredSlots: 2, MaxSlots: jobs.MaxSlots, Running: []jobs.RunningJob{{UUID: "u", Type: "mail.send", Since: noon}}, PHP: php}}}, nil
}

// php are PHP processes, one with a job.
var php = []jobs.PHPProcess{{Queue: "php", PID: 4711, StartedAt: noon, MemoryBytes: 33 << 20, Done: 7,
	Job:      &jobs.RunningJob{UUID: "p", Type: `App\Jobs\Import`, Queue: "php", Attempt: 2, Since: noon},
	Deadline: noon.Add(time.Minute)}, {Queue: "php", PID: 4712, StartedAt: noon}}

func (h *features) Stop(_ context.Context, id string) (bool, error) { return id == "host:1:a", nil }
func (h *features) Restart(context.Context) error                   { return nil }
func (h *features) Scale(_ context.Context, id string, n int) (bool, error) {
	if id == "" {
		h.slots = n
	}
	return true, nil
}
func (h *features) OrderedSlots(context.Context) (int, error) { return h.slots, nil }
func (h *features) Schedules(context.Context) ([]jobs.ScheduleRecord, error) {
	return []jobs.ScheduleRecord{h.schedule}, nil
}
func (h *features) RunSchedule(context.Context, string) (jobs.Receipt, error) { return receipt() }
func (h *features) ChangeSchedule(_ context.Context, _ string, c jobs.ScheduleChange) error {
	if c.Cron != nil && *c.Cron == "never" {
		return errors.Join(jobs.ErrInvalid, errors.New("the cron line cannot be read"))
	}
	if c.Paused != nil {
		h.schedule.Paused = *c.Paused
	}
	return nil
}
func (h *features) Ticks(context.Context, string, jobs.Page) (jobs.List[jobs.TickRecord], error) {
	return one(jobs.TickRecord{Entry: "sitemap", Tick: noon, At: noon, Outcome: "enqueued"})
}
func (h *features) Tick(context.Context) (ops.TickReport, error) {
	return ops.TickReport{Enqueued: 1, Ran: 2}, nil
}
func (h *features) Backups(context.Context) ([]backups.Backup, error) {
	return []backups.Backup{{ID: "b.tar.zst", Size: 5, CreatedAt: noon, VerifiedAt: &noon, Status: "complete",
		Usable: true, Database: true, Origin: "own", Kept: "younger than 3 days", KeptUntil: &noon}}, nil
}
func (h *features) OpenBackup(context.Context, string) (io.ReadCloser, backups.Backup, error) {
	return io.NopCloser(strings.NewReader("bytes")), backups.Backup{ID: "b.tar.zst", Size: 5}, nil
}
func (h *features) PlanRestore(_ context.Context, id string, part backups.RestorePart) (backups.RestorePlan, error) {
	if id != "b.tar.zst" {
		return backups.RestorePlan{}, jobs.ErrNotFound
	}
	plan := restore.Plan{NewFiles: 2, ChangedFiles: 3, Unread: part == backups.RestoreAll,
		Warnings: []string{"the collation differs"}}
	if part != backups.RestoreFiles {
		plan.Database, plan.Tables = "cms", []restore.TableChange{{Name: "posts", RowsNow: 50, RowsBackup: 53},
			{Name: "tags", RowsNow: -1, RowsBackup: 7}}
	}
	return backups.RestorePlan{Summary: plan.Summary(), Unread: plan.Unread, Confirm: "cms-" + string(part)}, nil
}
func (h *features) RestoreBackup(_ context.Context, _ string, part backups.RestorePart, confirm string,
	_ backups.RestoreAllowance) (jobs.Receipt, error) {
	if confirm != "cms-"+string(part) {
		return jobs.Receipt{}, jobs.ErrConflict
	}
	return receipt()
}
func (h *features) BackupContents(_ context.Context, id, pattern string) (backups.Contents, error) {
	if id != "b.tar.zst" {
		return backups.Contents{}, jobs.ErrNotFound
	}
	c := backups.Contents{Tables: []backups.Table{{Name: "posts", Rows: 60}, {Name: "cache", Without: true}},
		Folders: []backups.Folder{{Name: "uploads/news", Files: 2, Bytes: 7}}}
	if pattern != "" {
		c.Files, c.More = []backups.File{{Name: "uploads/news/a b.jpg", Bytes: 5, Modified: noon}}, 3
	}
	return c, nil
}
func (h *features) BackupFile(_ context.Context, _, name string) (io.ReadCloser, error) {
	if name != "uploads/news/a b.jpg" {
		return nil, jobs.ErrNotFound
	}
	return io.NopCloser(strings.NewReader("bytes")), nil
}
func (h *features) PlanPost(_ context.Context, _ string, post int64) (string, error) {
	return fmt.Sprintf("post-%d", post), nil
}
func (h *features) RestorePost(_ context.Context, _ string, post int64, confirm string) (jobs.Receipt, error) {
	if confirm != fmt.Sprintf("post-%d", post) {
		return jobs.Receipt{}, jobs.ErrConflict
	}
	return receipt()
}
func (h *features) PlanMoment(_ context.Context, at, into string) (backups.MomentPlan, error) {
	moment, err := time.Parse("2006-01-02T15:04:05", at)
	if err != nil {
		return backups.MomentPlan{}, jobs.ErrConflict
	}
	plan := restore.MomentPlan{At: moment, New: into != "", Database: "cms", Backup: "b", Destination: "local",
		Snapshot: noon, WithoutRows: []string{"cache", "sessions"},
		Result: binlog.Result{Transactions: 3, Last: noon, Next: noon.Add(time.Minute)}}
	return backups.MomentPlan{At: moment, Into: into, Backup: "b", Destination: "local", Summary: plan.Summary(),
		Confirm: "moment-1"}, nil
}
func (h *features) RestoreMoment(_ context.Context, p backups.MomentPlan, confirm string) (jobs.Receipt, error) {
	if confirm != p.Confirm {
		return jobs.Receipt{}, jobs.ErrConflict
	}
	return receipt()
}
func (h *features) Moments(context.Context) ([]backups.Moments, error) {
	return []backups.Moments{{Destination: "local", From: noon, Until: noon.Add(time.Hour), Bytes: 5,
		Missing: "the file log.000009 is not archived"}}, nil
}
func (h *features) BackupHealth(context.Context) (backups.BackupHealth, error) {
	health := backups.BackupHealth{Verified: &noon, VerifiedID: "b", Warnings: []string{
		"the newest good backup is 40h old"}}
	for _, fault := range []string{"unreadable", "damaged", "locked", "held", "unverified"} {
		health.Repositories = append(health.Repositories, backups.RepositoryFault{Fault: fault, Destination: "local",
			Detail: "8"})
	}
	return health, nil
}
func (h *features) DeleteBackup(_ context.Context, id string) error {
	if id != "b.tar.zst" {
		return jobs.ErrNotFound
	}
	return nil
}
func (h *features) Mails(context.Context, mail.MailQuery, jobs.Page) (jobs.List[mail.Mail], error) {
	return one(mail.Mail{ID: "1", To: "a@b", At: noon, Status: "accepted", Kept: true})
}
func (h *features) Mail(context.Context, string) (mail.Mail, error) {
	return mail.Mail{ID: "1", At: noon}, nil
}
func (h *features) Templates(context.Context) ([]mail.MailTemplate, error) {
	return []mail.MailTemplate{{Name: "welcome", Origin: "own"}, {Name: "promo", Origin: "folder", Locales: []string{
		"vi"}}, {Name: "cms:plugins/contact/notice", Origin: "cms"}}, nil
}
func (h *features) PreviewTemplate(_ context.Context, name, locale string) (mail.TemplatePreview, error) {
	switch name {
	case "welcome":
		return mail.TemplatePreview{Subject: "Welcome " + locale, HTML: "<h1>Hello</h1>", Text: "Hello Ann",
			Sample: json.RawMessage(`{"name":"Ann"}`)}, nil
	case "promo":
		return mail.TemplatePreview{Problem: "line 3 cannot be read"}, nil
	}
	return mail.TemplatePreview{}, jobs.ErrNotFound
}
func (h *features) MailAgain(context.Context, string) (jobs.Spec, error) {
	return jobs.Spec{Type: "mail.send", Data: []byte(`{"to":"a@example.com"}`)}, nil
}
func (h *features) Suppressions(context.Context, jobs.Page) (jobs.List[mail.Suppression], error) {
	return one(mail.Suppression{Address: "a@b", Reason: "550", CreatedAt: noon})
}
func (h *features) Suppress(context.Context, mail.Suppression) error { return nil }
func (h *features) Unsuppress(context.Context, string) error         { return nil }
func (h *features) Webhooks(context.Context) ([]webhooks.Webhook, error) {
	return []webhooks.Webhook{{ID: "1", URL: "https://x", Events: []string{}, Secret: "whsec_hidden"}}, nil
}
func (h *features) SaveWebhook(_ context.Context, w webhooks.Webhook) (webhooks.Webhook, error) {
	if w.ID == "" {
		w.ID, w.Secret = "1", "whsec_new"
	}
	return w, nil
}
func (h *features) DeleteWebhook(context.Context, string) error { return nil }
func (h *features) Deliveries(context.Context, string, jobs.Page) (jobs.List[webhooks.Delivery], error) {
	return one(webhooks.Delivery{ID: "1", At: noon, Status: 200})
}
func (h *features) Redeliver(context.Context, string) (jobs.Receipt, error) { return receipt() }
func (h *features) MediaStatus(context.Context) (media.MediaStatus, error) {
	return media.MediaStatus{Pictures: 3}, nil
}
func (h *features) Regenerate(context.Context, bool) (int, error) { return 3, nil }
func (h *features) Report(context.Context, analytics.AnalyticsQuery) (analytics.AnalyticsReport, error) {
	return analytics.AnalyticsReport{}, nil
}
func (h *features) SitemapStatus(context.Context) (sitemap.SitemapStatus, error) {
	return sitemap.SitemapStatus{}, nil
}
func (h *features) StorageUsage(context.Context) ([]usage.UsageItem, error) {
	return []usage.UsageItem{{Name: "cache"}}, nil
}

// ports are all of the features.
func (h *features) ports() feature.Ports {
	return feature.Ports{Backups: h, Mail: mail.Ports{Log: h, Templates: h, Suppressions: h}, Webhooks: h, Media: h,
		Analytics: h, Sitemap: h, Usage: h}
}

// program stands for the workers of other programs.
type program struct{}

func (program) Register(context.Context, string, remote.Registration) (remote.Registered, error) {
	return remote.Registered{ID: "0123456789abcdef", Lease: 30 * time.Second, Queues: []string{"default"}}, nil
}
func (program) Claim(context.Context, string, string, int, time.Duration) ([]remote.Handed, remote.Orders, error) {
	return []remote.Handed{{Lease: "l", Timeout: time.Minute, Job: jobs.Job{UUID: "u", Type: "shop.resize",
		Data: []byte(`{}`), Metadata: []byte(`{}`)}}}, remote.Orders{}, nil
}
func (program) Beat(string, string, []remote.Beat) ([]remote.Status, remote.Orders, error) {
	return []remote.Status{{Lease: "l", Status: remote.Running}}, remote.Orders{}, nil
}
func (program) End(context.Context, string, string, string, remote.Outcome) error { return nil }
func (program) Leave(string, string) error                                        { return nil }

func furnished(c *config) {
	c.Remote = program{}
	h := &features{schedule: jobs.ScheduleRecord{Name: "sitemap", Type: "cache.clear", Cron: "0 2 * * *", Zone: "UTC",
		Next: []time.Time{noon}, Last: &jobs.TickRecord{Tick: noon, At: noon, Outcome: "enqueued"}}}
	c.Workers, c.Schedules, c.Ticker = h, h, h
	c.Batches = oneBatch{}
	c.Parts = h.ports()
	c.Settings = func() []web.Setting {
		return []web.Setting{{Name: "mail.password", Value: "hunter2", Origin: ".env"},
			{Name: "queue", Value: "cmsjobs"}}
	}
	c.Breakers = func(context.Context) ([]explain.Breaker, error) {
		return []explain.Breaker{{Name: "smtp", Types: []string{"mail.send"}, Until: time.Now().Add(time.Minute)}}, nil
	}
}

// TestEveryRouteKeepsItsContract asks each route for a success; site.do holds
// each answer against the document.
func TestEveryRouteKeepsItsContract(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	failing := func() string {
		id := s.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example","subject":"fail"}}`)
		s.work()
		return id
	}
	delayed := func() string { return s.enqueue(`{"type":"cache.clear","delay":3600}`) }
	bodies := map[string]string{
		"jobs.enqueue": `{"type":"cache.clear"}`, "jobs.enqueueBatch": `{"jobs":[{"type":"cache.clear"}]}`,
		"jobs.bulk":       `{"action":"retry","all":true}`,
		"failed.retryAll": `{"all":true}`, "failed.deleteAll": `{"all":true}`,
		"schedules.change": `{"cron":"0 3 * * *"}`,
		"suppressions.add": `{"address":"a@b","reason":"asked","created_at":"2026-11-21T12:00:00Z"}`,
		"webhooks.add":     `{"id":"","url":"https://x","events":["job.failed"],"enabled":true}`,
		"webhooks.change":  `{"id":"1","url":"https://x","events":[],"enabled":true}`,
		"media.regenerate": `{"only_missing":true}`, "backups.restorePost": `{"confirm":"post-7"}`,
		"backups.restoreMoment": `{"confirm":"moment-1"}`,
		"workers.scale":         `{"slots":3}`, "workers.scaleAll": `{"reset":true}`,
		"workers.register":  `{"name":"shop","slots":1,"types":[{"type":"shop.resize"}]}`,
		"workers.claim":     `{"limit":1}`,
		"workers.heartbeat": `{"jobs":[{"lease":"l"}]}`, "workers.complete": `{"lease":"l"}`,
		"workers.fail": `{"lease":"l","error":"x"}`, "workers.release": `{"lease":"l"}`,
		"session.create": `{"name":"admin","password":"right"}`, "tokens.create": `{"name":"x","scopes":["read"]}`,
	}
	for _, r := range allRoutes() {
		if r.Page {
			continue // page_test.go
		}
		id := "1"
		switch {
		case strings.HasPrefix(r.Name, "failed."):
			id = failing()
		case strings.HasPrefix(r.Name, "jobs."):
			id = delayed()
		case strings.HasPrefix(r.Name, "backups."):
			id = "b.tar.zst"
		case r.Name == "workers.stop", r.Name == "workers.scale":
			id = "host:1:a"
		case r.Name == "tokens.revoke":
			var made tokens.TokenCreated
			s.admin("POST", "/api/v1/tokens", bodies["tokens.create"]).into(t, &made)
			id = made.Token.ID
		}
		path := strings.NewReplacer(":id", id, ":name", "sitemap", ":post", "7", ":address", "a@b", ":at",
			"2026-11-21T12:00:00").Replace(r.Path)
		if r.Name == "queues.pause" { // no job, worker or setting knows it
			path += "?force=true"
		}
		if r.Name == "analytics.report" {
			path += "?since=2026-11-01&until=2026-11-21"
		}
		if r.Name == "backups.file" {
			path += "?name=uploads/news/a%20b.jpg"
		}
		a := s.admin(r.Method, path, bodies[r.Name])
		if want := max(r.Status, 200); a.status != want {
			t.Errorf("%s %s: %d, want %d: %s", r.Method, path, a.status, want, a.body)
		}
		for _, secret := range []string{"hunter2", "whsec_hidden"} {
			if bytes.Contains(a.body, []byte(secret)) {
				t.Errorf("%s shows %s", path, secret)
			}
		}
	}
}

func TestRefusalsOfHandlersAreShown(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	s.admin("PATCH", "/api/v1/schedules/sitemap", `{"cron":"never"}`).want(t, 422)
	s.admin("PATCH", "/api/v1/schedules/nope", `{"cron":"* * * * *"}`).want(t, 404)
	s.admin("DELETE", "/api/v1/backups/other", nil).want(t, 404)
	s.admin("POST", "/api/v1/workers/other/stop", nil).want(t, 404)
	var paused ops.ScheduleView
	s.admin("POST", "/api/v1/schedules/sitemap/pause", nil).want(t, 200).into(t, &paused)
	if !paused.Paused {
		t.Error("a paused entry is shown as ticking")
	}
}

func TestQueuesPauseContinueAndClear(t *testing.T) {
	everywhere(t, func(t *testing.T, s *site) {
		id := s.enqueue(`{"type":"cache.clear"}`)
		s.enqueue(`{"type":"cache.clear","delay":60}`)
		s.admin("POST", "/api/v1/queues/cmsjobs/pause", nil).want(t, 200)
		var why ops.Explanation
		s.admin("GET", "/api/v1/explain/"+id, nil).want(t, 200).into(t, &why)
		if len(why.Reasons) == 0 || why.Reasons[0].Code != "paused" {
			t.Errorf("%+v", why)
		}
		var changed ops.Changed
		s.admin("POST", "/api/v1/queues/cmsjobs/continue", nil).want(t, 200).into(t, &changed)
		if changed.Changed != 1 {
			t.Errorf("continue: %+v", changed)
		}
		var cleared ops.Changed
		s.admin("POST", "/api/v1/queues/cmsjobs/clear?dry_run=1", nil).want(t, 200).into(t, &cleared)
		if cleared.Count != 2 || cleared.Changed != 0 {
			t.Errorf("dry: %+v", cleared)
		}
		s.admin("POST", "/api/v1/queues/cmsjobs/clear", nil).want(t, 200).into(t, &cleared)
		if cleared.Changed != 2 {
			t.Errorf("clear: %+v", cleared)
		}
	}, furnishedWorkers)
}

// furnishedWorkers gives the site workers that listen to another queue.
func furnishedWorkers(c *config) { c.Workers = &features{} }

func TestHealthSaysWhatIsWrong(t *testing.T) {
	var down bool
	s := newSite(t, jobstest.SQLite, func(c *config) {
		c.Ready = []health.Check{{Name: "database", Do: func(context.Context) error {
			if down {
				return errors.New("dial tcp 10.0.0.5:3306: refused")
			}
			return nil
		}}}
	})
	s.do("GET", "/readyz", nil).want(t, 200)
	down = true
	a := s.do("GET", "/readyz", nil).want(t, 503)
	if !bytes.Contains(a.body, []byte(`"database"`)) || bytes.Contains(a.body, []byte("10.0.0.5")) {
		t.Errorf("%s", a.body)
	}
	s.do("GET", "/livez", nil).want(t, 200)
}

func TestMetricsHaveTheirNames(t *testing.T) {
	m := health.NewMetrics("1.2.3", func(jobType string) bool { return jobType == "mail.send" })
	s := newSite(t, jobstest.SQLite, func(c *config) {
		c.Metrics, c.PublicMetrics, c.Workers, c.Figures, c.Conditions = m.Registry, true, &features{}, figures, watched
	})
	m.Enqueued("cmsjobs", "mail.send")
	m.Ended(jobs.Settlement{Claimed: jobs.Claimed{Job: jobs.Job{Type: "mail.send", Queue: "cmsjobs"}, Rescued: true},
		Outcome: jobs.Completed, Duration: time.Second, Wait: time.Second})
	m.Missed("sitemap")
	m.Mailed("accepted", 1)
	s.enqueue(`{"type":"cache.clear"}`)
	if _, err := s.store.Heartbeat(t.Context(), jobs.WorkerInfo{ID: "host:1:a", PHP: php}); err != nil {
		t.Fatal(err)
	}
	text := s.do("GET", "/metrics", nil).want(t, 200).body
	for _, want := range []string{
		`cmsjobs_jobs_enqueued_total{queue="cmsjobs",type="mail.send"} 1`,
		`cmsjobs_jobs_processed_total{outcome="completed",queue="cmsjobs",type="mail.send"} 1`,
		`cmsjobs_job_duration_seconds_count{type="mail.send"} 1`, `cmsjobs_job_wait_seconds_count{type="mail.send"} 1`,
		`cmsjobs_queue_jobs{queue="cmsjobs",status="queued"} 1`,
		`cmsjobs_queue_latency_seconds{queue="cmsjobs"}`, `cmsjobs_jobs_in_progress{type="mail.send"} 1`,
		`cmsjobs_jobs_in_progress{type="App\\Jobs\\Import"} 1`, `cmsjobs_php_processes{queue="php"} 2`,
		`cmsjobs_jobs_in_progress{type="cache.clear"} 0`, `cmsjobs_stalled_jobs_total 1`,
		`cmsjobs_schedule_last_success_timestamp_seconds{schedule="sitemap"}`,
		`cmsjobs_schedule_missed_total{schedule="sitemap"} 1`, `cmsjobs_backup_last_success_timestamp_seconds 1.`,
		`cmsjobs_schedule_last_success_timestamp_seconds{schedule="never"} 0`,
		`cmsjobs_backup_last_verified_timestamp_seconds`, `cmsjobs_backup_bytes 7`,
		`cmsjobs_mail_sent_total{outcome="accepted"} 1`, `cmsjobs_build_info{`,
		`cmsjobs_condition{name="no_worker",severity="failing"} 1`,
		`cmsjobs_condition{name="temp_databases_left",severity="warning"} 0`,
		`cmsjobs_condition{name="disk_full",severity="failing"} 0`,
		`cmsjobs_workers 2`, `cmsjobs_schedulers 1`, `cmsjobs_breaker_open{dependency="smtp:mail"} 1`,
		`cmsjobs_breaker_open{dependency="s3:files"} 0`, `cmsjobs_database_up 1`,
	} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("no %s", want)
		}
	}
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "cmsjobs_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// TestAWaitIsNoNews: a job that waits gets older each second. An event of that would make
// every open page load its figures again each second.
func TestAWaitIsNoNews(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	seen := s.listens("")
	s.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example"}}`)
	seen(`"waiting":1`)
	if _, err := s.db.Exec("UPDATE jobs SET available_at = available_at - 3600, created_at = created_at - 3600"); err != nil {
		t.Fatal(err)
	}
	seen("")
	s.enqueue(`{"type":"mail.send","payload":{"to":"b@b.example"}}`)
	var stats ops.StatsView
	if err := json.Unmarshal([]byte(strings.TrimPrefix(seen(`"waiting":2`), "stats ")), &stats); err != nil ||
		stats.OldestMS < time.Hour.Milliseconds() || stats.Queues[0].OldestMS < time.Hour.Milliseconds() {
		t.Errorf("the event says %+v, %v; it has the age", stats, err)
	}
}

// TestAFreshPageIsNotLoadedTwice: the first event of a page that has just been opened
// tells what the page does not show yet, or there is none.
func TestAFreshPageIsNotLoadedTwice(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	s.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example"}}`)
	page := string(s.do("GET", "/admin/jobs", nil, basic("viewer", "right")).want(t, 200).body)
	known := regexp.MustCompile(`sse-connect="/api/v1/events\?known=([0-9a-f]{16})"`).FindStringSubmatch(page)
	if known == nil {
		t.Fatal("the page does not say which state it shows")
	}
	s.listens(known[1])("")
	s.enqueue(`{"type":"mail.send","payload":{"to":"b@b.example"}}`)
	s.listens(known[1])(`"waiting":2`)
}

// listens returns a func that lets the server look for changes once, and wants one event
// with a text, or none.
func (s *site) listens(known string) func(want string) string {
	s.t.Helper()
	look, ok := s.server.Listen(known)
	if !ok {
		s.t.Fatal("nobody may listen")
	}
	return func(want string) string {
		s.t.Helper()
		all, err := look(s.t.Context())
		text := strings.Join(all, "")
		if err != nil || len(all) > 1 || len(all) == 1 != (want != "") || !strings.Contains(text, want) {
			s.t.Fatalf("events %q, not one with %q: %v", all, want, err)
		}
		return text
	}
}

func TestLiveChangesArriveAsEvents(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	served, stop := serve(t, s)
	r, err := http.NewRequestWithContext(t.Context(), "GET", served+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	bearer(s.tokens["read"])(r)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	next := func(name string) (data string) {
		for event := ""; lines.Scan(); {
			if word, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				event = word
			}
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok && event == name {
				return text
			}
		}
		t.Fatalf("the stream ended before an event %s: %v", name, lines.Err())
		return ""
	}
	if stats := next("stats"); !strings.Contains(stats, `"waiting":0`) {
		t.Errorf("first: %s", stats)
	}
	id := s.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example"}}`)
	if stats := next("stats"); !strings.Contains(stats, `"waiting":1`) {
		t.Errorf("after enqueuing: %s", stats)
	}
	s.work()
	var run ops.RunView
	if err := json.Unmarshal([]byte(next("run")), &run); err != nil || run.Job != id || run.Outcome != "completed" {
		t.Errorf("run: %+v, %v", run, err)
	}
	stop() // a server that stops ends its streams, or it would never stop
	for lines.Scan() {
	}
}
