package analytics

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func importLog(t *testing.T, h *Handler, name, log string) Imported {
	t.Helper()
	done, err := h.Import(context.Background(), Log{Name: name, Host: "example.com"}, strings.NewReader(log), nil)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.String()
}

// lines cuts a log by lines.
func lines(log string, from, to int) string {
	return strings.Join(strings.SplitAfter(log, "\n")[from:to], "")
}

// After the salts are gone, every visitor of the day hashes differently.
func (h *Handler) forgetSalts(t *testing.T) {
	t.Helper()
	if _, err := h.DB.Exec("DELETE FROM cmsjobs_analytics_salts"); err != nil {
		t.Fatal(err)
	}
	h.salts = newSalts(h.DB, h.Now)
}

// Shorter copies, longer ones, rotated, compressed, cut at the front, with the
// salts gone in between: each view is there once.
func TestNoCopyOfALogDoublesItsViews(t *testing.T) {
	each(t, func(t *testing.T, h *Handler) {
		log := accessLog(600)
		all := strings.Count(log, "\n")
		for i, copied := range []string{lines(log, 0, 500), lines(log, 0, 200), log, gzipped(t, log),
			lines(log, 300, all), log} {
			importLog(t, h, fmt.Sprintf("access.log.%d", i), copied)
			h.forgetSalts(t)
		}
		if n := h.countRows(t); n != 600 {
			t.Errorf("%d rows, want 600", n)
		}
	})
}

func TestLogsWithTheSameFirstLineAreTwoLogs(t *testing.T) {
	h := bench(t, jobstest.SQLite)
	monitor := `203.0.113.250 - - [09/Mar/2026:00:00:01 +0000] "GET /up HTTP/1.1" 200 2 "-" "` + firefox + `"` + "\n"
	line := func(second int, page string) string {
		return fmt.Sprintf(`203.0.113.9 - - [09/Mar/2026:10:00:%02d +0000] "GET /%s HTTP/1.1" 200 512 "-" "%s"`+"\n",
			second, page, firefox)
	}
	a, b := monitor, monitor
	for i := range 50 {
		a, b = a+line(i, "a"), b+line(i, "b")
	}
	importLog(t, h, "a.log", a)
	if done := importLog(t, h, "b.log", b); done.Views != 50 || done.Already != 1 {
		t.Errorf("the second log: %+v", done)
	}
}

// Visitors who ask for one page in one second with the same browser are as many
// as the log says, again and again.
func TestEqualViewsOfOneSecondAreAllCounted(t *testing.T) {
	h := bench(t, jobstest.SQLite)
	var log strings.Builder
	for i := range 400 { // 10 of them from the same address twice
		fmt.Fprintf(&log, `10.0.%d.%d - - [09/Mar/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "%s"`+"\n", i/390,
			i%390%250, firefox)
	}
	for range 2 {
		importLog(t, h, "access.log", log.String())
		h.forgetSalts(t)
	}
	if n := h.countRows(t); n != 400 {
		t.Errorf("%d rows, want 400", n)
	}
}

// Two servers of one site write a log each: views that are equal in all but
// the visitor are as many as both logs say, where each server is named.
func TestEqualViewsOfTwoServersAreTwo(t *testing.T) {
	h := bench(t, jobstest.SQLite)
	line := `203.0.113.%d - - [09/Mar/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "` + firefox + `"` + "\n"
	for range 2 {
		for i, server := range []string{"web1", "web2"} {
			_, err := h.Import(t.Context(), Log{Name: "access.log", Host: "example.com", Server: server},
				strings.NewReader(fmt.Sprintf(line, i)), nil)
			if err != nil {
				t.Fatal(err)
			}
		}
		h.forgetSalts(t)
	}
	if n := h.countRows(t); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}

// What is stored for good says nothing of the address: without the day's salt
// nobody can tell which of two addresses it was.
func TestTheDigestOfAViewHasNothingOfTheAddress(t *testing.T) {
	v := View{At: time.UnixMilli(1773050400000), Host: "example.com", Path: "/", Agent: firefox}
	digests := map[uint64]bool{}
	for i := range 256 {
		v.Address = fmt.Sprintf("203.0.113.%d", i)
		digests[contentDigest("", v)] = true
	}
	if len(digests) != 1 {
		t.Errorf("256 addresses make %d digests", len(digests))
	}
}

