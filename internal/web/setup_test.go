package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/orders"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/feature"
	jobpages "github.com/cmsjobs/cmsjobs/internal/web/feature/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web/saved"
)

// config is what a server of the tests is made of.
type config struct {
	web.Config
	feature.Service
	// Parts are the ports of the other features.
	Parts feature.Ports
}

// site is a server over a real store, and the worker's registry.
type site struct {
	t        testing.TB
	db       *jobstest.Database
	store    *queue.Store
	history  *history.Store
	access   *access.Store
	book     *orders.Book
	registry *jobs.Registry
	server   *web.Server
	http     *httptest.Server
	log      *bytes.Buffer
	tokens   map[access.Scope]string
}

type mailPayload struct {
	To       string `json:"to"`
	Subject  string `json:"subject,omitempty"`
	Password string `json:"password,omitempty"`
	Body     string `json:"body,omitempty"`
	// Immediate is for administrators in the tests of effects.
	Immediate bool `json:"immediate,omitempty"`
}

// Validate implements jobs.Validator.
func (p mailPayload) Validate() error {
	if !strings.Contains(p.To, "@") {
		return errors.New("to is no mail address")
	}
	return nil
}

var (
	// A row may ask for fewer attempts than its type has, never for more.
	mailKind  = jobs.Kind[mailPayload]{Name: "mail.send", Queue: "cmsjobs", Policy: jobs.Policy{MaxAttempts: 6}}
	cacheKind = jobs.Kind[map[string]any]{Name: "cache.clear", Queue: "cmsjobs", Policy: jobs.Policy{MaxAttempts: 1}}
)

