package mail

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/provider"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// postmark takes the mails of everybody but of those it has an answer for.
type postmark struct {
	mu      sync.Mutex
	answers map[string]int // status by recipient, once
	to      []string       // of the mails that were taken, To and Bcc
}

func (s *postmark) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct{ To, Bcc string }
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if status := s.answers[m.To]; status != 0 {
		delete(s.answers, m.To)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"ErrorCode":406,"Message":"inactive recipient"}`)
		return
	}
	s.to = append(s.to, m.To+" "+m.Bcc)
	_, _ = io.WriteString(w, `{"ErrorCode":0,"MessageID":"theirs"}`)
}

// counted is how many recipients stand where.
func counted(r Result) string {
	var all []string
	for _, state := range slices.Sorted(maps.Keys(r.Recipients)) {
		all = append(all, fmt.Sprintf("%d %s", r.Recipients[state], state))
	}
	return strings.Join(all, ", ")
}

func isSuppressed(t *testing.T, h *Handler, to string) {
	t.Helper()
	list, err := h.Suppressions(t.Context(), "", 10)
	if err != nil || len(list) != 1 || list[0].Recipient != to {
		t.Errorf("no mail goes to %+v, want %s, %v", list, to, err)
	}
}

func byPostmark(t *testing.T, s http.Handler) *Handler {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c := config(t, nil, jobstest.SQLite)
	c.Transport = Transport{Driver: provider.Postmark, Password: "token", FromAddress: "noreply@example.com",
		Endpoint: server.URL}
	c.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	return handler(t, c)
}

// A mail goes out once to each, by a service as by SMTP: who was refused is refused, who
// was not reached waits, and a retry is for the others only.
func TestAMailServiceGetsEachMailOnce(t *testing.T) {
	s := &postmark{answers: map[string]int{"c@example.net": http.StatusInternalServerError,
		"gone@example.net": http.StatusUnprocessableEntity}}
	h := byPostmark(t, s)
	payload := map[string]any{"to": []string{"a@example.net", "gone@example.net", "c@example.net", "d@example.net"},
		"subject": "s", "body": "b", "separate": true}
	result, err := run(t, h, "j", 1, payload)
	if err == nil || !strings.Contains(err.Error(), "postmark") {
		t.Errorf("a service that is out: %v", err)
	}
	if got := counted(result); got != "1 accepted, 2 deferred, 1 refused" {
		t.Errorf("at first %s", got)
	}
	if result, err = run(t, h, "j", 2, payload); err != nil {
		t.Errorf("the retry: %v", err)
	}
	if got := counted(result); got != "3 accepted, 1 refused" {
		t.Errorf("then %s", got)
	}
	if got := strings.Join(s.to, ","); got != "a@example.net ,c@example.net ,d@example.net " {
		t.Errorf("sent were %s", got)
	}
	isSuppressed(t, h, "gone@example.net")
}

// Where the answer is lost, nobody knows: the mail is not sent again by itself.
func TestALostAnswerOfAMailServiceIsUnknown(t *testing.T) {
	h := byPostmark(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	}))
	result, err := run(t, h, "j", 1, map[string]any{"to": "a@example.net", "subject": "s", "body": "b"})
	if got := counted(result); got != "1 unknown" || err == nil {
		t.Errorf("%s, %v", got, err)
	}
}

// The CMS's own settings of Mailgun are used, and name no other host than Mailgun's.
func TestTheCMSsMailgun(t *testing.T) {
	settings := cms.Settings{"email_driver": "mailgun", "email_mail_gun_domain": "mg.example.org",
		"email_mail_gun_secret": "k", "email_mail_gun_endpoint": "api.eu.mailgun.net"}
	got, err := resolveTransport(settings, nil, Transport{})
	if err != nil || got.Driver != provider.Mailgun || got.Host != "api.eu.mailgun.net" || got.Username != "mg.example.org" ||
		got.Password != "k" || got.dependency() != "mailgun:api.eu.mailgun.net" {
		t.Errorf("%+v, %v", got, err)
	}
	settings["email_mail_gun_endpoint"] = "evil.example"
	if _, err := resolveTransport(settings, nil, Transport{}); err == nil {
		t.Error("another host gets the key")
	}
	delete(settings, "email_mail_gun_endpoint")
	delete(settings, "email_mail_gun_secret")
	if _, err := resolveTransport(settings, nil, Transport{}); err == nil {
		t.Error("no key, and no error")
	}
	own := Transport{Driver: provider.SES, Username: "id", Password: "k", Region: "eu-west-1"}
	if got, err = resolveTransport(nil, nil, own); err != nil || got.Host != "email.eu-west-1.amazonaws.com" {
		t.Errorf("our own: %+v, %v", got, err)
	}
	if got, err = resolveTransport(nil, cms.Env{"MAIL_MAILER": "log"}, own); err != nil || got.Driver != DriverLog {
		t.Errorf("the CMS's word wins: %+v, %v", got, err)
	}
}

// What a service reports is taken with the password only.
func TestAMailServiceReports(t *testing.T) {
	c := config(t, nil, jobstest.SQLite)
	c.BouncePassword = "secret"
	h := handler(t, c)
	body := []byte(`{"RecordType":"Bounce","Type":"HardBounce","Email":"gone@example.net"}`)
	for _, password := range []string{"", "wrong", "secret2"} {
		if _, err := h.HandleServiceWebhook(t.Context(), provider.Postmark, password, body); !errors.Is(err, ErrUnsigned) {
			t.Errorf("with %q: %v", password, err)
		}
	}
	if n, err := h.HandleServiceWebhook(t.Context(), provider.Postmark, "secret", body); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	isSuppressed(t, h, "gone@example.net")
	c.BouncePassword = ""
	if _, err := handler(t, c).HandleServiceWebhook(t.Context(), provider.Postmark, "", body); !errors.Is(err, ErrUnsigned) {
		t.Errorf("without a secret: %v", err)
	}
}
