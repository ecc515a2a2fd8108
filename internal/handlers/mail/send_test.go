package mail

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gomail "github.com/emersion/go-message/mail"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/smtptest"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func prepared(t testing.TB, h *Handler, uuid string, attempt int, payload any) (jobs.Job, context.Context,
	func() Result) {
	t.Helper()
	data, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	kept := jobs.NewRun(h.c.Now)
	ctx := jobs.WithRun(context.Background(), kept)
	return jobs.Job{UUID: uuid, Type: Send.Name, Data: data, Attempt: attempt, MaxAttempts: 3, EnqueuedAt: h.c.Now()},
		ctx, func() Result {
			var r Result
			if raw, _ := kept.Result(); raw != nil {
				if err := json.Unmarshal(raw, &r); err != nil {
					t.Errorf("the result %s: %v", raw, err)
				}
			}
			return r
		}
}

// parsedMail is a mail as another library reads it.
type parsedMail struct {
	header      gomail.Header
	text, html  string
	attachments map[string][]byte
	inline      map[string][]byte
}

func parse(t testing.TB, data []byte) parsedMail {
	t.Helper()
	r, err := gomail.CreateReader(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("the mail cannot be read: %v\n%s", err, data[:min(len(data), 2000)])
	}
	p := parsedMail{header: r.Header, attachments: map[string][]byte{}, inline: map[string][]byte{}}
	for {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return p
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(part.Body)
		if err != nil {
			t.Fatal(err)
		}
		switch h := part.Header.(type) {
		case *gomail.InlineHeader:
			switch kind, _, _ := h.ContentType(); kind {
			case "text/plain":
				p.text = string(content)
			case "text/html":
				p.html = string(content)
			default:
				p.inline[strings.Trim(h.Get("Content-Id"), "<>")] = content
			}
		case *gomail.AttachmentHeader:
			name, err := h.Filename()
			if err != nil {
				t.Fatal(err)
			}
			p.attachments[name] = content
		}
	}
}

