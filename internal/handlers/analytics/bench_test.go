package analytics

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// logLines writes an access log of n views over the days before the test's
// clock, by visitors with a few agents, in the combined format.
func logLines(w io.Writer, n, days int) error {
	agents := []string{firefox,
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 " +
			"Safari/537.36",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) " +
			"Version/17.5 Mobile/15E148 Safari/604.1",
		"Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile " +
			"Safari/537.36",
		"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"}
	referrers := []string{"-", "-", "-", "https://www.google.com/", "https://t.co/abc", "https://news.example.org/a"}
	r := rand.New(rand.NewPCG(1, 2))
	at := time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC).AddDate(0, 0, -days)
	step := time.Duration(days) * 24 * time.Hour / time.Duration(n)
	out := bufio.NewWriterSize(w, 1<<20)
	for range n {
		at = at.Add(step)
		visitor := r.IntN(20_000)
		fmt.Fprintf(out, "10.%d.%d.%d - - [%s] \"GET /post/%d HTTP/1.1\" 200 5120 \"%s\" \"%s\"\n", visitor>>16,
			visitor>>8&255, visitor&255,
			at.Format("02/Jan/2006:15:04:05 -0700"), int(r.ExpFloat64()*40), referrers[r.IntN(len(referrers))],
			agents[visitor%len(agents)])
	}
	return out.Flush()
}

// BenchmarkImportAndRollUp imports an access log into MariaDB and rolls it up.
// CMSJOBS_VIEWS says how many views (200,000; the promise is about 5,000,000),
// CMSJOBS_ACCESS_LOG names a file to write the log to, for a peer to read,
// CMSJOBS_ENGINE another database (sqlite).
func BenchmarkImportAndRollUp(b *testing.B) {
	views := 200_000
	fmt.Sscan(os.Getenv("CMSJOBS_VIEWS"), &views)
	path := os.Getenv("CMSJOBS_ACCESS_LOG")
	if path == "" {
		path = b.TempDir() + "/access.log"
	}
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	if err := logLines(f, views, 60); err != nil {
		b.Fatal(err)
	}
	f.Close()
	for b.Loop() {
		h := bench(b, jobstest.Engine(cmp.Or(os.Getenv("CMSJOBS_ENGINE"), string(jobstest.MariaDB))))
		log, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		begun := time.Now()
		done, err := h.Import(context.Background(), Log{Name: "access.log", Host: "example.com"}, log, nil)
		if err != nil || done.Views != int64(views) {
			b.Fatalf("%+v, %v", done, err)
		}
		imported := time.Since(begun)
		begun = time.Now()
		if _, err := h.Process(context.Background(), ProcessPayload{}); err != nil {
			b.Fatal(err)
		}
		rolled := time.Since(begun)
		log.Close()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(views)/imported.Seconds(), "imported/s")
		b.ReportMetric(float64(views)/rolled.Seconds(), "rolled/s")
		b.ReportMetric(float64(m.Sys)/(1<<20), "MiB")
	}
}
