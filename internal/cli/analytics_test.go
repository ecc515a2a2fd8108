package cli

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/analytics"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/smtptest"
)

// inbox is what a mail server was given.
type inbox chan message

type message struct{ to, text string }

func mailServer(t *testing.T) (inbox, int) {
	t.Helper()
	box := make(inbox, 1000)
	server := &smtptest.Server{Data: func(m smtptest.Mail) error {
		box <- message{strings.Join(m.To, " "), string(m.Data)}
		return nil
	}}
	return box, server.Listen(t)
}

// mailTo is the first mail that came for somebody, "" where none did. The sample site
// sends mails, too, which become due where the machine is slow.
func (box inbox) mailTo(address string) string {
	for {
		select {
		case got := <-box:
			if got.to == address {
				return got.text
			}
		default:
			return ""
		}
	}
}

// goalsFile is a configuration with a goal.
func goalsFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cmsjobs.yaml")
	if err := os.WriteFile(file, []byte("analytics: {goals: [{name: Pier, path: \"/the-*\"}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestTheWeekArrivesByMail goes the whole way of an owner without a collector:
// access log, roll-up, reports, and the mail of the week at a real mail server.
func TestTheWeekArrivesByMail(t *testing.T) {
	t.Parallel()
	dir, _ := sampleSite(t)
	box, port := mailServer(t)
	on := func(args ...string) result {
		t.Helper()
		return call(t, nil, append([]string{"--cms", dir, "--set", "mail.driver=smtp", "--set", "mail.host=127.0.0.1",
			"--set", fmt.Sprintf("mail.port=%d", port), "--set", "mail.encryption=none",
			"--set", "analytics.weekly=true", "--set", "analytics.weekly_to=boss@demo.example"}, args...)...)
	}

	start := time.Now().UTC().AddDate(0, 0, -42)             // before the sample site has visits
	start = start.AddDate(0, 0, -(int(start.Weekday())+6)%7) // a Monday
	var log strings.Builder
	for day := range 7 {
		for visitor := range 10 + day {
			fmt.Fprintf(&log, "198.51.100.%d - - [%s] \"GET /the-pier HTTP/1.1\" 200 512 \"https://www.google.com/\" "+
				"\"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\"\n",
				visitor, start.AddDate(0, 0, day).Format("02/Jan/2006:15:04:05 +0000"))
		}
	}
	path := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(path, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, on("analytics", "import", path), 0, "91")
	want(t, on("analytics", "process"), 0)

	year, number := start.ISOWeek()
	week := fmt.Sprintf("%d-W%02d", year, number)
	report := answer[analytics.Report](t, on("analytics", "report", "--range", week, "--format", "json"))
	if report.Total.Views != 91 || report.Total.Visitors != 91 || report.Total.Visits != 91 ||
		report.Total.BounceRate != 100 || len(report.Days) != 7 || report.Days[6].Views != 16 {
		t.Errorf("%+v", report)
	}
	rows, err := csv.NewReader(strings.NewReader(on("analytics", "report", "--range", week, "--format", "csv").out)).
		ReadAll()
	if err != nil || rows[1][1] != start.Format(time.DateOnly) || rows[1][2] != "10" {
		t.Errorf("%v, %v", rows, err)
	}
	page := filepath.Join(t.TempDir(), "week.html")
	want(t, on("analytics", "report", "--range", week, "-o", page), 0)
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "<svg") ||
		!strings.Contains(string(html), "/the-pier") {
		t.Errorf("%.300s, %v", html, err)
	}
	want(t, on("analytics", "report", "--range", "last week"), exitUsage, "2026-W05")
	for days, filters := range map[string][2]string{week: {"page:/the-pier", "channel:search"},
		start.Format(time.DateOnly): {"referrer:Google", "goal:Pier"}} {
		r := answer[analytics.Report](t, on("--config", goalsFile(t), "analytics", "report", "--range", days, "--format", "json",
			"--filter", filters[0], "--filter", filters[1]))
		if r.Total.Views != map[bool]int64{true: 91, false: 10}[days == week] || len(r.Filters) != 2 ||
			(len(r.Hours) == 24) != (days != week) {
			t.Errorf("%s with %v: %+v", days, filters, r.Total)
		}
	}
	if r := answer[analytics.Report](t, on("analytics", "report", "--range", week, "--format", "json", "--filter",
		"page:/the-pier", "--filter", "channel:direct")); r.Total.Visits != 0 || r.All.Visits != 91 {
		t.Errorf("direct visits of the pier: %+v of %+v", r.Total, r.All)
	}
	want(t, on("analytics", "report", "--range", week, "--filter", "shoe:1"), exitUsage, "page:/news")

	want(t, on("schedule", "list"), 0, "analytics.weekly")
	want(t, on("enqueue", "analytics.weekly", `{"week":"`+week+`"}`), 0)
	want(t, on("work", "--stop-when-empty"), 0)
	want(t, on("work", "--stop-when-empty"), 0)
	text := box.mailTo("boss@demo.example")
	for _, must := range []string{"Subject: ", week, "91", "/the-pier", "Google"} {
		if !strings.Contains(text, must) {
			t.Errorf("%q is not in the mail:\n%.2000s\n%s", must, text, on("jobs", "list").out)
		}
	}
	// Where it is not on, there is no such type and no such entry.
	want(t, call(t, nil, "--cms", dir, "enqueue", "analytics.weekly"), exitUsage, "Known are")
}