func TestAMailArrivesAsItWasSent(t *testing.T) {
	s := newSink(t, nil)
	c := config(t, s, jobstest.SQLite)
	folder := t.TempDir()
	big := bytes.Repeat([]byte("0123456789abcdef\r\n.\r\n"), 10<<20/21) // 10 MB with lines that look like the end
	if err := os.WriteFile(filepath.Join(folder, "bảng giá.bin"), big, 0o600); err != nil {
		t.Fatal(err)
	}
	c.AttachmentRoots = []string{folder}
	h := handler(t, c)
	html := "<p>Xin chào, <b>thế giới</b> — 你好 🌍</p>\r\n.\r\n<p>" + strings.Repeat("long line ", 500) + "</p>"
	result, err := run(t, h, "job-1", 1, map[string]any{
		"to": `"Nguyễn Văn, An" <an@example.net>`, "cc": []string{"Zoë <zoe@bücher.example>"},
		"bcc": "hidden@example.org", "replyTo": "answer@example.com",
		"subject": "Đơn hàng số 12 — “quoted” " + strings.Repeat("x", 200), "body": html,
		"text": "Xin chào\r\n.\r\nđây",
		"attachments": []any{filepath.Join(folder, "bảng giá.bin"),
			map[string]any{"content": base64.StdEncoding.EncodeToString([]byte("PNG")), "name": "logo.png",
				"contentId": "logo"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := s.all()
	if len(got) != 1 || !got[0].tls || got[0].user != user {
		t.Fatalf("%d transactions; over TLS and signed in? %+v", len(got), got)
	}
	if want := []string{"an@example.net", "zoe@xn--bcher-kva.example", "hidden@example.org"}; !slices.Equal(got[0].to,
		want) {
		t.Errorf("recipients %q, want %q", got[0].to, want)
	}
	p := parse(t, got[0].data)
	subject, _ := p.header.Subject()
	if want := "Đơn hàng số 12 — “quoted” " + strings.Repeat("x", 200); subject != want {
		t.Errorf("subject %q, want %q", subject, want)
	}
	to, err := p.header.AddressList("To")
	if err != nil || len(to) != 1 || to[0].Name != "Nguyễn Văn, An" || to[0].Address != "an@example.net" {
		t.Errorf("To is %v (%v)", to, err)
	}
	if bytes.Contains(got[0].data, []byte("hidden@")) {
		t.Error("the blind copy's address stands in the mail")
	}
	if p.html != html || p.text != "Xin chào\r\n.\r\nđây" {
		t.Errorf("bodies differ: %.80q / %q", p.html, p.text)
	}
	if !bytes.Equal(p.attachments["bảng giá.bin"], big) {
		t.Errorf("the attachment has %d bytes of %d, or others (%d attachments)", len(p.attachments["bảng giá.bin"]),
			len(big), len(p.attachments))
	}
	if string(p.inline["logo"]) != "PNG" && string(p.attachments["logo.png"]) != "PNG" {
		t.Errorf("the inline picture is missing: %d inline, %d attached", len(p.inline), len(p.attachments))
	}
	for _, line := range bytes.Split(got[0].data, []byte("\r\n")) {
		if len(line) > 998 {
			t.Fatalf("a line has %d bytes (RFC 5322 allows 998)", len(line))
		}
	}
	if id, _ := p.header.MessageID(); id != result.MessageID || id == "" {
		t.Errorf("Message-ID %q, the result says %q", id, result.MessageID)
	}
	if result.Recipients[Accepted] != 3 {
		t.Errorf("the result says %v", result.Recipients)
	}
}

func TestARetryLeavesOutWhoGotTheMail(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			s := newSink(t, nil)
			var later atomic.Bool
			later.Store(true)
			s.on(func(to string) error {
				switch {
				case strings.HasPrefix(to, "gone"):
					return errNoUser
				case strings.HasPrefix(to, "later") && later.Load():
					return errLater
				}
				return nil
			}, nil)
			h := handler(t, config(t, s, engine))
			payload := map[string]any{"to": "a@example.net, gone@example.net, later@example.net", "subject": "s",
				"body": "b"}
			result, err := run(t, h, "job-1", 1, payload)
			if err == nil || jobs.IsPermanent(err) {
				t.Fatalf("a deferred recipient must be tried again: %v", err)
			}
			if result.Recipients[Accepted] != 1 || result.Recipients[Refused] != 1 || result.Recipients[Deferred] != 1 {
				t.Errorf("the result says %v", result.Recipients)
			}
			later.Store(false)
			if result, err = run(t, h, "job-1", 2, payload); err != nil {
				t.Fatal(err)
			}
			if result.Recipients[Accepted] != 2 {
				t.Errorf("the result says %v", result.Recipients)
			}
			if _, err = run(t, h, "job-1", 3, payload); err != nil { // as after a lost lease
				t.Fatal(err)
			}
			got := s.all()
			if len(got) != 2 || !slices.Equal(got[0].to, []string{"a@example.net"}) ||
				!slices.Equal(got[1].to, []string{"later@example.net"}) {
				t.Errorf("the server got %+v", got)
			}
			if a, b := parse(t, got[0].data), parse(t, got[1].data); a.header.Get("Message-Id") != b.header.Get(
				"Message-Id") {
				t.Errorf("two Message-IDs for one mail: %s, %s", a.header.Get("Message-Id"), b.header.Get("Message-Id"))
			}
			list, err := h.Suppressions(t.Context(), "", 10)
			if err != nil || len(list) != 1 || list[0].Recipient != "gone@example.net" || list[0].Reason != HardBounce {
				t.Errorf("the suppression list is %+v (%v)", list, err)
			}
		})
	}
}

func TestWhoIsSuppressedGetsNothing(t *testing.T) {
	s := newSink(t, nil)
	h := handler(t, config(t, s, jobstest.SQLite))
	if err := h.Suppress(t.Context(), "No@Example.net", Manual, "asked", time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := h.Suppress(t.Context(), "past@example.net", HardBounce, "", time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	result, err := run(t, h, "j", 1, map[string]any{"to": []string{"no@example.net", "past@example.net"},
		"subject": "s", "body": "b"})
	if err != nil || result.Recipients[Suppressed] != 1 || result.Recipients[Accepted] != 1 {
		t.Errorf("%v, %+v", err, result)
	}
	if got := s.all(); len(got) != 1 || !slices.Equal(got[0].to, []string{"past@example.net"}) {
		t.Errorf("the server got %+v", got)
	}
	if was, err := h.Unsuppress(t.Context(), "no@example.net"); err != nil || !was {
		t.Errorf("Unsuppress: %v, %v", was, err)
	}
}

func TestFiveHundredRecipients(t *testing.T) {
	s := newSink(t, func(s *smtptest.Server) { s.MaxRecipients = 80 })
	h := handler(t, config(t, s, jobstest.SQLite))
	var to []string
	for i := range 500 {
		to = append(to, fmt.Sprintf("r%03d@example.net", i))
	}
	to = append(to, "R007@EXAMPLE.net") // again
	result, err := run(t, h, "j", 1, map[string]any{"to": to, "subject": "s", "body": "b"})
	if err != nil || result.Recipients[Accepted] != 500 {
		t.Fatalf("%v, %v", err, result.Recipients)
	}
	seen := map[string]int{}
	for _, g := range s.all() {
		for _, r := range g.to {
			seen[r]++
		}
	}
	if len(seen) != 500 {
		t.Errorf("%d recipients", len(seen))
	}
	for r, n := range seen {
		if n != 1 {
			t.Errorf("%s got %d", r, n)
		}
	}
}

func TestAnOldPasswordResetIsDropped(t *testing.T) {
	s := newSink(t, nil)
	h := handler(t, config(t, s, jobstest.SQLite))
	payload := map[string]any{"to": "a@example.net", "template": "password-reset", "data": map[string]any{
		"url": "https://example.com/x"}}
	job, ctx, outcome := prepared(t, h, "old", 1, payload)
	job.EnqueuedAt = time.Now().Add(-61 * time.Minute)
	var p SendPayload
	if err := json.Unmarshal(job.Data, &p); err != nil {
		t.Fatal(err)
	}
	if err := h.send(ctx, job, p); err != nil {
		t.Fatal(err)
	}
	if r := outcome(); r.Recipients[Expired] != 1 || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Answer,
		"dropped: 1h1m0s old") {
		t.Errorf("the result does not say so: %+v", r)
	}
	if len(s.all()) != 0 {
		t.Error("it was sent")
	}
	c := config(t, s, jobstest.SQLite)
	c.MaxAge = map[string]time.Duration{"welcome": time.Minute}
	// an own age leaves the default's
	for template, dropped := range map[string]bool{"welcome": true, "password-reset": true, "test": false} {
		h := handler(t, c)
		d := delivery{h: h, job: jobs.Job{EnqueuedAt: time.Now().Add(-61 * time.Minute)}}
		if _, old := d.tooOld(SendPayload{Template: template}); old != dropped {
			t.Errorf("%s of an hour ago: too old is %v", template, old)
		}
	}
	if _, err := run(t, h, "young", 1, payload); err != nil || len(s.all()) != 1 {
		t.Errorf("a fresh one: %v, %d sent", err, len(s.all()))
	}
}

func TestCertificatesAreVerified(t *testing.T) {
	s := newSink(t, nil)
	c := config(t, s, jobstest.SQLite)
	c.TLS = nil // the system's roots do not know the server
	h := handler(t, c)
	if _, err := run(t, h, "j", 1, map[string]any{"to": "a@example.net", "subject": "s", "body": "b"}); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server that nobody vouches for: %v", err)
	}
	c.TLS = nil
	c.Transport.TLS = TLSNone
	h = handler(t, c)
	if _, err := run(t, h, "k", 1, map[string]any{"to": "a@example.net", "subject": "s", "body": "b"}); err == nil {
		t.Error("the password went over an open line")
	}
	if len(s.all()) != 0 {
		t.Error("a mail was sent")
	}
}

func TestABurstSharesConnections(t *testing.T) {
	s := newSink(t, nil)
	h := handler(t, config(t, s, jobstest.SQLite))
	for i := range 20 {
		if _, err := run(t, h, fmt.Sprint("j", i), 1, map[string]any{"to": "a@example.net", "subject": "s",
			"body": "b"}); err != nil {
			t.Fatal(err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.got) != 20 || s.sessions > 2 { // EHLO before and after STARTTLS may count
		t.Errorf("%d mails over %d sessions", len(s.got), s.sessions)
	}
}

func TestCaptureBeatsTheSettings(t *testing.T) {
	s := newSink(t, nil)
	c := config(t, s, jobstest.SQLite)
	c.Capture = filepath.Join(t.TempDir(), "mail")
	c.Site.DB.MustExec(`CREATE TABLE settings (key TEXT, value TEXT)`)
	c.Site.DB.MustExec(`INSERT INTO settings VALUES
		('email_driver','smtp'),('email_host','127.0.0.1'),('email_from_address','cms@example.com')`)
	h := handler(t, c)
	result, err := run(t, h, "j", 1, map[string]any{"to": "a@example.net", "bcc": "b@example.net", "subject": "s",
		"body": "b"})
	if err != nil || result.Driver != DriverFiles {
		t.Fatalf("%v, %+v", err, result)
	}
	files, _ := filepath.Glob(filepath.Join(c.Capture, "*.eml"))
	if len(files) != 1 || len(s.all()) != 0 {
		t.Fatalf("%d files, %d sent", len(files), len(s.all()))
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	p := parse(t, text)
	if !strings.Contains(p.header.Get("X-Envelope-To"), "<b@example.net>") || !strings.Contains(p.header.Get("From"),
		"cms@example.com") {
		t.Errorf("the header is %v", p.header)
	}
	if info, _ := os.Stat(files[0]); info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v", info.Mode())
	}
}

// A refusal that cannot be written down suppresses nobody: the next run would find a
// suppressed recipient, and the job would complete although its mail was refused.
func TestARefusalThatCouldNotBeWrittenFailsTheNextRun(t *testing.T) {
	s := newSink(t, nil)
	s.on(func(string) error { return errNoUser }, nil)
	c := config(t, s, jobstest.SQLite)
	h := handler(t, c)
	rename := func(from, to string) {
		if _, err := c.DB.Exec("ALTER TABLE " + from + " RENAME TO " + to); err != nil {
			t.Fatal(err)
		}
	}
	payload := map[string]any{"to": "gone@example.net", "subject": "s", "body": "b"}
	rename("cmsjobs_mail_attempts", "elsewhere")
	if _, err := run(t, h, "j", 1, payload); err == nil || jobs.IsPermanent(err) {
		t.Fatalf("the refusal is not written, and the run ended with %v", err)
	}
	rename("elsewhere", "cmsjobs_mail_attempts")
	if _, err := run(t, h, "j", 2, payload); !jobs.IsPermanent(err) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("the next run ended with %v", err)
	}
}
