package web_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/audit"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/health"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// rows counts those of all our tables.
func (s *site) rows() (n int) {
	s.t.Helper()
	var tables []string
	if err := s.db.DB.Select(&tables,
		`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'`); err != nil {
		s.t.Fatal(err)
	}
	for _, table := range tables {
		var some int
		if err := s.db.DB.Get(&some, "SELECT COUNT(*) FROM "+table); err != nil {
			s.t.Fatal(err)
		}
		n += some
	}
	return n
}

func behindProxy(c *config) {
	c.TrustedProxies, c.Rate = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, 100
}

// floodClock is a time that the flood moves, so that a minute of it is short.
type floodClock struct{ moved atomic.Int64 }

func (c *floodClock) now() time.Time { return time.Now().Add(time.Duration(c.moved.Load())) }

// A minute's flood of everything that a stranger can send writes 100 rows at most
// in all tables together, and the administrator signs in meanwhile, from another
// address.
func TestAFloodWritesLittleAndLocksNobodyOut(t *testing.T) {
	const rounds = 600
	clock := &floodClock{}
	s := newSite(t, jobstest.SQLite, behindProxy, func(c *config) {
		c.Rate, c.Now = 20, clock.now
		c.Gate = &access.Authenticator{Store: access.NewStore(c.Enqueuer.(*site).db.DB, clock.now), Users: users(t)}
	})
	flooder, owner := header("X-Forwarded-For", "203.0.113.66"), header("X-Forwarded-For", "198.51.100.7")
	signIn := func() { s.do("POST", "/api/v1/session", `{"name":"admin","password":"right"}`, owner).want(t, 201) }
	before, owners, statuses, ofKind := s.rows(), 0, map[int]int{}, map[int]map[int]int{}
	for i := range rounds {
		clock.moved.Add(int64(time.Minute / rounds))
		for kind, a := range []answer{
			s.do("POST", "/api/v1/session", fmt.Sprintf(`{"name":"u%d%s","password":"x"}`, i,
				strings.Repeat("x", 150)), flooder),
			s.do("POST", "/api/v1/session", `{"name":"admin","password":"wrong"}`, flooder),
			s.do("POST", "/api/v1/session", `{"name":`, flooder),
			s.do("POST", "/api/v1/session", `{}`, flooder, header("Origin", "https://evil.example"),
				header("Sec-Fetch-Site", "cross-site")),
			s.do("GET", "/api/v1/jobs", nil, flooder, basic(fmt.Sprintf("n%d", i), "x")),
			s.do("POST", "/api/v1/jobs", `{"type":"cache.clear"}`, flooder, basic("admin", fmt.Sprint(i))),
			s.do("POST", "/api/v1/jobs", `{"type":"cache.clear"}`, flooder, bearer(fmt.Sprint("cmsjobs_", i))),
			s.do("POST", "/admin/sign-in", form("name", fmt.Sprintf("f%d", i), "password", "x"), flooder,
				header("Content-Type", "application/x-www-form-urlencoded")),
		} {
			statuses[a.status]++
			if ofKind[kind] == nil {
				ofKind[kind] = map[int]int{}
			}
			ofKind[kind][a.status]++
		}
		if i%(rounds/6) == 0 { // throughout
			rows := s.rows()
			signIn()
			owners += s.rows() - rows
		}
	}
	grown := s.rows() - before - owners
	t.Logf("%d rows; the administrator's sign-ins wrote %d; answers %v", grown, owners, ofKind)
	if grown > 50 { // 100 are allowed, and 99 came where each failure was written
		t.Errorf("%d requests wrote %d rows", len(ofKind)*rounds, grown)
	}
	if statuses[429] < rounds || statuses[401] == 0 {
		t.Errorf("answers are %v", statuses)
	}
	for kind, by := range ofKind { // wrong passwords have a separate limit, the others only the rate
		if by[429] == 0 {
			t.Errorf("requests of sort %d have no rate: %v", kind, by)
		}
	}
	signIn()
	s.do("GET", "/api/v1/jobs", nil, owner, basic("admin", "right")).want(t, 200)
	var entries audit.AuditEntryList
	s.admin("GET", "/api/v1/audit", nil, owner).want(t, 200).into(t, &entries)
	for _, d := range entries.Items {
		if d.Status == http.StatusTooManyRequests {
			t.Errorf("a 429 stands in the audit log: %+v", d)
		}
	}
}

// Failures beyond the first of an address are one entry a minute.
func TestFailuresAreAggregated(t *testing.T) {
	s := newSite(t, jobstest.SQLite, behindProxy, func(c *config) { c.Rate = 0 })
	for range 8 {
		s.do("POST", "/api/v1/session", `{"name":"admin","password":"wrong"}`,
			header("X-Forwarded-For", "203.0.113.66")).want(t, 401)
	}
	var entries audit.AuditEntryList
	s.admin("GET", "/api/v1/audit", nil).want(t, 200).into(t, &entries)
	if len(entries.Items) != 1 || entries.Items[0].Status != 401 || entries.Items[0].Target != "admin" {
		t.Errorf("%+v", entries.Items)
	}
}

