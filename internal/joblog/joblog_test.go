package joblog_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/joblog"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/redact"
)

var at = time.Date(2026, 11, 22, 3, 0, 0, 123456000, time.UTC)

func clock() time.Time { return at }

// usual is the service's JSON log.
func usual(w io.Writer) slog.Handler {
	return redact.Handler(
		slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindDuration {
				return slog.Float64(a.Key+"_ms", joblog.Milliseconds(a.Value.Duration()))
			}
			return a
		}}))
}

func ended(jobType, queue, uuid string, id int64, attempt int, took time.Duration) jobs.Settlement {
	job := jobs.Job{Type: jobType, Queue: queue, UUID: uuid, ID: id, Attempt: attempt}
	return jobs.Settlement{Claimed: jobs.Claimed{Job: job}, Outcome: jobs.Completed, Duration: took}
}

// slogged is the line that the usual log writes of a run.
func slogged(t *testing.T, run jobs.Settlement) string {
	t.Helper()
	return sloggedAt(t, "", run)
}

// sloggedAt is slogged of one site of several.
func sloggedAt(t *testing.T, site string, run jobs.Settlement) string {
	t.Helper()
	var out bytes.Buffer
	handler := usual(&out)
	if site != "" {
		handler = handler.WithAttrs([]slog.Attr{slog.String("site", site)})
	}
	record := slog.NewRecord(at, slog.LevelInfo, "job completed", 0)
	record.AddAttrs(run.LogAttrs()...)
	record.Add("event", "job.finished")
	if err := handler.Handle(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// writes counts calls of Write.
type writes struct {
	bytes.Buffer
	calls int
}

func (w *writes) Write(p []byte) (int, error) { w.calls++; return w.Buffer.Write(p) }

// A batch is one write, and each of its lines is the one of the usual log, also
// where a foreign row put a secret or a line break into a name.
func TestLinesAreThoseOfTheUsualLog(t *testing.T) {
	runs := []jobs.Settlement{
		ended("sitemap.generate", "cmsjobs", "0192a3b4-0000-7000-8000-0123456789ab", 12345, 1, 1234567*time.Nanosecond),
		ended("mail.send", "Mail_High", "not a uuid\nat all", -1, 3, 0),
		ended("mail.send", "q", "password=hunter2hunter2", 1<<60, 255, 36*time.Hour),
		ended("x", `quo"te\`, "xoxb-1-secretsecret", 0, 0, time.Nanosecond),
		ended("", "ünïcode\u2028", "\xff", 1, 1, 1500*time.Microsecond),
	}
	for _, site := range []string{"", "shop-a"} {
		var out writes
		var want strings.Builder
		log := joblog.New(&out, usual, clock, site)
		for range 2 { // the buffer is used again
			log.Completed(runs)
			for _, run := range runs {
				want.WriteString(sloggedAt(t, site, run))
			}
		}
		if out.String() != want.String() || out.calls != 2 {
			t.Errorf("%d writes:\n%s\nwant\n%s", out.calls, out.String(), want.String())
		}
		if strings.Contains(out.String(), "hunter2") || strings.Contains(out.String(), "secretsecret") {
			t.Errorf("a secret is in the log:\n%s", out.String())
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("mail.send", "mail", "0192a3b4-0000-7000-8000-0123456789ab", int64(7), 1, int64(1500))
	f.Add("a\nb", "token=abcdefgh", "sk_live_abcdef", int64(-7), -1, int64(-1))
	f.Fuzz(func(t *testing.T, jobType, queue, uuid string, id int64, attempt int, took int64) {
		run := ended(jobType, queue, uuid, id, attempt, time.Duration(took)%(1000*time.Hour))
		var out bytes.Buffer
		joblog.New(&out, usual, clock, "").Completed([]jobs.Settlement{run})
		if want := slogged(t, run); out.String() != want || !json.Valid(out.Bytes()) {
			t.Errorf("%q, want %q", out.String(), want)
		}
	})
}

// A large batch does not keep its memory, and lines after it are right.
func TestALargeBatch(t *testing.T) {
	var out bytes.Buffer
	log := joblog.New(&out, usual, clock, "")
	many := make([]jobs.Settlement, 10_000)
	for i := range many {
		many[i] = ended("mail.send", "mail", "0192a3b4-0000-7000-8000-0123456789ab", int64(i), 1, time.Millisecond)
	}
	log.Completed(many)
	odd := ended("mail.send", "Mail", "u", 1, 1, 0)
	log.Completed([]jobs.Settlement{odd})
	if n := strings.Count(out.String(), "\n"); n != len(many)+1 || !strings.HasSuffix(out.String(), slogged(t, odd)) {
		t.Errorf("%d lines, the last: %q", n, out.String()[out.Len()-200:])
	}
}

func BenchmarkLine(b *testing.B) {
	run := ended("sitemap.generate", "cmsjobs", "0192a3b4-0000-7000-8000-0123456789ab", 12345, 1,
		1234567*time.Nanosecond)
	batch := []jobs.Settlement{run, run, run, run, run, run, run, run, run, run}
	b.Run("here", func(b *testing.B) {
		b.ReportAllocs()
		log := joblog.New(io.Discard, usual, clock, "")
		for range b.N / len(batch) {
			log.Completed(batch)
		}
	})
	b.Run("slog", func(b *testing.B) {
		b.ReportAllocs()
		log := slog.New(usual(io.Discard))
		for range b.N {
			log.LogAttrs(b.Context(), slog.LevelInfo, "job completed", run.LogAttrs()...)
		}
	})
}
