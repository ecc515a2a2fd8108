package cli

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// TestEveryFigureIsTheSameEverywhere makes a mixed set of jobs and compares
// what pages, API, command line and metrics say of it with counts by this
// test's own SQL.
func TestEveryFigureIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			s := newMixedSite(t, engine)
			s.pages()
			s.api()
			s.commands()
			s.metrics()
			s.queues()
			s.periods()
			s.endedJobsAreWhole()
		})
	}
}

// mixedSite has jobs in each state, on several queues.
type mixedSite struct {
	t     *testing.T
	db    *jobstest.Database
	dsn   string
	admin http.Header
	*service
}

var mixedEnv = []string{"CMSJOBS_QUEUE_INTERNAL_ROWS=cmsjobs.probe", "CMSJOBS_NOTIFY_MAIL=false",
	"CMSJOBS_NOTIFY_CMS=false", "CMSJOBS_CONDITIONS_OFF=failure_rate"}

func newMixedSite(t *testing.T, engine jobstest.Engine) *mixedSite {
	t.Helper()
	s := &mixedSite{t: t, db: jobstest.Open(t, engine), admin: http.Header{"Authorization": {"Basic YWRtaW46c2VjcmV0"}}}
	if _, err := tables.CreateTables(t.Context(), s.db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	s.dsn = "--dsn=" + s.db.DSN
	if engine == jobstest.SQLite {
		path := jobstest.SQLiteFile(s.db.DSN)
		s.dsn = "--dsn=sqlite:" + path
	}
	s.fill()
	s.service = newService(t, "http: {public_metrics: true, admin_password: secret}\nqueue: {worker: false, "+
		"internal_rows: [cmsjobs.probe]}\nschedule: {enabled: false}\nnotify: {mail: false, cms: false}\n", s.dsn)
	s.service.start()
	return s
}

func (s *mixedSite) run(args ...string) result {
	s.t.Helper()
	r := call(s.t, mixedEnv, append([]string{s.dsn}, args...)...)
	want(s.t, r, 0)
	return r
}

func (s *mixedSite) enqueue(queue, payload string, more ...string) string {
	s.t.Helper()
	return answer[struct{ ID string }](s.t,
		s.run(append([]string{"--json", "enqueue", "cmsjobs.probe", payload, "--queue", queue}, more...)...)).ID
}

// fill makes jobs that completed, failed, are retried, were retried by hand,
// were cancelled or released, wait, are delayed, run, or belong to PHP.
func (s *mixedSite) fill() {
	s.t.Helper()
	for range 3 {
		s.enqueue("default", `{}`)
	}
	for _, data := range []string{`{}`, `{"fail":"in its last attempt"}`} {
		s.insert("default", `{"type":"cmsjobs.probe","maxTries":1,"data":`+data+`,"metadata":{"basket":7}}`, 0, nil)
	}
	s.insert("default", `{"type":"cmsjobs.probe","data":{},"metadata":{"basket":7}}`, 3600, nil)
	s.enqueue("other", `{}`)
	for _, cause := range []string{"disk is full", "disk is full", "no such user"} {
		s.enqueue("default", `{"fail":"`+cause+`"}`, "--max-attempts", "1")
	}
	var byHand []string
	for range 2 {
		byHand = append(byHand, s.enqueue("other", `{"fail":"no such user"}`, "--max-attempts", "1"))
	}
	s.enqueue("default", `{"fail":"again later"}`)
	s.enqueue("other", `{"fail":"again later"}`)
	s.run("work", "--stop-when-empty", "--queue", "default,other")
	s.exec("UPDATE jobs SET available_at = available_at + 3600") // the retried ones wait
	for _, id := range byHand {
		s.run("failed", "retry", id, "--payload", `{}`)
	}
	s.run("work", "--stop-when-empty", "--queue", "other")
	waits := answer[struct {
		Items []struct{ ID string }
	}](s.t, s.run("--json", "jobs", "list", "--status", "queued", "--text", "basket"))
	s.run("jobs", "cancel", waits.Items[0].ID)
	s.run("jobs", "cancel", s.enqueue("other", `{}`, "--delay", "1h"))
	s.enqueue("other", `{}`, "--delay", "1h")
	s.enqueue("default", `{}`, "--delay", "2h")
	s.enqueue("default", `{}`)
	s.enqueue("paused", `{}`)
	s.run("pause", "paused")
	for _, due := range []int{0, 0, 7200} {
		s.insert("mail", phpPayload, due, nil)
	}
	s.insert("default", `{"type":"cmsjobs.probe","data":{}}`, 0, time.Now().Unix())
	s.exec("INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at) VALUES "+
		"('8d2c0a9e-0000-4000-8000-000000000001', 'database', 'mail', ?, 'RuntimeException: no', ?)",
		phpPayload, time.Now().UTC().Format(time.DateTime))
	// One end is older than an hour, one attempt was released, one died with its worker.
	s.exec("UPDATE cmsjobs_runs SET ended_at = ended_at - 5400000 WHERE id = (SELECT m FROM (SELECT MIN(id) AS m " +
		"FROM cmsjobs_runs WHERE outcome = 'retried') AS x)")
	for _, outcome := range []string{"released", "crashed"} {
		s.exec(`INSERT INTO cmsjobs_runs (job_id, uuid, type, queue, attempt, outcome, worker, lease, ended_at,
			duration_ms, wait_ms, created_at)
			SELECT job_id, uuid, type, queue, attempt, '` + outcome +
			`', worker, '', ended_at, duration_ms, wait_ms, created_at FROM cmsjobs_runs WHERE id = (SELECT MAX(id) FROM cmsjobs_runs)`)
	}
}

const phpPayload = `{"uuid":"8d2c0a9e-0000-4000-8000-000000000000","displayName":"App\\Jobs\\Hello","job":"Illuminate\\Queue\\CallQueuedHandler@call","maxTries":null,"data":{"commandName":"App\\Jobs\\Hello","command":"O:14:\"App\\Jobs\\Hello\":0:{}"}}`

func (s *mixedSite) exec(statement string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Exec(s.db.Rebind(statement), args...); err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
}

func (s *mixedSite) insert(queue, payload string, due int, reserved any) {
	s.t.Helper()
	now := time.Now().Unix()
	s.exec("INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at) VALUES (?, ?, 0, ?, "+
		"?, ?)", queue, payload, reserved, now+int64(due), now)
}

// Counts by SQL of the test's own.
const (
	waitingRows = "FROM jobs WHERE reserved_at IS NULL"
	ours        = " AND payload NOT LIKE '%CallQueuedHandler%'"
)

func due() string { return fmt.Sprintf(" AND available_at <= %d", time.Now().Unix()) }

func (s *mixedSite) count(from string) int64 {
	s.t.Helper()
	var n int64
	if err := s.db.Get(&n, "SELECT COUNT(*) "+from); err != nil {
		s.t.Fatalf("%s: %v", from, err)
	}
	return n
}

func (s *mixedSite) runs(condition string) int64 {
	return s.count("FROM cmsjobs_runs WHERE " + condition)
}

// figures are the truth, by name; all are different from 0 and most from one
// another, or the comparison would show little.
func (s *mixedSite) figures() map[string]int64 {
	s.t.Helper()
	f := map[string]int64{
		"waiting": s.count(waitingRows), "queued": s.count(waitingRows + ours + due()),
		"foreign":    s.count(waitingRows + " AND payload LIKE '%CallQueuedHandler%'"),
		"processing": s.count("FROM jobs WHERE reserved_at IS NOT NULL"), "failed": s.count("FROM failed_jobs"),
		"completed": s.runs("outcome = 'completed'"), "cancelled": s.runs("outcome = 'cancelled'"),
		"ends": s.runs("outcome IN ('completed', 'failed')"),
	}
	f["delayed"] = s.count(waitingRows+ours) - f["queued"]
	for name, n := range f {
		if n == 0 {
			s.t.Fatalf("the mixed set has no %s jobs: %v", name, f)
		}
	}
	if f["failed"] == s.runs("outcome = 'failed'") || f["waiting"] == f["queued"]+f["delayed"] {
		s.t.Fatalf("the mixed set shows no difference: %v", f)
	}
	return f
}

func (s *mixedSite) same(where string, got, want int64) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s: %d, by SQL %d", where, got, want)
	}
}