func TestProbesWithStaleCredentialsAreAnswered(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		s.do("GET", path, nil, bearer("stale")).want(t, 200)
		s.do("GET", path, nil, basic("nobody", "x")).want(t, 200)
	}
	s.do("GET", "/metrics", nil, bearer("stale")).want(t, 401)
}

func TestAKeyThatStandsTwiceIsRefused(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	for _, body := range []string{`{"type":"cache.clear","type":"mail.send"}`,
		`{"type":"cache.clear","Type":"mail.send"}`, `{"type":"cache.clear","payload":{"a":1,"b":{"c":1,"c":2}}}`,
		`{"type":"cache.clear","payload":{"a":[{"x":1},{"x":1,"x":2}]}}`} {
		if a := s.admin("POST", "/api/v1/jobs", body).want(t, 400); !strings.Contains(string(a.body), "twice") {
			t.Errorf("%s: %s", body, a.body)
		}
	}
	for _, body := range []string{
		`{"type":"cache.clear","payload":{"a":1,"A":2,"b":{"a":1},"c":[{"a":1},{"a":2}],"d":[],"e":{}}}`} {
		s.admin("POST", "/api/v1/jobs", body).want(t, 201)
	}
}

// TestQueuesAreBounded asks at each way into the pages: the API, a forced pause, and rows
// that other programs write, which may have any name.
func TestQueuesAreBounded(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	for _, name := range []string{"a b", "höchste", "mail\n", "<b>", "a\x00", strings.Repeat("q", 192)} {
		body := map[string]string{"type": "cache.clear", "queue": name}
		if a := s.admin("POST", "/api/v1/jobs", body).want(t, 422); !strings.Contains(string(a.body), `"field":"queue"`) {
			t.Errorf("%q: %s", name, a.body)
		}
		s.admin("POST", "/api/v1/jobs/batch", map[string]any{"jobs": []any{body}}).want(t, 422)
		if a := s.admin("POST", "/api/v1/queues/"+url.PathEscape(name)+"/pause?force=1", nil); a.status < 400 ||
			a.status >= 500 {
			t.Errorf("pausing %q: %d %s", name, a.status, a.body)
		}
	}
	refused := 0
	for i := range 230 {
		if a := s.admin("POST", "/api/v1/jobs", fmt.Sprintf(`{"type":"cache.clear","queue":"q%d"}`,
			i)); a.status == 422 {
			refused++
		}
	}
	if refused < 25 || refused > 40 {
		t.Errorf("%d of 230 new queues were refused", refused)
	}
	s.admin("POST", "/api/v1/jobs", `{"type":"cache.clear","queue":"q0"}`).want(t, 201)
	for i := range 200 {
		s.db.MustExec("INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES (?, ?, 0, 1, 1)",
			fmt.Sprintf("row %d\xff", i/2), `{"type":"other"}`)
	}
	for i := range 60 {
		s.db.MustExec("INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES (?, ?, 0, 1, 1)",
			fmt.Sprintf("tenant %d", i), `{"type":"other"}`)
	}
	if a := s.admin("POST", "/api/v1/queues/one-more/pause?force=1", nil); a.status != 400 {
		t.Errorf("a pause makes one queue more: %d %s", a.status, a.body)
	}
	var stats ops.StatsView
	s.admin("GET", "/api/v1/jobs/stats", nil).want(t, 200).into(t, &stats)
	if len(stats.Queues) > jobs.MaxQueues+5 || stats.MoreQueues < 150 || stats.Waiting != int64(230-refused+1+260) {
		t.Errorf("%d queues are listed, %d more, %d jobs wait", len(stats.Queues), stats.MoreQueues, stats.Waiting)
	}
	for _, q := range stats.Queues {
		if strings.Contains(q.Name, "\uFFFD") {
			t.Fatalf("a name that is no text is listed: %q", q.Name)
		}
	}
	s.admin("GET", "/admin/queues", nil).want(t, 200)
	text := string(s.admin("GET", "/metrics", nil).want(t, 200).body)
	if n := strings.Count(text, "\n"); n > 1000 {
		t.Errorf("/metrics has %d lines", n)
	}
	sum, queues := 0, map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^cmsjobs_queue_jobs\{queue="([^"]+)",status="queued"\} (\d+)$`).
		FindAllStringSubmatch(text, -1) {
		queues[m[1]] = true
		n, _ := strconv.Atoi(m[2])
		sum += n
	}
	if len(queues) > 51 || !queues["other"] || sum != int(stats.Queued) {
		t.Errorf("cmsjobs_queue_jobs has %d queues, %d of %d jobs; other: %t", len(queues), sum, stats.Queued,
			queues["other"])
	}
}

