package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// plantedIn is how secrets come into payloads and errors. The number in each
// tells which one was found.
func plantedIn() (fields map[string]any, errors []string) {
	n := 0
	secret := func() string { n++; return fmt.Sprintf("PLANTED%02dvalue", n) }
	fields = map[string]any{
		"password": secret(), "db_pass": secret(), "pwd": secret(), "apiKey": secret(), "client_secret": secret(),
		"access_token": secret(), "authorization": "Bearer " + secret(), "Cookie": "session=" + secret(),
		"signature": secret(), "cvv": secret(), "dsn": "mysql://root:" + secret() + "@db/cms", "bearer": secret(),
		"pin": secret(), "nested": map[string]any{"list": []any{map[string]any{"private_key": secret()}}},
		"url":  "https://user:" + secret() + "@example.com/a?b=1&token=" + secret(),
		"link": "https://example.com/password/reset/" + secret() + "?email=a@b",
		"hook": "https://hooks.slack.com/services/T0/B0/" + secret(),
		"note": "use Bearer " + secret() + " and password=" + secret(), "json": `{"token":"` + secret() + `"}`,
		"jwt": "eyJhbGciOiJIUzI1NiJ9." + secret() + ".sig",
		// A field that the type does not have is named in the job's log.
		"password=" + secret(): "x",
	}
	for _, form := range []string{"connecting to mysql://cms:%s@db:3306/cms: refused",
		"GET https://example.com/?token=%s&a=1: 500", "cms:%s@tcp(127.0.0.1:3306)/cms: Access denied",
		"the server answered: Authorization: Bearer %s", "invalid api_key=%s", "redis://:%s@cache:6379: timeout"} {
		errors = append(errors, fmt.Sprintf(form, secret()))
	}
	return fields, errors
}

// collector keeps everything that it is sent.
type collector struct{ got jobstest.Log }

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.got.Write(body)
}

func (c *collector) text() string { return c.got.String() }

// TestPlantedSecretsAppearNowhereForAReader plants secrets of all types where
// they come from in real life, and looks for them wherever a reader can look:
// the API, pages, live events, metrics, the log, the history, traces, the
// process's arguments.
func TestPlantedSecretsAppearNowhereForAReader(t *testing.T) {
	t.Parallel()
	var traces collector
	sink := httptest.NewServer(&traces)
	defer sink.Close()
	dir := t.TempDir()
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	s := startService(t, fmt.Sprintf(`schedule: {enabled: false}
queue: {poll_first: 20ms, poll: 200ms}
telemetry: {traces: %q}
mail: {driver: files, dir: %q, from: editor@demo.example}
log: {level: debug}
http: {admin_password: PLANTEDconfigured, mask: ["mail.send:to"]}
`, sink.URL+"/v1/traces", filepath.Join(dir, "mails")), dsn)
	admin, reader := bearer(s.token("admin")), bearer(s.token("read"))

	events := listenTo(t, s, reader)
	last := plantAll(s, dsn, admin)
	s.awaitEnd(last, reader)
	seen := map[string]string{}
	for _, path := range readerPaths(t, s, reader, last) {
		_, body := s.try("GET", path, "", reader)
		seen[path] = string(body)
	}
	if arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.cmd.Process.Pid)); err == nil {
		seen["the process list"] = string(arguments)
	}
	seen["events"] = events()
	s.stop() // sends the last traces
	seen["the log"], seen["traces"] = s.log(), traces.text()
	seen["the history"] = historyTexts(t, dsn)
	for place, text := range seen {
		for at := strings.Index(text, "PLANTED"); at >= 0; at = -1 {
			t.Errorf("%s: …%s…", place, text[max(at-120, 0):min(at+60, len(text))])
		}
	}
	for _, place := range []string{"events", "traces", "the log", "the history", "/api/v1/jobs?limit=200",
		"/admin/jobs", "/metrics"} {
		if len(seen[place]) < 100 {
			t.Errorf("%s says %q: the test looks at nothing", place, seen[place])
		}
	}
	if !strings.Contains(seen["/api/v1/jobs?limit=200"], "•••") || !strings.Contains(seen["the history"], "•••") {
		t.Error("nothing was masked: the test plants nothing")
	}
}

