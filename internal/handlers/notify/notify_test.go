package notify_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/notify"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
	"github.com/cmsjobs/cmsjobs/internal/testgolden"
)

// testSite is a handler with a clock that the test moves.
type testSite struct {
	t        *testing.T
	registry *jobs.Registry
	handler  *notify.Handler
	mu       sync.Mutex
	now      time.Time
	admins   []string // of the CMS
}

func (h *testSite) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func newTestSite(t *testing.T, engine jobstest.Engine, channels ...notify.Channel) (*testSite, *cms.Site) {
	t.Helper()
	db := jobstest.Migrated(t, engine)
	site := &cms.Site{DB: db.DB}
	h := &testSite{t: t, registry: jobs.NewRegistry(), now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC),
		admins: []string{"zoe@example.com"}}
	handler, err := notify.New(notify.Config{DB: db.DB, Channels: channels, Site: "Example", CMS: site, Now: h.clock,
		Logger: slog.New(slog.DiscardHandler),
		Client: outbound.New(outbound.Options{AllowHTTP: true, AllowPrivate: []netip.Prefix{
			netip.MustParsePrefix("127.0.0.0/8")}}),
		Administrators: func(context.Context) ([]string, error) { return h.admins, nil },
		Mail: func(to []string, template string, data map[string]any) jobs.Spec {
			raw, err := json.Marshal(map[string]any{"to": to, "template": template, "data": data})
			if err != nil {
				t.Error(err)
			}
			return jobs.Spec{Type: "mail.send", Data: raw}
		}})
	if err != nil {
		t.Fatal(err)
	}
	handler.Register(h.registry)
	h.handler = handler
	return h, site
}

func (h *testSite) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// run runs a job and returns what it leaves to be run.
func (h *testSite) run(uuid string, n jobs.Spec) (notify.Result, []jobs.Spec, error) {
	h.t.Helper()
	entry, known := h.registry.Lookup("send_notification")
	if !known {
		h.t.Fatal("the alias is unknown")
	}
	kept := jobs.NewRun(h.clock)
	err := entry.Run(jobs.WithRun(h.t.Context(), kept), jobs.Job{UUID: uuid, Type: n.Type, Data: n.Data})
	raw, next := kept.Result()
	var r notify.Result
	if raw != nil {
		if err := json.Unmarshal(raw, &r); err != nil {
			h.t.Error(err)
		}
	}
	return r, next, err
}

func failed(n int) jobs.Spec {
	job, _ := notify.JobFailed(jobs.Job{Type: "sitemap.generate"}, fmt.Sprintf("it failed: %d", n),
		"https://example.com/jobs")
	return job
}

func TestOneMessageOfATopicAnHour(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			h, _ := newTestSite(t, engine, notify.Channel{Type: notify.TypeMail}, notify.Channel{
				Type: notify.TypeCMS, MinLevel: notify.Error})
			r, next, err := h.run("u1", failed(1))
			if err != nil || len(next) != 2 || r.Held {
				t.Fatalf("the first: %+v, %d jobs, %v", r, len(next), err)
			}
			if _, again, _ := h.run("u1", failed(1)); len(again) != 2 {
				t.Errorf("a job that died after it was let through must be let through again: %d jobs", len(again))
			}
			keys := map[string]bool{}
			var digest jobs.Spec
			for i := range 5 {
				h.pass(10 * time.Minute)
				r, next, err = h.run(fmt.Sprint("held", i), failed(2+i))
				if err != nil || !r.Held || len(next) != 1 {
					t.Fatalf("within the hour: %+v, %d jobs, %v", r, len(next), err)
				}
				digest = next[0]
				keys[digest.UniqueKey] = true
			}
			if len(keys) != 1 || digest.Delay != 10*time.Minute {
				t.Errorf("%d digests, the last in %s", len(keys), digest.Delay)
			}
			other, _ := notify.JobFailed(jobs.Job{Type: "mail.send"}, "x", "")
			if r, _, _ := h.run("other", other); r.Held {
				t.Error("another topic is held back")
			}
			h.pass(10 * time.Minute)
			_, next, err = h.run("digest", digest)
			if err != nil || len(next) != 2 || !strings.Contains(string(next[0].Data), `"count":5`) ||
				!strings.Contains(string(next[0].Data), "it failed: 6") {
				t.Fatalf("the digest: %v, %v", next, err)
			}
			if _, again, _ := h.run("digest", digest); len(again) != 2 {
				t.Errorf("a digest that died must tell again: %d jobs", len(again))
			}
			if r, _, _ := h.run("soon", failed(9)); !r.Held {
				t.Error("a message straight after the digest")
			}
		})
	}
}

