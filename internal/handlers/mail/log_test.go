package mail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/breaker"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func pageOf(limit int) jobs.Page { return jobs.Page{Limit: limit} }

// enqueued keeps what was enqueued.
type enqueued struct{ jobs []jobs.Spec }

func (q *enqueued) Enqueue(_ context.Context, list ...jobs.Spec) ([]jobs.Receipt, error) {
	q.jobs = append(q.jobs, list...)
	return make([]jobs.Receipt, len(list)), nil
}

func TestTheLogShowsEveryAttemptAndAMailCanBeSentAgain(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			s := newSink(t, nil)
			c := config(t, s, engine)
			q := &enqueued{}
			c.Enqueue, c.KeepPayload = q, true
			h := handler(t, c)
			s.on(func(string) error { return errLater }, nil)
			payload := map[string]any{"to": "a@b.example, c@d.example", "cc": "e@f.example", "subject": "Chào",
				"body": "secret link"}
			if _, err := run(t, h, "j", 1, payload); err == nil {
				t.Fatal("no error")
			}
			s.on(nil, nil)
			if _, err := run(t, h, "j", 2, payload); err != nil {
				t.Fatal(err)
			}
			attempts, err := h.Attempts(t.Context(), "j")
			if err != nil || len(attempts) != 6 || attempts[0].Status != Deferred || attempts[0].Code != 451 ||
				!strings.Contains(attempts[0].Answer, "try again later") || attempts[5].Status != Accepted ||
				attempts[5].Attempt != 2 {
				t.Errorf("%+v, %v", attempts, err)
			}
			var seen []string
			page := jobs.Page{Limit: 2}
			for {
				list, err := h.Log(t.Context(), LogFilter{UUID: "j", Statuses: []Status{Accepted},
					Since: time.Now().Add(-time.Hour)}, page)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range list.Items {
					seen = append(seen, e.Recipient)
					if e.Subject != "Chào" || e.Host != "127.0.0.1" || !e.HasPayload ||
						strings.Contains(fmt.Sprint(e), "secret link") {
						t.Errorf("%+v", e)
					}
				}
				if page.Cursor = list.Next; page.Cursor == "" {
					break
				}
			}
			if len(seen) != 3 {
				t.Errorf("the log has %q", seen)
			}
			if _, err := h.Resend(t.Context(), "j", "c@d.example"); err != nil || len(q.jobs) != 1 {
				t.Fatal(err)
			}
			var p SendPayload
			if err := json.Unmarshal(q.jobs[0].Data, &p); err != nil || len(p.To) != 1 || len(p.CC) != 0 ||
				p.Body != "secret link" {
				t.Errorf("%s, %v", q.jobs[0].Data, err)
			}
			if n, err := h.Prune(t.Context(), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)); err != nil ||
				n != 1 {
				t.Errorf("%d rows were pruned, %v", n, err)
			}
			if _, err := h.Resend(t.Context(), "j"); !errors.Is(err, ErrNotKept) {
				t.Errorf("%v", err)
			}
			if n, err := h.Prune(t.Context(), time.Now().Add(time.Hour), time.Time{}); err != nil || n != 9 {
				t.Errorf("%d rows were pruned, %v", n, err)
			}
		})
	}
}

func TestATestMail(t *testing.T) {
	s := newSink(t, nil)
	c := config(t, s, jobstest.SQLite)
	c.Limits.All.PerDay = 1
	h := handler(t, c)
	if _, err := run(t, h, "j", 1, map[string]any{"to": "a@b.example", "subject": "the day's only one",
		"body": "b"}); err != nil {
		t.Fatal(err)
	}
	if r, err := h.SendTest(t.Context(), "t1", "a@b.example"); err != nil || r.Recipients[Accepted] != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	s.on(func(string) error { return errNoUser }, nil)
	if r, err := h.SendTest(t.Context(), "t2", "a@b.example"); err == nil || len(r.Problems) != 1 ||
		r.Problems[0].Code != 550 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := h.SendTest(t.Context(), "t3", "nobody"); err == nil {
		t.Error("a bad address is taken")
	}
}