func (s *mixedSite) page(path string) string {
	s.t.Helper()
	status, text := s.try("GET", path, "", s.admin)
	if status != http.StatusOK {
		s.t.Fatalf("%s: %d %s", path, status, text)
	}
	return string(text)
}

// pageThatSays asks for a page until it says all texts: what takes long to count is
// left out of a page's first answers on a busy machine.
func (s *mixedSite) pageThatSays(path string, texts ...string) (page string) {
	s.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		page = s.page(path)
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(page, text) }) {
			return page
		}
	}
	return page
}

// shown is the number that a pattern finds in a page.
func (s *mixedSite) shown(page, pattern string) int64 {
	s.t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(page)
	if m == nil {
		s.t.Errorf("the page does not show %s", pattern)
		return -1
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(m[1], "\u202f", ""), 10, 64)
	if err != nil {
		s.t.Error(err)
	}
	return n
}

var args = map[string]string{"queued": "Waiting", "processing": "Running", "completed": "Completed",
	"failed": "Failed", "cancelled": "Cancelled"}

func (s *mixedSite) pages() {
	f := s.figures()
	truth := map[string]int64{"queued": f["waiting"], "processing": f["processing"], "completed": f["completed"],
		"failed": f["failed"], "cancelled": f["cancelled"]}
	rate := fmt.Sprintf("%.1f %% of ended jobs completed", 100*float64(f["completed"])/float64(f["ends"]))
	overview, jobsPage := s.pageThatSays("/admin", rate), s.page("/admin/jobs")
	for status, n := range truth {
		if status != "cancelled" {
			s.same("tile "+status, s.shown(overview, `<span class="k">`+args[status]+
				`</span><span class="v">(?:<span\s+class="ink-bad">)?(\d+)`), n)
		}
		s.same("tab "+status, s.shown(jobsPage, `>`+args[status]+` <span\s+class="n(?: bad)?">(\d+)`), n)
		s.same("rows of the list "+status, int64(strings.Count(s.page("/admin/jobs?status="+status), `id="j-`)), n)
	}
	s.same("tile delayed", s.shown(overview, `(\d+) delayed`), f["delayed"])
	s.same("tile PHP", s.shown(overview, `(\d+) of PHP`), f["foreign"])
	if !strings.Contains(overview, rate) {
		s.t.Errorf("the overview does not say %q", rate)
	}
	s.same("the failed page", s.shown(s.page("/admin/failed"), `(\d+) (?:failed )?jobs`), f["failed"])
	filtered := s.page("/admin/jobs?queue=other")
	for status, from := range map[string]string{"queued": waitingRows + " AND queue = 'other'",
		"failed": "FROM failed_jobs WHERE queue = 'other'", "completed": "FROM cmsjobs_runs WHERE outcome = " +
			"'completed' AND queue = 'other'"} {
		s.same("tab "+status+" of the queue other", s.shown(filtered, `>`+args[status]+` <span\s+class="n(?: bad)?">(\d+)`),
			s.count(from))
	}
}

