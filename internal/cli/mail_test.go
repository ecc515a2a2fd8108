package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail"
	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/health"
	mailpage "github.com/cmsjobs/cmsjobs/internal/web/feature/mail"
)

// office is the whole program over a fresh database: its commands, and
// its pages and API behind a real server. Mails become files.
type office struct {
	t    *testing.T
	env  []string
	dsn  string
	dir  string
	http *httptest.Server
}

func newOffice(t *testing.T, env ...string) *office {
	t.Helper()
	o := &office{t: t, dsn: newDatabase(t, jobstest.SQLite, tables.Stock), dir: filepath.Join(t.TempDir(), "mail")}
	o.env = append([]string{"CMSJOBS_MAIL_DRIVER=files", "CMSJOBS_MAIL_DIR=" + o.dir,
		"CMSJOBS_MAIL_FROM=shop@example.org",
		"CMSJOBS_HTTP_ADMIN_PASSWORD=right horse battery"}, env...)
	a := &commandLine{Process: app.Process{Err: io.Discard, Now: time.Now}, out: io.Discard,
		environ: append([]string{"CMSJOBS_CONFIG=" + filepath.Join(t.TempDir(), "empty.yaml"),
			"CMSJOBS_DATABASE_DSN=" + strings.TrimPrefix(o.dsn, "--dsn=")}, o.env...)}
	if err := os.WriteFile(strings.TrimPrefix(a.environ[0], "CMSJOBS_CONFIG="), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := a.openConfigured(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.closing(r) })
	r.Metrics = health.NewMetrics("test", func(string) bool { return true })
	server, err := r.WebServer(nil)
	if err != nil {
		t.Fatal(err)
	}
	o.http = httptest.NewServer(server.Handler())
	t.Cleanup(o.http.Close)
	return o
}

func (o *office) call(args ...string) result {
	o.t.Helper()
	return call(o.t, o.env, append([]string{o.dsn}, args...)...)
}

