package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/breaker"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/orders"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// receiver is a real HTTP server that keeps what it gets.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	headers []http.Header
	bodies  [][]byte
	answer  func(w http.ResponseWriter, r *http.Request)
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.headers, r.bodies = append(r.headers, req.Header.Clone()), append(r.bodies, body)
		answer := r.answer
		r.mu.Unlock()
		if answer != nil {
			answer(w, req)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) say(answer func(w http.ResponseWriter, r *http.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.bodies)
}

func (r *receiver) last() (http.Header, []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.headers[len(r.headers)-1], r.bodies[len(r.bodies)-1]
}

// queue keeps what was enqueued.
type queue struct{ jobs []jobs.Spec }

func (q *queue) Enqueue(_ context.Context, list ...jobs.Spec) ([]jobs.Receipt, error) {
	q.jobs = append(q.jobs, list...)
	return make([]jobs.Receipt, len(list)), nil
}

type office struct {
	*webhook.Handler
	t        *testing.T
	registry *jobs.Registry
	queue    *queue
	book     *orders.Book
}

func newOffice(t *testing.T, engine jobstest.Engine, change func(*webhook.Config)) *office {
	t.Helper()
	db := jobstest.Migrated(t, engine)
	o := &office{t: t, registry: jobs.NewRegistry(), queue: &queue{}}
	o.book = &orders.Book{DB: db.DB, Now: time.Now}
	c := webhook.Config{DB: db.DB, Orders: o.book, AllowHTTP: true, Enqueue: o.queue, Now: time.Now,
		Logger: slog.New(slog.DiscardHandler), Breaker: breaker.New(db.DB, breaker.Config{Failures: 3}),
		Client: outbound.New(outbound.Options{AllowHTTP: true, AllowPrivate: []netip.Prefix{
			netip.MustParsePrefix("127.0.0.0/8")}, Timeout: 5 * time.Second})}
	if change != nil {
		change(&c)
	}
	h, err := webhook.New(c)
	if err != nil {
		t.Fatal(err)
	}
	h.Register(o.registry)
	o.Handler = h
	return o
}

func (o *office) run(uuid string, attempt int, n jobs.Spec) (webhook.Result, error) {
	o.t.Helper()
	entry, _ := o.registry.Lookup(webhook.Deliver.Name)
	given, err := o.book.Give(o.t.Context(), o.registry, n)
	if err != nil {
		return webhook.Result{}, err
	}
	n = given[0]
	kept := jobs.NewRun(time.Now)
	err = entry.Run(jobs.WithRun(o.t.Context(), kept), jobs.Job{UUID: uuid, Type: n.Type, Data: n.Data,
		Attempt: attempt, MaxAttempts: 6, EnqueuedAt: time.Now()})
	var r webhook.Result
	if raw, _ := kept.Result(); raw != nil {
		if err := json.Unmarshal(raw, &r); err != nil {
			o.t.Error(err)
		}
	}
	return r, err
}

func (o *office) verify(secret string, r *receiver) error {
	o.t.Helper()
	check, err := webhook.Verifier(secret, time.Now)
	if err != nil {
		o.t.Fatal(err)
	}
	return check(r.last())
}

