package analytics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// sendAll lets visitors of as many agents send so many views each, one a pace.
func sendAll(t testing.TB, server *httptest.Server, senders, each int, pace time.Duration) {
	t.Helper()
	client := server.Client()
	client.Transport.(*http.Transport).MaxIdleConnsPerHost = senders
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			var ring <-chan time.Time
			if pace > 0 {
				ticker := time.NewTicker(pace)
				defer ticker.Stop()
				ring = ticker.C
			}
			for i := range each {
				if pace > 0 {
					<-ring
				}
				if err := sendOne(client, server.URL, s, i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	sending.Wait()
}

func sendOne(client *http.Client, address string, sender, i int) error {
	r, err := http.NewRequest(http.MethodPost, address,
		strings.NewReader(fmt.Sprintf(`{"u":"https://example.com/p%d"}`, i%10)))
	if err != nil {
		return err
	}
	r.Header.Set("User-Agent", firefox+fmt.Sprint(sender))
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusNoContent {
		err = fmt.Errorf("the collector answers %s", answer.Status)
	}
	_, copied := io.Copy(io.Discard, answer.Body)
	return errors.Join(err, copied, answer.Body.Close())
}

// collecting runs a collector, and roll-ups one after the other, while do
// sends; it returns the counts when all is written.
func collecting(t testing.TB, h *Handler, do func(*httptest.Server)) (counts Counts, rollUps int) {
	t.Helper()
	h.PerAddress = 1e9
	c := h.NewCollector()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() {
		for ; ctx.Err() == nil; rollUps++ {
			if _, err := h.Process(context.Background(), ProcessPayload{
				DateRange: &DateRange{"2026-03-01", "2026-03-31"}}); err != nil {
				t.Error(err)
			}
		}
	})
	server := httptest.NewServer(c)
	defer server.Close()
	do(server)
	stop()
	running.Wait()
	if _, err := h.Process(context.Background(), ProcessPayload{}); err != nil {
		t.Fatal(err)
	}
	return c.Counts(), rollUps
}

// The collector takes what many visitors send at once while a roll-up runs;
// what does not fit is dropped and counted, nothing else is lost.
func TestEveryViewIsStoredOrCounted(t *testing.T) {
	jobstest.EachMySQL(t, testEveryViewIsStoredOrCounted)
}

func testEveryViewIsStoredOrCounted(t *testing.T, engine jobstest.Engine) {
	h := bench(t, engine)
	h.Buffer = 300 // so that some of it does not fit
	const senders, each = 20, 200
	got, rollUps := collecting(t, h, func(server *httptest.Server) { sendAll(t, server, senders, each, 0) })
	if got.Accepted != senders*each || got.Accepted != got.Stored+got.Dropped || rollUps == 0 {
		t.Errorf("%+v do not balance for %d views (%d roll-ups beside)", got, senders*each, rollUps)
	}
	report, err := h.Report(context.Background(), ReportQuery{Since: "2026-03-10", Until: "2026-03-10"})
	if err != nil {
		t.Fatal(err)
	}
	if report.Total.Views != got.Stored || report.Total.Visitors > senders ||
		!slices.ContainsFunc(report.Lists[0].Items, func(i Item) bool { return i.Name == "/p3" }) {
		t.Errorf("the report says %+v, the collector %+v", report.Total, got)
	}
}

// BenchmarkCollector sends 2,000 requests a second over loopback for ten
// seconds while roll-ups run one after the other over 200,000 other views.
func BenchmarkCollector(b *testing.B) {
	for b.Loop() {
		h := bench(b, jobstest.MariaDB)
		for seed := range uint64(4) {
			if err := write(context.Background(), h.DB, generated(50_000, 7, seed)); err != nil {
				b.Fatal(err)
			}
		}
		const senders, each = 100, 200
		begun := time.Now()
		var took time.Duration
		got, rollUps := collecting(b, h, func(server *httptest.Server) {
			sendAll(b, server, senders, each, 50*time.Millisecond)
			took = time.Since(begun)
		})
		if got.Accepted != senders*each || got.Accepted != got.Stored+got.Dropped {
			b.Fatalf("%+v do not balance", got)
		}
		b.ReportMetric(float64(got.Accepted)/took.Seconds(), "requests/s")
		b.ReportMetric(float64(got.Dropped), "dropped")
		b.ReportMetric(float64(rollUps), "roll-ups")
	}
}