func (s *mixedSite) get(path string, into any) {
	s.t.Helper()
	s.ask(http.StatusOK, "GET", path, "", s.admin, into)
}

func (s *mixedSite) api() {
	f := s.figures()
	var stats map[string]any
	s.get("/api/v1/jobs/stats", &stats)
	for key, name := range map[string]string{"waiting": "waiting", "queued": "queued", "delayed": "delayed",
		"foreign": "foreign", "processing": "processing", "completed": "completed", "failed": "failed",
		"cancelled": "cancelled", "ended": "ends"} {
		n, _ := stats[key].(float64)
		s.same("/stats "+key, int64(n), f[name])
	}
	all := int64(0)
	for status, name := range map[string]string{"queued": "waiting", "processing": "processing",
		"completed": "completed", "failed": "failed", "cancelled": "cancelled"} {
		s.same("total of /jobs?status="+status, s.total("/api/v1/jobs?limit=1&status="+status), f[name])
		s.same("total of both /jobs?status="+status, s.total("/api/jobs?limit=1&status="+status), f[name])
		all += f[name]
	}
	s.same("total of /jobs", s.total("/api/v1/jobs?limit=1"), all)
	s.same("total of /failed", s.total("/api/v1/failed?limit=1"), f["failed"])
	// PHP failed one, too
	s.same("total of /jobs of a type", s.total("/api/v1/jobs?limit=1&type=cmsjobs.probe"),
		all-s.count("FROM jobs WHERE queue = 'mail'")-1)
	s.same("total of /runs", s.total("/api/v1/runs?limit=1"), s.runs("1 = 1"))
	s.same("total of /runs of a queue", s.total("/api/v1/runs?limit=1&queue=other"), s.runs("queue = 'other'"))
	var groups struct{ Items []struct{ Count int64 } }
	s.get("/api/v1/failed/groups", &groups)
	sum := int64(0)
	for _, g := range groups.Items {
		sum += g.Count
	}
	s.same("the causes together", sum, f["failed"])
}

