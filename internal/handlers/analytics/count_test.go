package analytics

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// randomLog makes an access log of about n lines: seven days around the end of
// summer time, three formats, stamps of three zones, IPv4 and IPv6, names with
// blanks, assets, errors, bots, lines of no format. A visitor never asks twice
// in one second, as the order of such views is nobody's.
func randomLog(n int) string {
	random := rand.New(rand.NewPCG(7, 7))
	zones := []*time.Location{time.UTC, time.FixedZone("", 3600), time.FixedZone("", -5*3600-1800)}
	agents := []string{firefox,
		"Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) " +
			"Version/17.4 Mobile/15E148 Safari/604.1",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 " +
			"Safari/537.36",
		"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "curl/8.5.0 (test)"}
	referrers := []string{"-", "-", "-", "https://www.google.co.uk/", "https://mail.google.com/mail/u/0/",
		"android-app://com.google.android.gm/", "https://t.co/x",
		"https://l.facebook.com/", "https://www.news.example/a", "https://example.com/page-1"}
	hosts := []string{"", "example.com", "www.example.com", "shop.example"}
	names := []string{"-", "-", "John Doe", "a.example 203.0.113.1"}
	type line struct {
		at   time.Time
		text string
	}
	var all []line
	taken := map[string]bool{}
	start := time.Date(2026, 10, 22, 0, 0, 0, 0, time.UTC)
	for len(all) < n {
		address := fmt.Sprintf("203.0.113.%d", random.IntN(120))
		if random.IntN(3) == 0 {
			address = fmt.Sprintf("2001:db8::%x", 1+random.IntN(80))
		}
		agent, host := agents[random.IntN(len(agents))], hosts[random.IntN(len(hosts))]
		at := start.Add(time.Duration(random.IntN(7*24*3600)) * time.Second)
		for range 1 + random.IntN(5) { // a visitor goes on, at times after just half an hour
			gap := 1 + random.IntN(600)
			if random.IntN(4) == 0 {
				gap = 1799 + random.IntN(3)
			}
			at = at.Add(time.Duration(gap) * time.Second)
			who := fmt.Sprint(strings.TrimPrefix(host, "www."), address, at.Unix())
			if taken[who] {
				continue
			}
			taken[who] = true
			if host == "" || strings.HasSuffix(host, "example.com") {
				taken[fmt.Sprint("example.com", address, at.Unix())], taken[fmt.Sprint("", address, at.Unix())] = true,
					true
			}
			path := fmt.Sprintf("/page-%d", random.IntN(30))
			switch random.IntN(12) {
			case 0:
				path += "?utm_source=news&utm_medium=mail&utm_campaign=x"
			case 1:
				path = "/ti%E1%BA%BFng-vi%E1%BB%87t/"
			case 2:
				path = "/style.css"
			}
			method, status := "GET", 200
			switch random.IntN(15) {
			case 0:
				status = 404
			case 1:
				status = 304
			case 2:
				method = "POST"
			}
			referrer := referrers[random.IntN(len(referrers))]
			text := fmt.Sprintf(`%s - %s [%s] "%s %s HTTP/1.1" %d 12 "%s" "%s"`, address,
				names[random.IntN(len(names))],
				at.In(zones[random.IntN(3)]).Format("02/Jan/2006:15:04:05 -0700"), method, path, status, referrer,
				agent)
			switch {
			case host != "" && random.IntN(3) == 0:
				headers := map[string][]string{"User-Agent": {agent}}
				if referrer != "-" {
					headers["Referer"] = []string{referrer}
				}
				line, err := json.Marshal(map[string]any{"ts": at.Unix(), "status": status,
					"request": map[string]any{"client_ip": address, "method": method, "host": host, "uri": path,
						"headers": headers}})
				if err != nil {
					panic(err)
				}
				text = string(line)
			case host != "":
				text = host + " " + text
			}
			all = append(all, line{at, text})
			if random.IntN(50) == 0 {
				all = append(all, line{at, "no such line " + path})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b line) int { return a.at.Compare(b.at) })
	var b strings.Builder
	for _, l := range all {
		b.WriteString(l.text + "\n")
	}
	return b.String()
}

// Every figure of every dimension, against a count by a program in PHP that
// shares no code with this one.
func TestEveryFigureIsThatOfAnIndependentCount(t *testing.T) {
	if err := exec.Command("php", "-v").Run(); err != nil {
		jobstest.Skip(t, "no PHP here (package php-cli): %v", err)
	}
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	h := bench(t, jobstest.SQLite)
	h.Site.FallbackZone = zone
	h.Now = func() time.Time { return time.Date(2026, 10, 31, 12, 0, 0, 0, time.UTC) }
	log := randomLog(20_000)
	importLog(t, h, "access.log", log)
	if _, err := h.Process(context.Background(), ProcessPayload{}); err != nil {
		t.Fatal(err)
	}
	ours := map[string][6]int64{}
	rows, err := h.DB.Query("SELECT day, site, dimension, name, views, visitors, visits, bounces, time_ms, timed " +
		"FROM cmsjobs_analytics_daily")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var day, site, dimension, name string
		var f [6]int64
		if err := rows.Scan(&day, &site, &dimension, &name, &f[0], &f[1], &f[2], &f[3], &f[4], &f[5]); err != nil {
			t.Fatal(err)
		}
		if dimension == dimEntry { // views of entry pages are their visits
			f[0] = f[2]
		}
		ours[strings.Join([]string{day, site, dimension, name}, "|")] = f
	}

	file := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(file, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("php", "-d", "memory_limit=1G", "testdata/count.php", file, "Europe/Berlin",
		"example.com").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %.500s", err, out)
	}
	var theirs map[string][6]int64
	if err := json.Unmarshal(out, &theirs); err != nil {
		t.Fatalf("%v: %.500s", err, out)
	}
	if len(ours) < 1000 {
		t.Fatalf("only %d rows", len(ours))
	}
	differ := 0
	for name, f := range theirs {
		if ours[name] != f {
			if differ++; differ < 10 {
				t.Errorf("%s: ours %v, theirs %v", name, ours[name], f)
			}
		}
		delete(ours, name)
	}
	for name, f := range ours {
		if differ++; differ < 10 {
			t.Errorf("%s: ours %v, theirs none", name, f)
		}
	}
	t.Logf("%d figures, %d rows differ", 6*len(theirs), differ)
}