func newSite(t testing.TB, engine jobstest.Engine, changes ...func(*config)) *site {
	t.Helper()
	s := &site{t: t, db: jobstest.Migrated(t, engine), registry: jobs.NewRegistry(), log: &bytes.Buffer{},
		tokens: map[access.Scope]string{}}
	ctx := context.Background()
	if _, err := tables.CreateTables(ctx, s.db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	jobs.Handle(s.registry, mailKind, func(ctx context.Context, _ jobs.Job, p mailPayload) error {
		if p.Subject == "fail" {
			return jobs.Permanent(fmt.Errorf("550 no such user %s", p.To))
		}
		jobs.Logf(ctx, "sent to %s", p.To)
		return jobs.SetResult(ctx, map[string]string{"accepted": p.To})
	})
	jobs.Handle(s.registry, cacheKind, func(context.Context, jobs.Job, map[string]any) error { return nil })
	found, err := tables.Open(ctx, s.db.DB, tables.Options{Registry: s.registry, DefaultQueue: "cmsjobs"})
	if err != nil {
		t.Fatal(err)
	}
	if s.store, err = queue.New(ctx, found); err != nil {
		t.Fatal(err)
	}
	s.book = &orders.Book{DB: s.db.DB, Now: time.Now}
	s.history = history.New(found)
	jobpages.RegisterBulk(s.registry, s.book, s.history)
	s.access = access.NewStore(s.db.DB, time.Now)
	cfg := config{Config: web.Config{Enqueuer: s, Registry: s.registry, Ledger: s.history, History: s.history,
		Gate: &access.Authenticator{Store: s.access, Users: users(t)}, Now: time.Now,
		Log: slog.New(slog.DiscardHandler), Version: "test",
		MaskPaths: []string{"mail.send:body"}}, Service: feature.Service{Mutator: s.history, Control: ops.Control{
		Queues: s.history, Known: s.queueNames}, Saved: saved.NewStore(s.db.DB, time.Now), Restorable: s.history.Restorable}}
	for _, change := range changes {
		change(&cfg)
	}
	cfg.Parts.Service = cfg.Service
	cfg.Features = feature.All(cfg.Parts)
	if s.server, err = web.New(cfg.Config); err != nil {
		t.Fatal(err)
	}
	s.http = httptest.NewServer(s.server.Handler())
	t.Cleanup(s.http.Close)
	for _, scope := range access.AllScopes() {
		_, s.tokens[scope],
			err = s.access.CreateToken(ctx, access.Token{Name: "test-" + string(scope), Scopes: access.Scopes{scope}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// queueNames are those of types and of waiting jobs.
func (s *site) queueNames(ctx context.Context) ([]string, error) {
	names := []string{"cmsjobs"}
	stats, err := s.history.Stats(ctx)
	for _, q := range stats.Queues {
		names = append(names, q.Queue)
	}
	return names, err
}

// Enqueue implements jobs.Enqueuer as the service does: internal jobs get their
// orders first.
func (s *site) Enqueue(ctx context.Context, list ...jobs.Spec) ([]jobs.Receipt, error) {
	given, err := s.book.Give(ctx, s.registry, list...)
	if err != nil {
		return nil, err
	}
	return s.store.Enqueue(ctx, given...)
}

func users(t testing.TB) []access.User {
	hash, err := bcrypt.GenerateFromPassword([]byte("right"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	var list []access.User
	for _, role := range access.Roles() {
		list = append(list, access.User{Name: string(role), PasswordHash: string(hash), Role: role})
	}
	return list
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
}

// with changes a request before it is sent.
type with func(*http.Request)

func header(name, value string) with { return func(r *http.Request) { r.Header.Set(name, value) } }

func bearer(token string) with { return header("Authorization", "Bearer "+token) }

func basic(name, password string) with {
	return func(r *http.Request) { r.SetBasicAuth(name, password) }
}

func cookie(c *http.Cookie) with { return func(r *http.Request) { r.AddCookie(c) } }

// do sends a request; body is JSON text, or a value that becomes it.
func (s *site) do(method, path string, body any, how ...with) answer {
	s.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			s.t.Fatal(err)
		}
		reader = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.http.URL+path, reader)
	if err != nil {
		s.t.Fatal(err)
	}
	if reader != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range how {
		h(r)
	}
	response, err := s.http.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.Header.Get("Content-Type") == "text/event-stream" { // has no end
		return answer{response.StatusCode, response.Header, nil}
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	a := answer{response.StatusCode, response.Header, text}
	checkContract(s.t, method, path, body, a)
	return a
}

// admin is do with an administrator's token.
func (s *site) admin(method, path string, body any, how ...with) answer {
	s.t.Helper()
	return s.do(method, path, body, append([]with{bearer(s.tokens[access.Admin])}, how...)...)
}

// want fails unless the answer has a status.
func (a answer) want(t testing.TB, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// enqueue puts a job in and returns its id.
func (s *site) enqueue(request string) string {
	s.t.Helper()
	var got ops.Enqueued
	s.admin("POST", "/api/v1/jobs", request).want(s.t, http.StatusCreated).into(s.t, &got)
	return got.ID
}

// work runs jobs as a worker does, until none is due.
func (s *site) work() {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); s.due() > 0; {
		s.workOn("cmsjobs")
		if time.Now().After(deadline) {
			s.t.Fatalf("%d jobs are due and not taken", s.due())
		}
	}
}

// workOn runs what is due on a queue, once.
func (s *site) workOn(queue string) {
	s.t.Helper()
	ctx := s.t.Context()
	claimed, err := s.store.Claim(ctx, jobs.ClaimRequest{Worker: "test", Queues: []string{queue}, Limit: 500,
		Lease: 90 * time.Second})
	if err != nil {
		s.t.Fatal(err)
	}
	var ends []jobs.Settlement
	for _, c := range claimed {
		ends = append(ends, s.run(c))
	}
	each, err := s.store.Settle(ctx, ends)
	if err = errors.Join(append(each, err)...); err != nil {
		s.t.Fatalf("settling: %v", err)
	}
	if s.server != nil {
		s.server.ForgetAnswers()
	}
}

func (s *site) due() (n int) {
	s.t.Helper()
	if err := s.db.Get(&n, fmt.Sprintf("SELECT COUNT(*) FROM jobs WHERE available_at <= %d",
		time.Now().Unix())); err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *site) run(c jobs.Claimed) jobs.Settlement {
	entry, _ := s.registry.Lookup(c.Job.Type)
	run := jobs.NewRun(time.Now)
	start := time.Now()
	err := entry.Run(jobs.WithRun(s.t.Context(), run), c.Job)
	end := jobs.Settlement{Claimed: c, Outcome: jobs.Completed, Worker: "test", Started: start,
		Duration: time.Since(start)}
	end.Result, end.FollowUps = run.Result()
	if err != nil {
		end.Outcome, end.Error = jobs.Failed, err.Error()
	}
	return end
}

// allRoutes are those of the core and of all features.
func allRoutes() []web.Route { return web.Routes(feature.All(feature.Ports{})) }