func (s *mixedSite) total(path string) int64 {
	s.t.Helper()
	var list struct{ Total int64 }
	s.get(path, &list)
	return list.Total
}

func (s *mixedSite) commands() {
	f := s.figures()
	stats := answer[map[string]any](s.t, s.run("--json", "jobs", "stats"))
	text := s.run("jobs", "stats").out
	for _, name := range []string{"queued", "delayed", "foreign", "processing", "completed", "failed", "cancelled"} {
		n, _ := stats[name].(float64)
		s.same("jobs stats --json "+name, int64(n), f[name])
		label := map[string]string{"foreign": "PHP's own"}[name]
		if label == "" {
			label = name
		}
		s.same("jobs stats "+name, s.shown(text, label+` (\d+)`), f[name])
	}
	for state, name := range map[string]string{"queued": "waiting", "failed": "failed", "completed": "completed",
		"cancelled": "cancelled", "processing": "processing"} {
		list := answer[struct{ Total int64 }](s.t, s.run("--json", "jobs", "list", "--limit", "1", "--status", state))
		s.same("jobs list --status "+state, list.Total, f[name])
	}
	groups := answer[struct{ Items []struct{ Count int64 } }](s.t, s.run("--json", "failed", "groups")).Items
	sum := int64(0)
	for _, g := range groups {
		sum += g.Count
	}
	s.same("failed groups", sum, f["failed"])
	findings := call(s.t, mixedEnv, s.dsn, "doctor").out
	s.same("doctor", s.shown(findings, `(\d+) jobs? failed within a day`), f["failed"])
}

func (s *mixedSite) metrics() {
	f := s.figures()
	_, text := s.try("GET", "/metrics", "", nil)
	for _, state := range []string{"queued", "delayed", "processing", "foreign", "failed"} {
		sum := int64(0)
		for _, m := range regexp.MustCompile(`(?m)^cmsjobs_queue_jobs\{queue="[^"]*",status="`+state+`"\} (\d+)$`).
			FindAllStringSubmatch(string(text), -1) {
			n, _ := strconv.ParseInt(m[1], 10, 64) // digits only
			sum += n
		}
		s.same("cmsjobs_queue_jobs "+state, sum, f[state])
	}
}