// dying ends in the middle of a log, as a killed process does.
type dying struct {
	r io.Reader
	n int
}

var errDied = errors.New("killed")

func (d *dying) Read(p []byte) (int, error) {
	if d.n <= 0 {
		return 0, errDied
	}
	n, err := d.r.Read(p[:min(len(p), d.n)])
	d.n -= n
	return n, err
}

func TestAnImportKilledAtAnyLineGoesOn(t *testing.T) {
	h := bench(t, jobstest.SQLite)
	log := accessLog(300)
	for cut := 1; cut < len(log); cut += len(log)/17 + 1 {
		_, err := h.Import(context.Background(), Log{Name: "access.log", Host: "example.com"},
			&dying{strings.NewReader(log), cut}, nil)
		if !errors.Is(err, errDied) {
			t.Fatalf("%v", err)
		}
		h.forgetSalts(t)
	}
	importLog(t, h, "access.log", log)
	if n := h.countRows(t); n != 300 {
		t.Errorf("%d rows, want 300", n)
	}
}

// Nothing that a client writes into its name becomes the site or the address.
func TestAUsersNameIsNeitherHostNorAddress(t *testing.T) {
	const rest = ` [20/Oct/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 1 "-" "` + firefox + `"`
	for head, want := range map[string][2]string{
		"203.0.113.77 - -":                        {"", "203.0.113.77"},
		"203.0.113.77 - John Doe":                 {"", "203.0.113.77"},
		"203.0.113.77 - a.example 198.51.100.1":   {"", "203.0.113.77"},
		"203.0.113.77 - [20/Oct/2026:10:00:00 +0": {"", "203.0.113.77"},
		"203.0.113.77 - x [y] z":                  {"", "203.0.113.77"},
		"2001:db8::7 - John Doe":                  {"", "2001:db8::7"},
		"www.example.com 203.0.113.77 - John Doe": {"www.example.com", "203.0.113.77"},
		"example.com:443 2001:db8::7 - -":         {"example.com:443", "2001:db8::7"},
		"198.51.100.1 203.0.113.77 - -":           {"", "203.0.113.77"},
		"client.example.net - - ":                 {"", "client.example.net"},
	} {
		v, err := parseLine([]byte(head + rest))
		if err != nil || v.Host != want[0] || v.Address != want[1] || v.Path != "/a" {
			t.Errorf("%q: %+v, %v", head, v, err)
		}
	}
	for _, head := range []string{"not a host 203.0.113.77", "-", ""} {
		if v, err := parseLine([]byte(head + rest)); err == nil {
			t.Errorf("%q: %+v", head, v)
		}
	}
}

func TestPeopleInAppsAreNoBotsAndMailIsMail(t *testing.T) {
	const telegram = "Mozilla/5.0 (Linux; Android 14; SM-S918B) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 " +
		"Chrome/131.0.0.0 Mobile Safari/537.36 Telegram-Android/11.3.3 (Samsung SM-S918B; Android 14; SDK 34; HIGH)"
	if isBot(telegram) {
		t.Error("Telegram's browser is a bot")
	}
	if !isBot("TelegramBot (like TwitterBot)") || !isBot("WhatsApp/2.23.20.0") {
		t.Error("the previews of messengers are people")
	}
	for referrer, want := range map[string]string{
		"android-app://com.google.android.gm/":                   "Mail",
		"https://mail.google.com/mail/u/0/":                      "Mail",
		"https://mail.yahoo.com/":                                "Mail",
		"https://www.google.co.uk/search":                        "Google",
		"https://google.com.vn/":                                 "Google",
		"android-app://com.google.android.googlequicksearchbox/": "Google",
		"https://news.google.com/":                               "Google",
		"https://google.evil.example.net/":                       "google.evil.example.net",
		"android-app://org.telegram.messenger/":                  "Telegram",
	} {
		if got := referrerGroup(referrer, "example.com"); got != want {
			t.Errorf("%s is %q, want %q", referrer, got, want)
		}
	}
}

func BenchmarkImportAgain(b *testing.B) {
	h := bench(b, jobstest.SQLite)
	log := accessLog(50_000)
	for b.Loop() {
		if _, err := h.Import(context.Background(), Log{Name: "access.log", Host: "example.com"},
			strings.NewReader(log), nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(strings.Count(log, "\n"))*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}
