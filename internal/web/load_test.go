package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	jobpages "github.com/cmsjobs/cmsjobs/internal/web/feature/jobs"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// serve runs Server.Serve on a free port until stop, or the test's end.
func serve(t testing.TB, s *site) (url string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.server.Serve(ctx, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	t.Cleanup(stop)
	return "http://" + l.Addr().String(), stop
}

// TestTwoHundredClientsLoseNothing lets 200 clients enqueue and list at once:
// every job that was acknowledged is there, once.
func TestTwoHundredClientsLoseNothing(t *testing.T) {
	const clients, each = 200, 3
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			// How long an answer takes is the machine's affair here, which the tests of other packages use, too.
			s := newSite(t, engine, func(c *config) { c.Timeout = 10 * time.Minute })
			s.db.SetMaxOpenConns(20)
			url, _ := serve(t, s)
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
			defer client.CloseIdleConnections()
			var mu sync.Mutex
			acknowledged := map[string]bool{}
			var enqueues, lists []time.Duration
			var wg sync.WaitGroup
			spent := jobstest.ProcessorTime(t)
			for n := range clients {
				wg.Go(func() {
					for i := range each {
						start := time.Now()
						var got ops.Enqueued
						body := fmt.Sprintf(`{"type":"cache.clear","payload":{"n":%d}}`, n*each+i)
						if !ask(t, client, "POST", url+"/api/v1/jobs", body, s.tokens[access.Enqueue], &got) {
							return
						}
						enqueued := time.Since(start)
						start = time.Now()
						var list jobpages.JobList
						if !ask(t, client, "GET", url+"/api/v1/jobs?limit=20", "", s.tokens[access.Read], &list) {
							return
						}
						mu.Lock()
						acknowledged[got.ID] = true
						enqueues, lists = append(enqueues, enqueued), append(lists, time.Since(start))
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			spent = (jobstest.ProcessorTime(t) - spent) / (2 * clients * each)
			var rows, auditEntries int
			if err := s.db.Get(&rows, "SELECT COUNT(*) FROM jobs"); err != nil {
				t.Fatal(err)
			}
			if err := s.db.Get(&auditEntries,
				"SELECT COUNT(*) FROM cmsjobs_audit WHERE action = 'jobs.enqueue'"); err != nil {
				t.Fatal(err)
			}
			if len(acknowledged) != clients*each || rows != clients*each || auditEntries != clients*each {
				t.Errorf("%d acknowledged, %d rows, %d audit entries; want %d of each", len(acknowledged), rows,
					auditEntries, clients*each)
			}
			slices.Sort(enqueues)
			slices.Sort(lists)
			t.Logf("%s: enqueue p50 %s p99 %s, list p50 %s p99 %s; %s of processor a request, client and server",
				engine, at(enqueues, 50), at(enqueues, 99), at(lists, 50), at(lists, 99),
				spent.Round(10*time.Microsecond))
		})
	}
}

func at(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)*percent/100].Round(100 * time.Microsecond)
}

func ask(t *testing.T, client *http.Client, method, url, body, token string, into any) bool {
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return false
	}
	bearer(token)(r)
	response, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return false
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		t.Errorf("%s %s: %d %s %v", method, url, response.StatusCode, text, err)
		return false
	}
	return json.Unmarshal(text, into) == nil
}

// FuzzBodies sends foreign bytes to every route that reads a body: whatever
// comes, the answer is a document, never a 5xx.
func FuzzBodies(f *testing.F) {
	s := newSite(f, jobstest.SQLite, furnished)
	var with []web.Route
	for _, r := range allRoutes() {
		if r.Body != nil {
			with = append(with, r)
		}
	}
	for i := range with {
		for _, body := range []string{
			`{}`, ``, `null`, `[[[`,
			`{"type":"mail.send","payload":{"to":"a@b"},"run_at":"2026-01-01T00:00:00Z","max_attempts":4}`,
			`{"jobs":[{"type":"cache.clear","delay":1e99}]}`,
			`{"action":"retry","ids":["x"],"since":"24h","dry_run":true}`, `{"name":"admin","password":"x"}`,
			`{"scopes":["read"],"expires_in":"1h"}`,
			`{"type":"cache.clear","metadata":{"a":"\u0000"},"id":"0b3e8c1e-0000-4000-8000-000000000000"}`,
			"{\"name\":\"\xff\"}"} {
			f.Add(i, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, n int, body []byte) {
		r := with[((n%len(with))+len(with))%len(with)]
		path := strings.NewReplacer(":id", "1", ":name", "sitemap").Replace(r.Path)
		request, err := http.NewRequestWithContext(t.Context(), r.Method, s.http.URL+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		bearer(s.tokens[access.Admin])(request)
		response, err := s.http.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode >= 500 || (len(text) > 0 && !json.Valid(text)) {
			t.Fatalf("%s %s %q: %d %s", r.Method, path, body, response.StatusCode, text)
		}
	})
}