// ask sends a request as the administrator, or as nobody with header's.
func (o *office) ask(method, path string, header http.Header, body []byte) (int, string) {
	o.t.Helper()
	r, err := http.NewRequestWithContext(o.t.Context(), method, o.http.URL+path, bytes.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	if r.Header = header; header == nil {
		r.Header = http.Header{}
		r.SetBasicAuth("admin", "right horse battery")
	}
	answer, err := o.http.Client().Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func (o *office) get(path string, into any) {
	o.t.Helper()
	status, text := o.ask("GET", path, nil, nil)
	if status != http.StatusOK {
		o.t.Fatalf("GET %s: %d %s", path, status, text)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		o.t.Fatalf("GET %s: %v in %s", path, err, text)
	}
}

type mailPage struct{ Items []mailpage.Mail }

func TestAMailIsLookedUpAndSentAgain(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "CMSJOBS_MAIL_KEEP_BODY=true")
	want(t, o.call("enqueue", "mail.send",
		`{"to":["zoe@example.net","ann@example.net"],"subject":"100% off","body":"<p>Hello {{ who }}</p>","data":{"who":"all"}}`), 0)
	want(t, o.call("work", "--stop-when-empty"), 0)
	var list mailPage
	o.get("/api/v1/mail?status=accepted&text=ZOE", &list)
	if len(list.Items) != 1 || list.Items[0].To != "zoe@example.net" || !list.Items[0].Kept {
		t.Fatalf("found %+v", list.Items)
	}
	for query, found := range map[string]int{"text=100%25": 2, "text=1%25o": 0, "text=": 2, "status=refused": 0,
		"status=accepted": 2} {
		o.get("/api/v1/mail?"+query, &list)
		if len(list.Items) != found {
			t.Errorf("%s finds %d, want %d", query, len(list.Items), found)
		}
	}
	o.get("/api/v1/mail?text=zoe", &list)
	var one mailpage.Mail
	o.get("/api/v1/mail/"+list.Items[0].ID, &one)
	if one.HTML != "<p>Hello all</p>" || one.PlainText != "Hello all\n" || len(one.Tries) != 1 ||
		one.Tries[0].Status != "accepted" || len(one.Others) != 1 || one.Others[0].To != "ann@example.net" {
		t.Errorf("the mail is %+v", one)
	}
	if status, text := o.ask("GET", "/admin/mail/"+one.ID+"/preview", nil, nil); status != 200 ||
		text != "<p>Hello all</p>" {
		t.Errorf("the frame: %d %s", status, text)
	}
	if status, text := o.ask("POST", "/api/v1/mail/"+one.ID+"/resend", nil, nil); status != http.StatusCreated {
		t.Fatalf("sending again: %d %s", status, text)
	}
	want(t, o.call("work", "--stop-when-empty"), 0)
	files, err := filepath.Glob(filepath.Join(o.dir, "*.eml"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%d mails, %v", len(files), err)
	}
	again, err := os.ReadFile(files[1]) // names sort by time
	if err != nil || !strings.Contains(string(again), "X-Envelope-To: <zoe@example.net>\r\n") ||
		strings.Contains(string(again), "ann@") {
		t.Errorf("sent again to others, too: %s (%v)", again, err)
	}
}

func TestAMailThatWasNotKeptSaysSo(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	want(t, o.call("enqueue", "mail.send", `{"to":"zoe@example.net","subject":"s","body":"secret link"}`), 0)
	want(t, o.call("work", "--stop-when-empty"), 0)
	var list mailPage
	o.get("/api/v1/mail", &list)
	if len(list.Items) != 1 {
		t.Fatalf("%+v", list)
	}
	var one mailpage.Mail
	o.get("/api/v1/mail/"+list.Items[0].ID, &one)
	if one.Kept || one.HTML+one.PlainText != "" {
		t.Errorf("%+v", one)
	}
	if status, text := o.ask("POST", "/api/v1/mail/"+one.ID+"/resend", nil, nil); status != http.StatusConflict ||
		!strings.Contains(text, "mail.keep_body") {
		t.Errorf("sending again: %d %s", status, text)
	}
	if status, _ := o.ask("GET", "/api/v1/mail/none", nil, nil); status != http.StatusNotFound {
		t.Errorf("a mail that is not there: %d", status)
	}
}

// Every template that we ship can be looked at, in its own frame.
func TestEveryTemplateHasAPreview(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for _, name := range []string{"welcome", "contact", "password-reset", "content-published", "backup-report",
		"job-failed", "weekly-analytics", "test"} {
		status, text := o.ask("GET", "/admin/mail/templates?name="+name, nil, nil)
		if status != 200 || !strings.Contains(text, `src="/admin/mail/templates/body?locale=&amp;name=`+name) ||
			strings.Contains(text, "cannot be filled in") {
			t.Errorf("%s: %d %s", name, status, text)
		}
		if status, text := o.ask("GET", "/admin/mail/templates/body?name="+name, nil, nil); status != 200 ||
			!strings.Contains(text, "<html") {
			t.Errorf("%s: %d %.80s", name, status, text)
		}
	}
}

// A provider reports over HTTP what came back: with a signature only, and
// with one that is not used for another message.
func TestBouncesAreTakenOverHTTP(t *testing.T) {
	t.Parallel()
	secret := webhook.NewSecret()
	o := newOffice(t, "CMSJOBS_MAIL_BOUNCE_SECRET="+secret)
	want(t, o.call("enqueue", "mail.send", `{"to":"gone@example.net","subject":"s","body":"b"}`), 0)
	want(t, o.call("work", "--stop-when-empty"), 0)
	var list mailPage
	o.get("/api/v1/mail", &list)
	body := []byte(
		fmt.Sprintf(
			`[{"email":"gone@example.net","type":"hard","messageId":"<%s>","status":"5.1.1","reason":"no such user"}]`,
			list.Items[0].MessageID))
	signed := func(id string, at time.Time, text []byte) http.Header {
		signature, err := webhook.Sign(secret, id, at, text)
		if err != nil {
			t.Fatal(err)
		}
		return http.Header{"Content-Type": {"application/json"}, "Webhook-Id": {id}, "Webhook-Timestamp": {
			strconv.FormatInt(at.Unix(), 10)}, "Webhook-Signature": {signature}}
	}
	const path = "/api/v1/mail/bounces"
	for what, header := range map[string]http.Header{
		"unsigned": {}, "another body": signed("m1", time.Now(), []byte("[]")),
		"long ago": signed("m1", time.Now().Add(-time.Hour), body)} {
		if status, text := o.ask("POST", path, header, body); status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", what, status, text)
		}
	}
	if status, _ := o.ask("GET", path, http.Header{}, nil); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", status)
	}
	large := bytes.Repeat([]byte(" "), 1<<20+1)
	if status, _ := o.ask("POST", path, signed("m2", time.Now(), large),
		large); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large one: %d", status)
	}
	if status, text := o.ask("POST", path, signed("m3", time.Now(), []byte(`{"email":"x"}`)),
		[]byte(`{"email":"x"}`)); status != http.StatusBadRequest {
		t.Errorf("no report: %d %s", status, text)
	}
	want(t, o.call("mail", "suppressions", "list"), 0, "Everybody gets mail")
	if status, text := o.ask("POST", path, signed("m4", time.Now(), body), body); status != http.StatusOK ||
		strings.TrimSpace(text) != `{"taken":1}` {
		t.Fatalf("a signed report: %d %s", status, text)
	}
	want(t, o.call("mail", "suppressions", "list"), 0, "gone@example.net", "hard_bounce", "in 29d")
	o.get("/api/v1/mail?status="+string(mail.Bounced), &list)
	if len(list.Items) != 1 || !strings.Contains(list.Items[0].Answer, "no such user") {
		t.Errorf("the log has %+v", list.Items)
	}
	want(t, o.call("enqueue", "mail.send", `{"to":"gone@example.net","subject":"again","body":"b"}`), 0)
	want(t, o.call("work", "--stop-when-empty"), 0)
	o.get("/api/v1/mail?status=suppressed", &list)
	if len(list.Items) != 1 || list.Items[0].Subject != "again" {
		t.Errorf("suppressed were %+v", list.Items)
	}
}