func TestAnEventArrivesSignedAtThoseWhoWantIt(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			r := newReceiver(t)
			o := newOffice(t, engine, nil)
			_, secret, err := o.Create(t.Context(), "jobs", r.URL+"/hook?key=hidden",
				[]string{"job.*", "backup.completed"})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := o.Create(t.Context(), "other", r.URL, []string{"sitemap.updated"}); err != nil {
				t.Fatal(err)
			}
			list, err := o.PublishFailure(t.Context(), jobs.Job{UUID: "u-1", Type: "mail.send"}, "no such user")
			if err != nil || len(list) != 1 {
				t.Fatalf("%d jobs, %v", len(list), err)
			}
			r.say(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); fmt.Fprint(w, "broken\x00\xff") })
			if _, err := o.run("d-1", 1, list[0]); err == nil || jobs.IsPermanent(err) ||
				strings.Contains(err.Error(), "hidden") {
				t.Errorf("an answer 500: %v", err)
			}
			r.say(nil)
			if result, err := o.run("d-1", 2, list[0]); err != nil || result.Status != 200 {
				t.Errorf("%+v, %v", result, err)
			}
			first, second := r.headers[0], r.headers[1]
			if first.Get("webhook-id") != "d-1" || second.Get("webhook-id") != "d-1" {
				t.Errorf("the ids are %q and %q", first.Get("webhook-id"), second.Get("webhook-id"))
			}
			if err := o.verify(secret, r); err != nil {
				t.Error(err)
			}
			var body struct {
				Type, Timestamp string
				Data            map[string]any
			}
			_, raw := r.last()
			if err := json.Unmarshal(raw, &body); err != nil || body.Type != "job.failed" ||
				body.Data["type"] != "mail.send" {
				t.Errorf("%s (%v)", raw, err)
			}
			if _, err := time.Parse(time.RFC3339, body.Timestamp); err != nil {
				t.Error(err)
			}
			log, err := o.Deliveries(t.Context(), 0, jobs.Page{Limit: 1})
			if err != nil || len(log.Items) != 1 || !log.Items[0].Succeeded() || log.Next == "" ||
				strings.Contains(log.Items[0].URL, "hidden") {
				t.Errorf("%+v, %v", log, err)
			}
			older, err := o.Deliveries(t.Context(), 0, jobs.Page{Limit: 1, Cursor: log.Next})
			if err != nil || len(older.Items) != 1 || older.Items[0].Status != 500 || older.Next != "" ||
				older.Items[0].Answer == "" {
				t.Errorf("%+v, %v", older, err)
			}
			if _, err := o.Redeliver(t.Context(), older.Items[0].ID); err != nil {
				t.Fatal(err)
			}
			if _, err := o.run("d-2", 1, o.queue.jobs[0]); err != nil {
				t.Fatal(err)
			}
			header, again := r.last()
			if header.Get("webhook-id") != "d-1" || string(again) != string(raw) {
				t.Errorf("redelivered as %s: %s", header.Get("webhook-id"), again)
			}
		})
	}
}

// A row cannot say what is sent to whom, and no subscription gets what it did
// not ask for: both would be signed.
func TestNobodyForgesASignedEvent(t *testing.T) {
	r := newReceiver(t)
	o := newOffice(t, jobstest.SQLite, nil)
	s, _, err := o.Create(t.Context(), "x", r.URL, []string{"backup.completed"})
	if err != nil {
		t.Fatal(err)
	}
	entry, _ := o.registry.Lookup(webhook.Deliver.Name)
	row := func(data string) error {
		return entry.Run(jobs.WithRun(t.Context(), jobs.NewRun(time.Now)),
			jobs.Job{UUID: "u", Type: webhook.Deliver.Name, Data: json.RawMessage(data), EnqueuedAt: time.Now()})
	}
	forged := fmt.Sprintf(`{"subscription":%d,"event":"backup.completed","data":{"forged":true}}`, s.ID)
	for _, data := range []string{forged, `{"url":"` + r.URL + `","event":"a.b"}`, `{}`, `{"order":"x"}`,
		`{"order":"00000000000000000000000000000000"}`,
		`{"order":"00000000000000000000000000000000","subscription":1,"event":"a.b"}`} {
		if err := row(data); !jobs.IsPermanent(err) {
			t.Errorf("the row %s: %v", data, err)
		}
	}
	unwanted := webhook.Deliver.New(webhook.DeliverPayload{Subscription: s.ID, Event: "order.paid"})
	if _, err := o.run("u", 1, unwanted); !jobs.IsPermanent(err) || !strings.Contains(err.Error(), "backup.completed") {
		t.Errorf("an event that the subscription does not want: %v", err)
	}
	if r.count() != 0 {
		t.Errorf("%d forged events arrived", r.count())
	}
	if _, err := o.run("u", 1,
		webhook.Deliver.New(webhook.DeliverPayload{Subscription: s.ID, Event: webhook.Test})); err != nil ||
		r.count() != 1 {
		t.Errorf("the test event: %v", err)
	}
	open := newOffice(t, jobstest.SQLite, func(c *webhook.Config) { c.Rows = true })
	if s, _, err = open.Create(t.Context(), "x", r.URL, []string{"order.*"}); err != nil {
		t.Fatal(err)
	}
	entry, _ = open.registry.Lookup(webhook.Deliver.Name)
	if err := row(fmt.Sprintf(`{"subscription":%d,"event":"order.paid"}`, s.ID)); err != nil {
		t.Errorf("a row where rows are allowed: %v", err)
	}
	if err := row(fmt.Sprintf(`{"subscription":%d,"event":"backup.completed"}`, s.ID)); !jobs.IsPermanent(err) {
		t.Errorf("an event that the subscription does not want, where rows are allowed: %v", err)
	}
}