func TestCountersAreToldOfFewQueues(t *testing.T) {
	m := health.NewMetrics("test", func(string) bool { return true })
	for i := range 300 {
		queue := fmt.Sprintf("q%d", i)
		m.Enqueued(queue, "cache.clear")
		m.Ended(jobs.Settlement{Claimed: jobs.Claimed{Job: jobs.Job{Type: "cache.clear", Queue: queue}},
			Outcome: jobs.Completed})
	}
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := 0
	for _, f := range families {
		if name := f.GetName(); name != "cmsjobs_jobs_enqueued_total" && name != "cmsjobs_jobs_processed_total" {
			continue
		}
		counted++
		all := 0.0
		for _, series := range f.GetMetric() {
			all += series.GetCounter().GetValue()
		}
		if n := len(f.GetMetric()); n != 51 || all != 300 {
			t.Errorf("%s has %d series that count %v jobs, want 51 and 300", f.GetName(), n, all)
		}
	}
	if counted != 2 {
		t.Errorf("%d of 2 counters were found", counted)
	}
}

func TestOneTokenHoldsFewStreams(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open := func(token string) int {
		r, err := http.NewRequestWithContext(ctx, "GET", s.http.URL+"/api/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Body.Close() })
		return a.StatusCode
	}
	for i := range 20 {
		if got := open(s.tokens["read"]); got != 200 {
			t.Fatalf("stream %d: %d", i, got)
		}
	}
	if got := open(s.tokens["read"]); got != 503 {
		t.Errorf("stream 21: %d", got)
	}
	if got := open(s.tokens["admin"]); got != 200 {
		t.Errorf("another token: %d", got)
	}
}

// A lock is seen and lifted by the API and on the page.
func TestLocksAreLifted(t *testing.T) {
	s := newSite(t, jobstest.SQLite, behindProxy)
	owner := header("X-Forwarded-For", "203.0.113.66")
	lock := func() string {
		for range 11 {
			s.do("POST", "/api/v1/session", `{"name":"admin","password":"wrong"}`, owner)
		}
		s.do("POST", "/api/v1/session", `{"name":"admin","password":"right"}`, owner).want(t, 429)
		var locks audit.LockList
		s.admin("GET", "/api/v1/locks", nil).want(t, 200).into(t, &locks)
		if len(locks.Items) != 1 || locks.Items[0].Address != "203.0.113.66" {
			t.Fatalf("%+v", locks)
		}
		return locks.Items[0].ID
	}
	s.admin("DELETE", "/api/v1/locks/"+lock(), nil).want(t, 204)
	id := lock()
	s.do("DELETE", "/api/v1/locks/"+id, nil, bearer(s.tokens["operate"])).want(t, 403)
	if page := string(s.do("GET", "/admin/audit", nil, basic("admin", "right")).want(t, 200).body); !strings.Contains(
		page, "/admin/locks/"+id+"/delete") {
		t.Error("the page shows no lock")
	}
	s.do("POST", "/admin/locks/"+id+"/delete", nil, basic("admin", "right")).want(t, 200) // behind the redirection
	s.do("POST", "/api/v1/session", `{"name":"admin","password":"right"}`, owner).want(t, 201)
	s.admin("DELETE", "/api/v1/locks/"+id, nil).want(t, 204) // as it should be
}

// served is a site on a real listener, as the service has it.
func served(t *testing.T, changes ...func(*config)) (*site, string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return servedOn(t, l, changes...), l.Addr().String()
}

// servedOn is a site on l.
func servedOn(t *testing.T, l net.Listener, changes ...func(*config)) *site {
	s := newSite(t, jobstest.SQLite, changes...)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// raw sends text over a new connection and returns all that is answered.
func raw(t *testing.T, address, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return rawOn(t, c, text)
}

// rawOn is raw over c, which it closes.
func rawOn(t *testing.T, c net.Conn, text string) string {
	t.Helper()
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	all, _ := io.ReadAll(bufio.NewReader(c)) // what came before an end by force counts, too
	return string(all)
}

// A client that keeps its connection sends chunked bodies one after another.
func TestChunkedBodiesOnOneConnection(t *testing.T) {
	s, address := served(t)
	client := &http.Client{}
	defer client.CloseIdleConnections()
	for i := range 5 {
		r, err := http.NewRequest("POST", "http://"+address+"/api/v1/jobs",
			io.MultiReader(strings.NewReader(`{"type":`), strings.NewReader(`"cache.clear"}`)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+s.tokens["admin"])
		a, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, a.Body)
		a.Body.Close()
		if a.StatusCode != 201 {
			t.Errorf("request %d: %s", i, a.Status)
		}
	}
}

func TestAStalledUploadIsNoSuccess(t *testing.T) {
	s, address := served(t, func(c *config) { c.Timeout = 300 * time.Millisecond })
	got := raw(t, address, "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+s.tokens["admin"]+
		"\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	if !strings.HasPrefix(got, "HTTP/1.1 408") || !strings.Contains(got, "Connection: close") {
		t.Errorf("%s", got)
	}
	if n := s.due(); n != 0 {
		t.Errorf("%d jobs were enqueued", n)
	}
}
