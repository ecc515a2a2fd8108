package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// BenchmarkPages measures the server's time for each page with 1,000,000 runs
// and 100,000 failed jobs (CMSJOBS_SOAK=1; otherwise a hundredth of that), as one of
// fifty sites of its process.
//
//	CMSJOBS_SOAK=1 go test ./internal/web -run xxx -bench Pages -benchtime 20x
func BenchmarkPages(b *testing.B) {
	runs, failed := 10_000, 1_000
	if os.Getenv("CMSJOBS_SOAK") == "1" {
		runs, failed = 1_000_000, 100_000
	}
	for _, engine := range jobstest.Engines() {
		b.Run(string(engine), func(b *testing.B) {
			s := newSite(b, engine, furnished, oneOfFifty)
			s.crowd(b, runs, failed)
			ask := func(path string) time.Duration {
				r := httptest.NewRequest(http.MethodGet, path, nil)
				r.Header.Set("Authorization", "Bearer "+s.tokens[access.Admin])
				w := httptest.NewRecorder()
				start := time.Now()
				s.server.Handler().ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatalf("%s: %d %s", path, w.Code, w.Body)
				}
				return time.Since(start)
			}
			warm, stop := context.WithCancel(b.Context())
			s.server.Warm(warm) // as Serve does before anybody asks
			stop()
			for _, path := range []string{"1h&by=outcome", "24h&by=outcome", "30d&by=type"} {
				b.Run("series "+path, func(b *testing.B) { // from the history, nothing kept by the server
					for b.Loop() {
						ask("/api/v1/series?range=" + path)
					}
				})
			}
			for _, path := range append(slices.Clone(parts), "/admin?range=1h", "/admin?range=7d&by=queue",
				"/admin?range=30d&by=type", "/admin/jobs?status=failed",
				"/admin/jobs?status=completed&type=mail.send&since=24h", "/admin/jobs?since=720h",
				"/admin/jobs?type=sitemap.generate",
				"/admin/jobs?text=a500000%40b.example", "/admin/jobs?text=nowhere", "/admin/jobs?queue=nowhere",
				"/admin/jobs?status=failed&text=nowhere", "/admin/jobs/"+crowded(7)) {
				b.Run(strings.TrimPrefix(path, "/admin"), func(b *testing.B) {
					times := []time.Duration{}
					first := ask(path)
					for b.Loop() {
						times = append(times, ask(path))
					}
					slices.Sort(times)
					b.ReportMetric(float64(first.Microseconds())/1000, "ms-first")
					// what it takes when nobody else works
					b.ReportMetric(float64(times[0].Microseconds())/1000, "ms-least")
					b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "ms-median")
					b.ReportMetric(float64(times[len(times)*95/100].Microseconds())/1000, "ms-p95")
				})
			}
		})
	}
}

// oneOfFifty makes each page list the other sites of the process.
func oneOfFifty(c *config) {
	c.Base = "/sites/site-7"
	c.Sites = func(*http.Request) []web.SiteLink {
		links := make([]web.SiteLink, 50)
		for i := range links {
			name := fmt.Sprintf("site-%d", i)
			links[i] = web.SiteLink{Name: name, Path: "/sites/" + name + "/admin"}
		}
		return links
	}
}

func crowded(i int) string { return fmt.Sprintf("0b3e8c1e-0000-4000-8000-%012d", i) }

// crowd fills the tables as years of work do, over the last thirty days.
func (s *site) crowd(b *testing.B, runs, failed int) {
	b.Helper()
	now, month := time.Now().UnixMilli(), int64(30*24*time.Hour/time.Millisecond)
	insert := func(into string, n int, row func(i int) string) {
		for from := 0; from < n; {
			var values []string
			for ; from < n && len(values) < 2000; from++ {
				values = append(values, row(from))
			}
			if _, err := s.db.Exec("INSERT INTO " + into + " VALUES " + strings.Join(values, ",")); err != nil {
				b.Fatal(err)
			}
		}
	}
	jobTypes := []string{"mail.send", "cache.clear", "sitemap.generate", "media.processImage"}
	insert("cmsjobs_runs (job_id, uuid, type, queue, attempt, outcome, worker, lease, ended_at, duration_ms, "+
		"wait_ms, data)", runs, func(i int) string {
		outcome := "completed"
		if i%10 == 0 {
			outcome = "failed"
		}
		return fmt.Sprintf("(%d,'%s','%s','cmsjobs',1,'%s','host:1:a','x%d',%d,%d,%d,'{\"to\":\"a%d@b.example\"}')", i,
			crowded(i), jobTypes[i%4], outcome, i, now-month+int64(i)*month/int64(runs), i%900, i%50, i)
	})
	insert("failed_jobs (uuid, connection, queue, payload, exception)", failed, func(i int) string {
		return fmt.Sprintf(
			`('%s','database','cmsjobs','{"type":"mail.send","data":{"to":"a%d@b.example"}}','55%d mailbox %d is full%s')`, crowded(10_000_000+i), i, i%5, i, strings.Repeat(".", i%5))
	})
	if s.db.DriverName() == "pgx" { // as autovacuum does
		s.db.MustExec("VACUUM ANALYZE")
	}
	insert("jobs (queue, payload, attempts, reserved_at, available_at, created_at)", failed/100, func(i int) string {
		return fmt.Sprintf(`('cmsjobs','{"type":"mail.send","data":{"to":"a%d@b.example"}}',0,NULL,%d,%d)`, i,
			now/1000+int64(i), now/1000)
	})
}