// phpFailure is the job of PHP's that failed.
const phpFailure = "0b1e2d3c-0000-4000-8000-00000000000d"

// plantAll makes jobs with secrets and returns the last one's id.
func plantAll(s *service, dsn string, admin http.Header) (last string) {
	s.t.Helper()
	fields, errors := plantedIn()
	enqueue := func(kind string, payload map[string]any) {
		body, err := json.Marshal(map[string]any{"type": kind, "payload": payload, "max_attempts": 1,
			"metadata": map[string]any{"token": "PLANTEDmeta"}})
		if err != nil {
			s.t.Fatal(err)
		}
		var made struct{ ID string }
		s.ask(201, "POST", "/api/v1/jobs", string(body), admin, &made)
		last = made.ID
	}
	s.ask(201, "POST", "/api/v1/webhooks",
		`{"url":"https://hook.invalid/PLANTEDpath?key=PLANTEDquery","events":["job.failed"]}`, admin, nil)
	// Over HTTP unknown fields are refused; a row may have any.
	row, err := json.Marshal(map[string]any{"type": "cache.clear", "uuid": "0b1e2d3c-0000-4000-8000-00000000000b",
		"data": fields})
	if err != nil {
		s.t.Fatal(err)
	}
	db := openSQLite(s.t, dsn)
	defer db.Close()
	db.MustExec("INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at) VALUES "+
		"('default', ?, 0, NULL, 0, 0)", string(row))
	// A row that waits, with its fields by other names than the type's own.
	db.MustExec("INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at) VALUES "+
		"('default', ?, 0, NULL, 4000000000, 0)", `{"type":"email.send","uuid":"0b1e2d3c-0000-4000-8000-00000000000c",`+
		`"data":{"recipient":"PLANTEDrecipient@b.example","Body":"code PLANTEDspelling","h-t-m-l":"x"}}`)
	// What PHP failed at stands in its table as PHP wrote it, and is shown masked.
	db.MustExec("INSERT INTO failed_jobs (uuid, connection, queue, payload, exception) VALUES (?, 'database', "+
		"'default', ?, ?)", phpFailure,
		`{"job":"Illuminate\\Queue\\CallQueuedHandler@call","displayName":"App\\Jobs\\Pay",`+
			`"uuid":"`+phpFailure+`","data":{"commandName":"App\\Jobs\\Pay","command":"O:8:\"PLANTEDphp\":0:{}"}}`,
		"RuntimeException: https://pay.example/?token=PLANTEDexception in /srv/app/Jobs/Pay.php:7\n#0 {main}")
	if status, body := s.try("POST", "/api/v1/jobs", `{"type":"password=PLANTEDtype"}`, admin); status < 400 {
		s.t.Errorf("an unknown type: %d %s", status, body)
	}
	// The audit log names what was refused.
	if status, body := s.try("POST", "/api/v1/queues/password=PLANTEDqueue/pause", "{}", admin); status < 400 {
		s.t.Errorf("an unknown queue: %d %s", status, body)
	}
	enqueue("mail.send", map[string]any{"to": "a@b.example", "subject": "s", "body": "b", "data": fields})
	letter := map[string]any{"to": "a@b.example", "subject": "Reset your password",
		"body": "<a href='https://demo.example/password/reset/PLANTEDlink'>reset</a>", "data": map[string]any{
			"code": "PLANTEDcode"}}
	enqueue("mail.send", letter)
	waiting, err := json.Marshal(map[string]any{"type": "mail.send", "payload": letter, "delay": 3600})
	if err != nil {
		s.t.Fatal(err)
	}
	s.ask(201, "POST", "/api/v1/jobs", string(waiting), admin, nil)
	var cancelled struct{ ID string }
	s.ask(201, "POST", "/api/v1/jobs", string(waiting), admin, &cancelled)
	s.ask(200, "POST", "/api/v1/jobs/"+cancelled.ID+"/cancel", "{}", admin, nil)
	for _, text := range errors {
		enqueue("cmsjobs.probe", map[string]any{"fail": text})
	}
	return last
}