// The table is the plugin's own (fob-email-log 1.0.3).
func TestARowOfTheCMSsMailLog(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			s := newSink(t, nil)
			c := config(t, s, engine)
			c.EmailLogs, c.MaxRecipients = true, 1
			from, to := `"from"`, `"to"`
			if engine.IsMySQL() {
				from, to = "`from`", "`to`"
			}
			c.Site.DB.MustExec(fmt.Sprintf(`CREATE TABLE email_logs (%s VARCHAR(255), %s VARCHAR(255) NOT NULL, cc
				VARCHAR(255), bcc VARCHAR(255), subject VARCHAR(255), html_body TEXT, text_body TEXT, raw_body TEXT,
				debug_info TEXT, created_at TIMESTAMP NULL, updated_at TIMESTAMP NULL)`, from, to))
			h := handler(t, c)
			if _, err := run(t, h, "j", 1, map[string]any{"to": "Zoë <a@b.example>, c@d.example", "bcc": "e@f.example",
				"subject": "s", "body": "<p>b</p>"}); err != nil {
				t.Fatal(err)
			}
			var rows []struct {
				From, To, BCC string
				HTML          string `db:"html_body"`
			}
			if err := c.Site.DB.Select(&rows, fmt.Sprintf("SELECT %s, %s, bcc, html_body FROM email_logs", from,
				to)); err != nil || len(rows) != 1 {
				t.Fatalf("%+v, %v", rows, err)
			}
			if r := rows[0]; r.From != `"Example" <noreply@example.com>` ||
				r.To != `"Zoë" <a@b.example>, c@d.example` || r.BCC != "e@f.example" || r.HTML != "<p>b</p>" {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestAServerThatIsOutChargesNoAttempts(t *testing.T) {
	s := newSink(t, nil)
	c := config(t, s, jobstest.SQLite)
	c.Breaker = breaker.New(c.DB, breaker.Config{Failures: 3})
	c.Transport.Password = "wrong" // every sign-in is an attempt at the server: those must end
	h := handler(t, c)
	var err error
	for i := range 4 {
		_, err = run(t, h, fmt.Sprint("j", i), 1, map[string]any{"to": "a@b.example", "subject": "s", "body": "b"})
	}
	if _, ok := jobs.AsRetryAfter(err); !ok || !errors.Is(err, breaker.ErrOpen) {
		t.Errorf("%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions > 6 { // EHLO before and after STARTTLS may count twice
		t.Errorf("%d sessions", s.sessions)
	}
}

// A refused recipient is no sign of an outage.
func TestRefusalsDoNotOpenTheBreaker(t *testing.T) {
	s := newSink(t, nil)
	s.on(func(string) error { return errNoUser }, nil)
	c := config(t, s, jobstest.SQLite)
	b := breaker.New(c.DB, breaker.Config{Failures: 2})
	c.Breaker = b
	h := handler(t, c)
	for i := range 5 {
		if _, err := run(t, h, fmt.Sprint("j", i), 1, map[string]any{"to": fmt.Sprintf("a%d@b.example", i),
			"subject": "s", "body": "b"}); !jobs.IsPermanent(err) {
			t.Errorf("%v", err)
		}
	}
	if list, err := b.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestSendmail(t *testing.T) {
	folder := t.TempDir()
	program := filepath.Join(folder, "sendmail")
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\" > " + folder + "/args\ncat > " + folder + "/text\nexit $(cat " +
		folder + "/code)\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c := config(t, nil, jobstest.SQLite)
	c.Transport = Transport{Driver: DriverSendmail, SendmailPath: program, FromAddress: "noreply@example.com"}
	h := handler(t, c)
	for code, want := range map[string]Status{"0": Accepted, "75": Deferred, "67": Refused} {
		if err := os.WriteFile(filepath.Join(folder, "code"), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		result, _ := run(t, h, "j"+code, 1, map[string]any{"to": "a@b.example", "bcc": "c@d.example", "subject": "s",
			"body": "line\r\n.\r\nend"})
		if result.Recipients[want] != 2 {
			t.Errorf("exit %s: %v", code, result.Recipients)
		}
	}
	args, err := os.ReadFile(filepath.Join(folder, "args"))
	if err != nil || string(args) != "-i\n-f\nnoreply@example.com\n--\na@b.example\nc@d.example\n" {
		t.Errorf("%q, %v", args, err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "text"))
	if err != nil || !strings.Contains(string(text), "\n.\nend") || strings.Contains(string(text), "\r") {
		t.Errorf("%q, %v", text, err)
	}
	c.Transport.SendmailPath = filepath.Join(folder, "none")
	h = handler(t, c)
	if result, err := run(t, h, "missing", 1, map[string]any{"to": "a@b.example", "subject": "s",
		"body": "b"}); err == nil || result.Recipients[Deferred] != 1 {
		t.Errorf("%v, %v", result.Recipients, err)
	}
}

func TestSeparateMailsShowNobodyElse(t *testing.T) {
	s := newSink(t, nil)
	h := handler(t, config(t, s, jobstest.SQLite))
	if _, err := run(t, h, "j", 1, map[string]any{"to": "a@b.example, c@d.example", "bcc": "e@f.example",
		"separate": true, "subject": "s", "body": "b"}); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, g := range s.all() {
		p := parse(t, g.data)
		to, err := p.header.AddressList("To")
		if err != nil || len(to) != 1 || len(g.to) != 1 || to[0].Address != g.to[0] {
			t.Errorf("%v got %v (%v)", g.to, to, err)
		}
		ids[p.header.Get("Message-Id")] = true
	}
	if len(ids) != 3 {
		t.Errorf("%d Message-IDs", len(ids))
	}
}