// A mail service sends its own reports to an address with the secret as its password.
func TestAMailServiceReportsOverHTTP(t *testing.T) {
	t.Parallel()
	secret := webhook.NewSecret()
	o := newOffice(t, "CMSJOBS_MAIL_BOUNCE_SECRET="+secret)
	basic := func(password string) http.Header {
		r := http.Request{Header: http.Header{"Content-Type": {"application/json"}}}
		r.SetBasicAuth("cmsjobs", password)
		return r.Header
	}
	body := []byte(`{"event":"hard_bounce","email":"gone@example.net","reason":"no such user"}`)
	const path = "/api/v1/mail/bounces/brevo"
	for _, header := range []http.Header{{}, basic(""), basic(secret + "x")} {
		if status, text := o.ask("POST", path, header, body); status != http.StatusUnauthorized {
			t.Errorf("%d %s", status, text)
		}
	}
	if status, text := o.ask("POST", path, basic(secret), []byte(`[1]`)); status != http.StatusBadRequest {
		t.Errorf("another body: %d %s", status, text)
	}
	if status, text := o.ask("POST", "/api/v1/mail/bounces/pigeon", basic(secret), body); status < 400 {
		t.Errorf("an unknown service: %d %s", status, text)
	}
	if status, text := o.ask("POST", path, basic(secret), body); status != http.StatusOK ||
		strings.TrimSpace(text) != `{"taken":1}` {
		t.Fatalf("%d %s", status, text)
	}
	want(t, o.call("mail", "suppressions", "list"), 0, "gone@example.net", "no such user")
}

func TestWithoutASecretNoBounceIsTaken(t *testing.T) {
	t.Parallel()
	if status, _ := newOffice(t).ask("POST", "/api/v1/mail/bounces", http.Header{},
		[]byte("[]")); status != http.StatusUnauthorized {
		t.Errorf("%d", status)
	}
}