// readerPaths are all addresses that a reader may GET: those of the document,
// the pages, and what is there to be looked at.
func readerPaths(t *testing.T, s *service, reader http.Header, last string) []string {
	t.Helper()
	var document struct {
		Paths map[string]map[string]any
	}
	s.ask(200, "GET", "/api/openapi.json", "", nil, &document)
	var jobs struct{ Items []struct{ ID string } }
	s.ask(200, "GET", "/api/v1/jobs?limit=200", "", reader, &jobs)
	paths := []string{"/api/v1/jobs?limit=200", "/api/admin/jobs?limit=200", "/api/v1/runs?limit=200",
		"/api/v1/webhooks/1/deliveries", "/admin", "/admin/jobs", "/admin/failed", "/admin/failed/export",
		"/admin/queues", "/admin/workers",
		"/admin/schedules", "/admin/backups", "/admin/mail", "/admin/mail/templates", "/admin/media", "/admin/sitemap",
		"/admin/analytics", "/admin/usage", "/admin/webhooks", "/admin/settings", "/admin/tokens", "/admin/audit"}
	for path, methods := range document.Paths {
		if _, reads := methods["get"]; !reads || strings.HasSuffix(path, "/events") {
			continue
		}
		paths = append(paths, strings.NewReplacer("{id}", last, "{name}", "cmsjobs", "{address}",
			"x@y.example").Replace(path))
	}
	for _, j := range jobs.Items {
		for _, form := range []string{"/admin/jobs/%s", "/api/v1/jobs/%s", "/api/admin/jobs/%s",
			"/api/v1/jobs/%s/runs", "/api/v1/jobs/%s/log", "/api/v1/jobs/%s/explain"} {
			paths = append(paths, fmt.Sprintf(form, j.ID))
		}
	}
	slices.Sort(paths)
	if paths = slices.Compact(paths); len(paths) < 60 {
		t.Fatalf("only %d addresses", len(paths))
	}
	return paths
}

// listenTo follows live events until the returned func is called, which gives
// all that came.
func listenTo(t *testing.T, s *service, who http.Header) func() string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = who.Clone()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&text, answer.Body) // ends with cancel
		answer.Body.Close()
	}()
	return func() string { cancel(); <-done; return text.String() }
}

// openSQLite opens the database that a flag names.
func openSQLite(t *testing.T, flag string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("sqlite", strings.TrimPrefix(flag, "--dsn=sqlite:")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// endedJob is what became of a job.
type endedJob struct {
	Status string
	Error  string `json:"error"`
	Result json.RawMessage
}

// awaitEnd waits until a job has ended for good.
func (s *service) awaitEnd(id string, who http.Header) (job endedJob) {
	s.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); job.Status != "completed" &&
		job.Status != "failed"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("the job %s is %s\n%s", id, job.Status, s.log())
		}
		s.ask(200, "GET", "/api/v1/jobs/"+id, "", who, &job)
	}
	return job
}

// historyTexts is what the tables keep besides the payloads that the jobs need
// to run again.
func historyTexts(t *testing.T, dsn string) string {
	t.Helper()
	db := openSQLite(t, dsn)
	defer db.Close()
	var all []string
	for _, query := range []string{"SELECT COALESCE(error, '') || COALESCE(result, '') FROM cmsjobs_runs",
		"SELECT COALESCE(data, '') FROM cmsjobs_runs WHERE type = 'mail.send'", "SELECT line FROM cmsjobs_job_logs",
		"SELECT exception FROM failed_jobs WHERE uuid <> '" + phpFailure + "'",
		"SELECT message FROM cmsjobs_failures WHERE type NOT LIKE 'App%'",
		"SELECT target || detail FROM cmsjobs_audit", "SELECT running FROM cmsjobs_workers"} {
		var list []string
		if err := db.Select(&list, query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		all = append(all, list...)
	}
	return strings.Join(all, "\n")
}