// TestNobodyIsMailedWhereNobodyIsNamed: such a mail could only fail, and its
// failure would have to be reported again.
// TestAChannelThatIsNamedIsHeldBackToo: naming the channel is no way around the interval,
// nor is asking for the digest; over HTTP nobody but administrators may say that a message
// has passed.
func TestAChannelThatIsNamedIsHeldBackToo(t *testing.T) {
	var posts atomic.Int64
	chat := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { posts.Add(1) }))
	defer chat.Close()
	h, _ := newTestSite(t, jobstest.SQLite, notify.Channel{Name: "team", Type: notify.TypeGeneric, URL: chat.URL})
	var digest jobs.Spec
	for i := range 20 {
		r, next, err := h.run(fmt.Sprint("u", i), notify.Send.New(notify.Payload{Title: "Again", Channel: "team"}))
		if err != nil || r.Held != (i > 0) || i > 0 && len(next) != 1 {
			t.Fatalf("message %d: %+v, %d jobs, %v", i, r, len(next), err)
		}
		if i > 0 {
			digest = next[0]
		}
	}
	if n := posts.Load(); n != 1 {
		t.Errorf("%d of 20 messages reached the chat", n)
	}
	h.pass(time.Hour)
	if r, _, err := h.run("digest", digest); err != nil || r.Channel != "team" || posts.Load() != 2 {
		t.Errorf("the digest: %+v, %v, %d posts", r, err, posts.Load())
	}
	r, next, err := h.run("all", notify.Send.New(notify.Payload{Title: "Again"}))
	if err != nil || len(next) != 1 || r.Held {
		t.Fatalf("a message to all: %+v, %v", r, err)
	}
	if r, _, err := h.run("passed", next[0]); err != nil || r.Held || posts.Load() != 3 {
		t.Errorf("what was let through is held: %+v, %v", r, err)
	}
	entry, _ := h.registry.Lookup("notification.send")
	for _, field := range []string{"immediate", "passed", "digest", "sent_directly"} {
		if got := entry.Reserved(json.RawMessage(`{"title":"t","topic":"t","` + field + `":true}`)); len(got) != 1 ||
			got[0] != field {
			t.Errorf("%s: reserved are %v", field, got)
		}
	}
}

func TestNobodyIsMailedWhereNobodyIsNamed(t *testing.T) {
	h, _ := newTestSite(t, jobstest.SQLite, notify.Channel{Type: notify.TypeMail})
	h.admins = nil
	_, next, err := h.run("u1", failed(1))
	if err != nil || len(next) != 1 {
		t.Fatalf("%d jobs, %v", len(next), err)
	}
	r, mails, err := h.run("u2", next[0])
	if err != nil || len(mails) != 0 || !strings.Contains(r.Note, "admin_email") {
		t.Errorf("%+v, %d mails, %v", r, len(mails), err)
	}
	h.admins = []string{"zoe@example.com"}
	if _, mails, err := h.run("u3", next[0]); err != nil || len(mails) != 1 {
		t.Errorf("with an administrator: %d mails, %v", len(mails), err)
	}
}

// golden holds a body against testdata/NAME.golden.json, whose indentation is
// for its readers.
func golden(t *testing.T, name, got string) {
	t.Helper()
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, []byte(got), "", "  "); err != nil {
		t.Errorf("%s got no JSON: %v in %q", name, err, got)
	}
	pretty.WriteByte('\n')
	testgolden.Check(t, filepath.Join("testdata", name+".golden.json"), pretty.Bytes())
}