func TestRecipientsAreCounted(t *testing.T) {
	t.Parallel()
	var r app.Services
	r.Mailed(mail.Accepted, 3) // a command, which has no metrics
	r.Metrics = health.NewMetrics("test", func(string) bool { return true })
	r.Mailed(mail.Accepted, 3)
	r.Mailed(mail.Refused, 1)
	families, err := r.Metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "cmsjobs_mail_sent_total" {
			for _, m := range f.GetMetric() {
				got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	if got["accepted"] != 3 || got["refused"] != 1 {
		t.Errorf("counted %v", got)
	}
}

func TestABounceMailboxIsReadByTheClock(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	without := call(t, nil, dsn, "schedule", "list")
	want(t, without, 0)
	with := call(t, []string{"CMSJOBS_MAIL_MAILBOX_HOST=imap.example.org", "CMSJOBS_MAIL_MAILBOX_USERNAME=b",
		"CMSJOBS_MAIL_MAILBOX_PASSWORD=hidden-word"}, dsn, "schedule", "list")
	want(t, with, 0, mail.ReadBounces.Name)
	if strings.Contains(without.out, mail.ReadBounces.Name) || strings.Contains(with.out, "hidden-word") {
		t.Errorf("without a mailbox:\n%s\nwith one:\n%s", without.out, with.out)
	}
}

// While the mail server is out, jobs wait uncharged, and everybody who looks
// receives the reason: in lists, of one job, in the breakers and by doctor.
func TestAMailServerThatIsOutIsSeen(t *testing.T) {
	t.Parallel()
	for _, layout := range []tables.Layout{tables.Stock, tables.Extended} {
		t.Run(fmt.Sprint(layout), func(t *testing.T) {
			dsn := newDatabase(t, jobstest.SQLite, layout)
			env := []string{"CMSJOBS_MAIL_DRIVER=smtp", "CMSJOBS_MAIL_HOST=127.0.0.1", "CMSJOBS_MAIL_PORT=1",
				"CMSJOBS_MAIL_FROM=shop@example.org"}
			for i := range 12 {
				want(t, call(t, env, dsn, "enqueue", "mail.send",
					fmt.Sprintf(`{"to":"r%d@example.net","subject":"s","body":"b"}`, i)), 0)
			}
			want(t, call(t, env, dsn, "work", "--stop-when-empty"), 0)
			want(t, call(t, env, dsn, "breakers", "list"), 0, "smtp:127.0.0.1:1", "open", "connection refused")
			want(t, call(t, env, dsn, "jobs", "list"), 0, "1/3", "0/3", "waits: smtp:127.0.0.1:1 is out")
			ids := map[int]string{} // by attempts: which jobs were tried depends on what was released
			for _, j := range answer[struct {
				Items []struct {
					ID       string
					Attempts int
				}
			}](t, call(t, env, dsn, "--json", "jobs", "list")).Items {
				ids[j.Attempts] = j.ID
			}
			want(t, call(t, env, dsn, "jobs", "show", ids[1]), 0, "1/3", "retried", "connecting to 127.0.0.1:1")
			want(t, call(t, env, dsn, "jobs", "show", ids[0]), 0, "0/3", "released")
			want(t, call(t, env, dsn, "jobs", "explain", ids[0]), 0, "smtp:127.0.0.1:1 is down",
				"without losing attempts")
			want(t, call(t, env, dsn, "doctor"), 1, "Too many runs fail", "A circuit breaker is open: "+
				"smtp:127.0.0.1:1 (connecting to 127.0.0.1:1", "cmsjobs breakers reset NAME")
			want(t, call(t, env, dsn, "breakers", "reset", "smtp:127.0.0.1:1"), 0)
			if r := call(t, env, dsn, "jobs", "list"); strings.Contains(r.out, "waits:") {
				t.Errorf("after the reset:\n%s", r.out)
			}
		})
	}
}

// A job that fails is reported by mail, once an hour for its type, and to who
// subscribed, each time.
func TestAFailedJobIsTold(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var events []string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil || q.Header.Get(webhook.HeaderSignature) == "" {
			t.Errorf("%v, signed %q", err, q.Header.Get(webhook.HeaderSignature))
		}
		mu.Lock()
		defer mu.Unlock()
		events = append(events, string(body))
	}))
	defer receiver.Close()
	o := newOffice(t, "CMSJOBS_MAIL_ADMIN=boss@example.net", "CMSJOBS_WEBHOOK_ALLOW_PRIVATE=127.0.0.0/8",
		"CMSJOBS_WEBHOOK_ALLOW_HTTP=true")
	want(t, o.call("webhook", "add", receiver.URL, "--events", "job.*"), 0, "whsec_")
	for _, why := range []string{"no ink", "no paper"} {
		want(t, o.call("enqueue", "cmsjobs.probe", fmt.Sprintf(`{"fail":%q}`, why), "--max-attempts", "1"), 0)
		want(t, o.call("work", "--stop-when-empty"), 0)
		want(t, o.call("work", "--stop-when-empty"), 0) // what the failure led to
	}
	mu.Lock()
	defer mu.Unlock()
	if len(events) != 2 || !strings.Contains(events[0], `"type":"job.failed"`) ||
		!strings.Contains(events[0], "no ink") || !strings.Contains(events[1], "no paper") {
		t.Errorf("subscribers received %q", events)
	}
	files, err := filepath.Glob(filepath.Join(o.dir, "*.eml"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d mails about two failures of a type, %v", len(files), err)
	}
	if text, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(text), "<boss@example.net>") ||
		!strings.Contains(string(text), "no ink") {
		t.Errorf("the mail is %s (%v)", text, err)
	}
	want(t, o.call("webhook", "deliveries"), 0, "job.failed", "200")
	want(t, o.call("webhook", "redeliver", "1"), 0, "ENQUEUED")
}
