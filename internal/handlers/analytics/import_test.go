package analytics

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"

func TestLinesOfEveryFormatAreRead(t *testing.T) {
	for name, line := range map[string]string{
		"combined": `203.0.113.9 - - [09/Mar/2026:10:00:00 +0100] "GET /news/a?utm_source=x HTTP/1.1" 200 512 "https://www.google.com/" "` + firefox + `"`,
		"vhost":    `example.com 203.0.113.9 - - [09/Mar/2026:10:00:00 +0100] "GET /news/a?utm_source=x HTTP/1.1" 200 512 "https://www.google.com/" "` + firefox + `"`,
		"caddy": `{"level":"info","ts":1773046800.25,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"203.0.113.9","client_ip":"203.0.113.9","method":"GET","host":"example.com","uri":"/news/a?utm_source=x","headers":{"Referer":["https://www.google.com/"],"User-Agent":["` +
			firefox + `"]}},"status":200}`,
	} {
		t.Run(name, func(t *testing.T) {
			v, err := parseLine([]byte(line))
			if err != nil {
				t.Fatal(err)
			}
			if v.Path != "/news/a" || v.Query != "utm_source=x" || v.Referrer != "https://www.google.com/" ||
				v.Agent != firefox || v.Address != "203.0.113.9" || v.At.Unix() != 1773046800 {
				t.Errorf("read as %+v", v)
			}
		})
	}
	common, err := parseLine([]byte(`203.0.113.9 - bob [09/Mar/2026:10:00:00 +0100] "GET / HTTP/1.0" 304 0`))
	if err != nil || common.Path != "/" || common.Agent != "" {
		t.Errorf("common format: %+v, %v", common, err)
	}
}

func TestOnlyPagesCount(t *testing.T) {
	line := `203.0.113.9 - - [09/Mar/2026:10:00:00 +0100] "%s HTTP/1.1" %d 1 "-" "x"`
	for request, status := range map[string]int{"POST /": 200, "GET /x": 404, "GET /y": 301, "GET /app.css": 200,
		"GET /i/photo.JPG": 200, "HEAD /": 200} {
		if _, err := parseLine([]byte(fmt.Sprintf(line, request, status))); !errors.Is(err, errSkip) {
			t.Errorf("%s %d: %v", request, status, err)
		}
	}
	for _, bad := range []string{"hello", `1.2.3.4 - - [never] "GET / HTTP/1.1" 200 1`, `{"a":1}`,
		`1.2.3.4 - - [09/Mar/2026:10:00:00 +0100] "GET /`} {
		if _, err := parseLine([]byte(bad)); err == nil || errors.Is(err, errSkip) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// log writes an access log of n views by many visitors, with other lines among
// them.
func accessLog(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `203.0.113.%d - - [09/Mar/2026:10:%02d:%02d +0000] "GET /page-%d HTTP/1.1" 200 512 "-" "%s"`+
			"\n", i%50, i/60%60, i%60, i%7, firefox)
		if i%10 == 0 {
			b.WriteString(`203.0.113.1 - - [09/Mar/2026:10:00:00 +0000] "GET /a.css HTTP/1.1" 200 1 "-" "x"` +
				"\nno such line\n")
		}
	}
	return b.String()
}

func (h *Handler) countRows(t *testing.T) (n int) {
	t.Helper()
	if err := h.DB.Get(&n, "SELECT COUNT(*) FROM cmsjobs_page_views"); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestALogIsImportedOnceHoweverOftenItIsGiven(t *testing.T) {
	each(t, func(t *testing.T, h *Handler) {
		ctx := context.Background()
		log := accessLog(600)
		first, err := h.Import(ctx, Log{Name: "access.log", Host: "example.com"},
			strings.NewReader(log[:strings.LastIndexByte(log[:len(log)/2], '\n')+1]), nil)
		if err != nil || first.Views == 0 || first.Bad == 0 || first.Skipped == 0 {
			t.Fatalf("%+v, %v", first, err)
		}
		grown, err := h.Import(ctx, Log{Name: "access.log", Host: "example.com"}, strings.NewReader(log), nil)
		if err != nil || first.Views+grown.Views != 600 || grown.Already != first.Views {
			t.Fatalf("%+v then %+v, %v", first, grown, err)
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		fmt.Fprint(z, log)
		z.Close()
		again, err := h.Import(ctx, Log{Name: "access.log.1.gz", Host: "example.com"}, &packed, nil)
		if err != nil || again.Views != 0 {
			t.Fatalf("the rotated log again: %+v, %v", again, err)
		}
		if n := h.countRows(t); n != 600 {
			t.Errorf("%d rows, want 600", n)
		}
	})
}

// A log that names no host counts for the CMS's own.
func TestALogWithoutAHostCountsForTheCMSsOwn(t *testing.T) {
	h := bench(t, jobstest.SQLite)
	ctx := context.Background()
	if _, err := h.Import(ctx, Log{Name: "access.log"}, strings.NewReader(accessLog(30)), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Process(ctx, ProcessPayload{}); err != nil {
		t.Fatal(err)
	}
	report, err := h.Report(ctx, ReportQuery{Since: "2026-03-09", Until: "2026-03-09", Site: "example.com"})
	if err != nil || report.Total.Views != 30 {
		t.Errorf("%d views of 30, %v", report.Total.Views, err)
	}
}

func TestALastLineWithoutItsEndWaitsForTheRest(t *testing.T) {
	h := bench(t, jobstest.SQLite)
	ctx := context.Background()
	log := accessLog(20)
	for _, cut := range []int{len(log) - 30, len(log)} {
		if _, err := h.Import(ctx, Log{Name: "access.log", Host: "example.com"}, strings.NewReader(log[:cut]),
			nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := h.countRows(t); n != 20 {
		t.Errorf("%d rows, want 20", n)
	}
	var agents []string
	if err := h.DB.Select(&agents, "SELECT DISTINCT browser FROM cmsjobs_page_views"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(agents, []string{"Firefox"}) {
		t.Errorf("browsers %v: a cut line was read", agents)
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`1.2.3.4 - - [09/Mar/2026:10:00:00 +0100] "GET /a\"b HTTP/1.1" 200 1 "r" "a"`))
	f.Add([]byte(`{"ts":1,"status":200,"request":{"uri":"/"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		v, err := parseLine(line)
		if err == nil && (v.Path == "" || v.Path[0] != '/') {
			t.Fatalf("%q is a view of %q", line, v.Path)
		}
		cleanPath(v.Path)
		referrerGroup(v.Referrer, v.Host)
		campaign(v.Query)
	})
}