func TestAFailedWebhookMakesNoWebhook(t *testing.T) {
	o := newOffice(t, jobstest.SQLite, nil)
	if _, _, err := o.Create(t.Context(), "all", "https://example.com/", nil); err != nil {
		t.Fatal(err)
	}
	if list, err := o.PublishFailure(t.Context(), jobs.Job{Type: webhook.Deliver.Name}, "x"); err != nil ||
		len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestARotatedSecretSignsBesideTheOldOne(t *testing.T) {
	r := newReceiver(t)
	now := time.Now()
	o := newOffice(t, jobstest.SQLite, func(c *webhook.Config) { c.Now = func() time.Time { return now } })
	s, old, err := o.Create(t.Context(), "x", r.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := o.Rotate(t.Context(), s.ID, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	job := webhook.Deliver.New(webhook.DeliverPayload{Subscription: s.ID, Event: "a.b"})
	if _, err := o.run("u", 1, job); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(o.verify(old, r), o.verify(fresh, r)); err != nil {
		t.Errorf("within the overlap: %v", err)
	}
	now = now.Add(11 * time.Second)
	if _, err := o.run("v", 1, job); err != nil {
		t.Fatal(err)
	}
	if o.verify(old, r) == nil || o.verify(fresh, r) != nil {
		t.Error("after the overlap the old secret still signs, or the new one does not")
	}
}

func TestAnswersDecideHowItGoesOn(t *testing.T) {
	r := newReceiver(t)
	o := newOffice(t, jobstest.SQLite, func(c *webhook.Config) { c.Breaker = nil })
	s, _, err := o.Create(t.Context(), "x", r.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	job := webhook.Deliver.New(webhook.DeliverPayload{Subscription: s.ID, Event: "a.b"})
	answer := func(status int, header ...string) error {
		r.say(func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
		})
		_, err := o.run("u", 1, job)
		return err
	}
	for _, status := range []int{200, 201, 204, 299} {
		if err := answer(status); err != nil {
			t.Errorf("%d: %v", status, err)
		}
	}
	for _, status := range []int{301, 400, 401, 404, 429, 500, 503} {
		if err := answer(status, "Location", "http://127.0.0.1:1/"); err == nil || jobs.IsPermanent(err) {
			t.Errorf("%d: %v", status, err)
		}
	}
	if wait, ok := jobs.AsRetryAfter(answer(429, "Retry-After", "120")); !ok || wait != 2*time.Minute {
		t.Errorf("Retry-After in seconds: %v, %s", ok, wait)
	}
	if wait,
		ok := jobs.AsRetryAfter(
		answer(503, "Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))); !ok ||
		wait < 59*time.Minute || wait > time.Hour {
		t.Errorf("Retry-After as a date: %v, %s", ok, wait)
	}
	if wait, ok := jobs.AsRetryAfter(answer(503, "Retry-After", "99999999")); !ok || wait != 6*time.Hour {
		t.Errorf("an endless Retry-After: %v, %s", ok, wait)
	}
	if err := answer(410); err != nil {
		t.Error(err)
	}
	list, err := o.Subscriptions(t.Context())
	if err != nil || list[0].Status != webhook.Disabled || list[0].Reason == "" {
		t.Errorf("after 410: %+v, %v", list, err)
	}
	before := r.count()
	if result, err := o.run("u", 2, job); err != nil || result.Note == "" || r.count() != before {
		t.Errorf("to a disabled one: %+v, %v", result, err)
	}
	if err := o.Enable(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if err := answer(200); err != nil || r.count() != before+1 {
		t.Errorf("enabled again: %v", err)
	}
}

func TestAddressesInsideAreRefused(t *testing.T) {
	canary := newReceiver(t)
	port := canary.URL[strings.LastIndex(canary.URL, ":"):]
	o := newOffice(t, jobstest.SQLite, func(c *webhook.Config) {
		c.Client = outbound.New(outbound.Options{AllowHTTP: true})
	})
	for _, address := range []string{canary.URL, "http://localhost" + port, "http://[::1]" + port,
		"http://[::ffff:127.0.0.1]" + port, "http://0.0.0.0" + port, "http://2130706433" + port,
		"http://0x7f.1" + port, "http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/", "http://192.168.1.1/",
		"http://100.64.0.1/", "http://[fe80::1]/", "http://[fd00::1]/", "http://[64:ff9b::7f00:1]/"} {
		_, err := o.run("u", 1, webhook.Deliver.New(webhook.DeliverPayload{URL: address, Event: "a.b"}))
		if err == nil {
			t.Errorf("%s was called", address)
		}
	}
	for _, address := range []string{"file:///etc/passwd", "gopher://example.com/", "https://user:pass@example.com/",
		"https://", "example.com", "https://exa mple.com"} {
		if _, err := o.run("u", 1,
			webhook.Deliver.New(webhook.DeliverPayload{URL: address, Event: "a.b"})); !jobs.IsPermanent(err) {
			t.Errorf("%s: %v", address, err)
		}
		if _, _, err := o.Create(t.Context(), "x", address, nil); err == nil {
			t.Errorf("%s can be subscribed", address)
		}
	}
	if canary.count() != 0 {
		t.Errorf("%d requests came through", canary.count())
	}
}

func TestARedirectInsideIsNotFollowed(t *testing.T) {
	canary, r := newReceiver(t), newReceiver(t)
	r.say(func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, canary.URL, http.StatusTemporaryRedirect)
	})
	o := newOffice(t, jobstest.SQLite, nil)
	if _, err := o.run("u", 1, webhook.Deliver.New(webhook.DeliverPayload{URL: r.URL, Event: "a.b"})); err == nil ||
		canary.count() != 0 {
		t.Errorf("%v, %d requests", err, canary.count())
	}
}

func TestAHostThatIsOutChargesNoAttempts(t *testing.T) {
	r := newReceiver(t)
	o := newOffice(t, jobstest.SQLite, nil)
	address := r.URL
	r.Close()
	var last error
	for range 4 {
		_, last = o.run("u", 1, webhook.Deliver.New(webhook.DeliverPayload{URL: address, Event: "a.b"}))
	}
	if _, ok := jobs.AsRetryAfter(last); !ok || !errors.Is(last, breaker.ErrOpen) {
		t.Errorf("after three failures: %v", last)
	}
}

func TestALongAnswerIsCut(t *testing.T) {
	r := newReceiver(t)
	r.say(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("é", 2<<20)) })
	o := newOffice(t, jobstest.SQLite, nil)
	if _, err := o.run("u", 1, webhook.Deliver.New(webhook.DeliverPayload{URL: r.URL, Event: "a.b"})); err != nil {
		t.Fatal(err)
	}
	log, err := o.Deliveries(t.Context(), 0, jobs.Page{})
	if err != nil || len([]rune(log.Items[0].Answer)) != 4<<10 {
		t.Errorf("%d characters, %v", len([]rune(log.Items[0].Answer)), err)
	}
}

// The example of the Standard Webhooks specification's reference libraries.
func TestTheSignatureIsTheStandardOne(t *testing.T) {
	const secret, id, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek",
		`{"test": 2432232314}`
	at := time.Unix(1614265330, 0)
	got, err := webhook.Sign(secret, id, at, []byte(body))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
		t.Errorf("%s, want %s (%v)", got, want, err)
	}
	check := func(now time.Time, change func(http.Header)) error {
		v, err := webhook.Verifier(secret, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{}
		header.Set("webhook-id", id)
		header.Set("webhook-timestamp", fmt.Sprint(at.Unix()))
		header.Set("webhook-signature", "v2,xxx v1,AAAA "+got)
		change(header)
		return v(header, []byte(body))
	}
	if err := check(at, func(http.Header) {}); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"late":         check(at.Add(6*time.Minute), func(http.Header) {}),
		"early":        check(at.Add(-6*time.Minute), func(http.Header) {}),
		"another id":   check(at, func(h http.Header) { h.Set("webhook-id", "other") }),
		"no signature": check(at, func(h http.Header) { h.Del("webhook-signature") }),
		"v1a only":     check(at, func(h http.Header) { h.Set("webhook-signature", "v1a,"+got[3:]) }),
		"no time":      check(at, func(h http.Header) { h.Del("webhook-timestamp") }),
	} {
		if !errors.Is(err, webhook.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := webhook.Verifier("short", time.Now); err == nil {
		t.Error("a secret that is none is taken")
	}
}

func TestSubscriptionsShowNoSecret(t *testing.T) {
	o := newOffice(t, jobstest.SQLite, nil)
	_, secret, err := o.Create(t.Context(), "x", "https://example.com/", []string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	list, err := o.Subscriptions(t.Context())
	if err != nil || len(list) != 1 || !slices.Equal(list[0].Events, []string{"*"}) {
		t.Fatalf("%+v, %v", list, err)
	}
	raw, err := json.Marshal(list)
	if err != nil || strings.Contains(string(raw), secret) {
		t.Errorf("%s, %v", raw, err)
	}
	if err := o.Remove(t.Context(), list[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := o.Remove(t.Context(), list[0].ID); !errors.Is(err, webhook.ErrNoSubscription) {
		t.Errorf("removed twice: %v", err)
	}
}

func TestSixAttemptsOverNineHours(t *testing.T) {
	p := webhook.Deliver.Policy
	var waits []time.Duration
	for failures := 1; failures < p.MaxAttempts; failures++ {
		waits = append(waits, p.Backoff(failures))
	}
	if want := []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour,
		6 * time.Hour}; !slices.Equal(waits, want) {
		t.Errorf("it is tried again after %v, want %v", waits, want)
	}
}

// A delivery that is asked to stop returns, also when the database does not let
// it write down what it did: the worker waits for its handlers for a moment only.
func TestADeliveryReturnsWhenItIsToldToStop(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		var db *sqlx.DB
		o := newOffice(t, engine, func(c *webhook.Config) { db = c.DB })
		held, err := db.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		if _, err := held.ExecContext(t.Context(), "LOCK TABLES cmsjobs_webhook_deliveries WRITE"); err != nil {
			t.Fatal(err)
		}
		defer func() { _, _ = held.ExecContext(context.Background(), "UNLOCK TABLES") }() // it ends with its session
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		r := newReceiver(t)
		r.say(func(_ http.ResponseWriter, req *http.Request) { stop(); <-req.Context().Done() })
		given, err := o.book.Give(ctx, o.registry,
			webhook.Deliver.New(webhook.DeliverPayload{URL: r.URL, Event: "a.b"}))
		if err != nil {
			t.Fatal(err)
		}
		entry, _ := o.registry.Lookup(webhook.Deliver.Name)
		returned := make(chan error, 1)
		go func() {
			returned <- entry.Run(ctx, jobs.Job{UUID: "u", Type: given[0].Type, Data: given[0].Data, Attempt: 1,
				MaxAttempts: 6, EnqueuedAt: time.Now()})
		}()
		select {
		case err := <-returned:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Error("it does not return")
		}
	})
}