func (s *mixedSite) queues() {
	type queue struct {
		Name                                 string
		Queued, Delayed, Processing, Foreign int64
	}
	var list struct{ Items []queue }
	s.get("/api/v1/queues", &list)
	stats := answer[struct{ Queues []queue }](s.t, s.run("--json", "jobs", "stats"))
	page := s.page("/admin/queues")
	if len(list.Items) < 4 || len(stats.Queues) != len(list.Items) {
		s.t.Fatalf("queues: %+v and %+v", list.Items, stats.Queues)
	}
	for i, q := range list.Items {
		on := " AND queue = '" + q.Name + "'"
		truth := queue{Name: q.Name, Queued: s.count(waitingRows + ours + due() + on),
			Processing: s.count("FROM jobs WHERE reserved_at IS NOT NULL" + on),
			Foreign:    s.count(waitingRows + " AND payload LIKE '%CallQueuedHandler%'" + on)}
		truth.Delayed = s.count(waitingRows+on) - truth.Queued - truth.Foreign
		if q != truth {
			s.t.Errorf("/queues: %+v, by SQL %+v", q, truth)
		}
		if q := stats.Queues[i]; q.Name != truth.Name || q.Queued != truth.Queued || q.Delayed != truth.Delayed ||
			q.Processing != truth.Processing || q.Foreign != truth.Foreign {
			s.t.Errorf("jobs stats: %+v, by SQL %+v", q, truth)
		}
		if !strings.Contains(page, truth.Name) {
			s.t.Errorf("the page of queues has no %s", truth.Name)
		}
	}
}

// periods compares attempts of the last hour.
func (s *mixedSite) periods() {
	within := fmt.Sprintf(" AND ended_at >= %d", time.Now().Add(-time.Hour).Truncate(time.Minute).UnixMilli())
	completed, attempts, failed := s.runs("outcome = 'completed'"+within),
		s.runs("outcome IN ('failed', 'retried', 'crashed')"+within), s.runs("outcome = 'failed'"+within)
	var flow struct {
		Items []struct {
			Completed, Failed int64
			FailedAttempts    int64 `json:"failed_attempts"`
		}
	}
	s.get("/api/v1/throughput?since=1h&step=1m", &flow)
	var sum [3]int64
	for _, x := range flow.Items {
		sum[0], sum[1], sum[2] = sum[0]+x.Completed, sum[1]+x.FailedAttempts, sum[2]+x.Failed
	}
	s.same("/throughput completed", sum[0], completed)
	s.same("/throughput failed_attempts", sum[1], attempts)
	s.same("/throughput failed", sum[2], failed)
	line := fmt.Sprintf("%d of %d attempts failed in the last hour; %d of them failed permanently", attempts,
		attempts+completed, failed)
	// plots come when they are counted
	overview := s.pageThatSays("/admin?range=1h", line, `data-legend="throughput"`)
	if !strings.Contains(overview, line) {
		s.t.Errorf("the overview does not say %q:\n%s", line,
			regexp.MustCompile(`[^>]*in the last hour[^<]*`).FindString(overview))
	}
	s.same("chart of failed attempts", s.shown(overview, `Retried <b>(\d+)`)+s.shown(overview, `Failed <b>(\d+)`),
		attempts)
	s.same("chart of completed attempts", s.shown(overview, `Completed <b>(\d+)`), completed)
}

// endedJobsAreWhole looks for what the history must have kept of ended jobs.
func (s *mixedSite) endedJobsAreWhole() {
	for _, status := range []string{"completed", "failed", "cancelled"} {
		withMetadata := 0
		var list struct {
			Items []struct {
				ID, Type string
				Attempts int
				Created  time.Time `json:"enqueued_at"`
				RunAt    time.Time `json:"run_at"`
				Metadata map[string]any
				Foreign  bool
			}
		}
		s.get("/api/v1/jobs?status="+status, &list)
		for _, j := range list.Items {
			if j.Foreign {
				continue
			}
			if n, _ := j.Metadata["basket"].(float64); n == 7 {
				withMetadata++
			}
			// they were delayed by an hour or more
			early := status == "cancelled" && time.Until(j.RunAt) < 30*time.Minute
			if j.Created.IsZero() || j.RunAt.Before(j.Created.Add(-time.Second)) || early ||
				(j.Attempts == 0) != (status == "cancelled") {
				s.t.Errorf("%s job: %+v", status, j)
			}
		}
		if withMetadata != 1 {
			s.t.Errorf("%d %s jobs show their metadata", withMetadata, status)
		}
	}
}