func TestEachChannelGetsItsFormat(t *testing.T) {
	var mu sync.Mutex
	got := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		got[r.URL.Path] = string(body)
	}))
	defer server.Close()
	h, site := newTestSite(t, jobstest.SQLite,
		notify.Channel{Type: notify.TypeSlack, URL: server.URL + "/slack/secret"}, notify.Channel{
			Type: notify.TypeDiscord, URL: server.URL + "/discord"},
		notify.Channel{Type: notify.TypeTelegram, URL: server.URL + "/bot1:abc", Chat: "-100"}, notify.Channel{
			Type: notify.TypeTeams, URL: server.URL + "/teams"},
		notify.Channel{Type: notify.TypeGeneric, URL: server.URL + "/plain"}, notify.Channel{Type: notify.TypeCMS},
		notify.Channel{Name: "loud", Type: notify.TypeMail, To: []string{"a@b.c"}})
	site.DB.MustExec(`CREATE TABLE admin_notifications (id INTEGER PRIMARY KEY, title TEXT, description TEXT,
		action_label TEXT, action_url TEXT, created_at TEXT, updated_at TEXT)`)
	_, next,
		err := h.run("u", notify.Send.New(notify.Payload{Title: "Backup <bad>", Message: "disk & \"quotes\" @everyone",
		Level: notify.Error, URL: "https://example.com/b"}))
	if err != nil || len(next) != 7 {
		t.Fatalf("%d jobs, %v", len(next), err)
	}
	var mail []jobs.Spec
	for i, n := range next {
		if strings.Contains(string(n.Data), "secret") || strings.Contains(string(n.Data), "1:abc") {
			t.Errorf("a secret stands in the payload %s", n.Data)
		}
		_, after, err := h.run(fmt.Sprint("c", i), n)
		if err != nil {
			t.Errorf("%s: %v", n.Data, err)
		}
		mail = append(mail, after...)
	}
	for path, name := range map[string]string{"/slack/secret": "slack", "/discord": "discord",
		"/bot1:abc/sendMessage": "telegram", "/teams": "teams", "/plain": "generic"} {
		golden(t, name, got[path])
	}
	if len(mail) != 1 || mail[0].Type != "mail.send" || !strings.Contains(string(mail[0].Data), `"a@b.c"`) {
		t.Errorf("mail jobs: %v", mail)
	}
	if _, told := notify.JobFailed(jobs.Job{Type: "mail.send", Metadata: mail[0].Metadata}, "", ""); told {
		t.Error("the failure of a notification's mail makes a notification")
	}
	var title string
	if err := site.DB.Get(&title, "SELECT title FROM admin_notifications"); err != nil || title != "Backup <bad>" {
		t.Errorf("the CMS received %q (%v)", title, err)
	}
}

func TestAChannelsErrorHidesItsAddressAndSaysHowToGoOn(t *testing.T) {
	var status atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(int(status.Load()))
	}))
	defer server.Close()
	h, _ := newTestSite(t, jobstest.SQLite, notify.Channel{Name: "team", Type: notify.TypeSlack, URL: server.URL +
		"/T0/secret"},
		notify.Channel{Name: "inside", Type: notify.TypeSlack, URL: "http://10.0.0.1/T0/secret"})
	for want, check := range map[int]func(error) bool{
		429: func(err error) bool { wait, ok := jobs.AsRetryAfter(err); return ok && wait == 8*time.Second },
		404: jobs.IsPermanent,
		500: func(err error) bool { return err != nil && !jobs.IsPermanent(err) },
	} {
		status.Store(int64(want))
		_, _, err := h.run("u", notify.Send.New(notify.Payload{Title: "t", Channel: "team"}))
		if !check(err) || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%d: %v", want, err)
		}
	}
	if _, _, err := h.run("u", notify.Send.New(notify.Payload{Title: "t", Channel: "inside"})); !jobs.IsPermanent(
		err) || strings.Contains(err.Error(), "secret") {
		t.Errorf("a private address: %v", err)
	}
	if r, _, err := h.run("u", notify.Send.New(notify.Payload{Title: "t", Channel: "gone"})); err != nil ||
		r.Note == "" {
		t.Errorf("a channel that was removed: %+v, %v", r, err)
	}
}

func TestBadChannelsAreRefusedAtStart(t *testing.T) {
	for _, c := range []notify.Channel{{Type: "pigeon"}, {Type: notify.TypeSlack}, {Type: notify.TypeTelegram},
		{Type: notify.TypeMail}, {Type: notify.TypeCMS}, {Type: notify.TypeSlack, URL: "https://x.example",
			MinLevel: "loud"}} {
		if _, err := notify.New(notify.Config{DB: jobstest.Migrated(t, jobstest.SQLite).DB, Now: time.Now,
			Logger: slog.New(slog.DiscardHandler), Channels: []notify.Channel{c}}); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

var _ notify.CMSNotifications = (*cms.Site)(nil)
