package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/analytics"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// vietnam writes a database of countries in which 203.0.113.0/24 is Vietnam's.
func vietnam(t *testing.T) string {
	t.Helper()
	return jobstest.Countries(t, map[string]map[string]any{
		"203.0.113.0/24": {"country": map[string]any{"iso_code": "VN"}}})
}

// terminateSnippet is the middleware of docs/analytics.md, for the service s.
func terminateSnippet(t *testing.T, s *service) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "analytics.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^ *```php\n(.*?)^ *```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 1 {
		t.Fatalf("docs/analytics.md has %d blocks of PHP, not one", len(blocks))
	}
	code := strings.Replace(blocks[0][1], "http://127.0.0.1:8090", s.url, 1)
	if code == blocks[0][1] {
		t.Fatal("docs/analytics.md names another address than the default one")
	}
	return code
}

// TestTheServerTellsOfAVisit runs the middleware of docs/analytics.md as it
// stands there, in a real Laravel, against the running program, and reads the
// visit in the report: with its country, source and campaign.
func TestTheServerTellsOfAVisit(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"/usr/share/php/Illuminate/autoload.php", "/usr/share/php/GuzzleHttp/autoload.php"} {
		if _, err := os.Stat(file); err != nil {
			jobstest.Skip(t, "apt-get install php-cli php-laravel-framework php-guzzlehttp-guzzle: %v", err)
		}
	}
	const key = "4c1f1d2e3a4b5c6d7e8f90a1b2c3d4e5"
	s := startService(t, fmt.Sprintf("schedule: {enabled: false}\nanalytics: {collect: true, hosts: [cms.example], "+
		"server_key: %s, mmdb: %q}\n", key, vietnam(t)),
		newDatabase(t, jobstest.SQLite, tables.Stock))
	tell := func(key string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "php", filepath.Join("testdata", "terminate.php"))
		c.Env, c.Stdin = append(os.Environ(), "SERVER_KEY="+key), strings.NewReader(terminateSnippet(t, s))
		if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	tell(key)
	tell("another key") // counted nowhere, and the site goes on
	if status, text := s.try("POST", "/collect/server", `{"u":"http://cms.example/","ip":"203.0.113.9","ua":"x"}`,
		bearer("another key")); status != 401 || !strings.Contains(string(text), "analytics.server_key") {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := s.try("POST", "/collect/server", `{"u":"http://evil.example/","ip":"203.0.113.9","ua":"x"}`,
		bearer(key)); status != 403 {
		t.Errorf("another's site: %d", status)
	}
	s.stop() // what waits in memory is written first

	s.command("analytics", "process")
	days := time.Now().AddDate(0, 0, -1).Format(time.DateOnly) + ".." + time.Now().AddDate(0, 0, 1).Format(
		time.DateOnly)
	var report analytics.Report
	if err := json.Unmarshal([]byte(s.command("analytics", "report", "--range", days, "--format", "json")),
		&report); err != nil {
		t.Fatal(err)
	}
	if report.Total.Views != 1 || report.Total.Visitors != 1 || report.Total.Visits != 1 {
		t.Errorf("%+v", report.Total)
	}
	found := map[string]string{}
	for _, l := range report.Lists {
		for _, i := range l.Items {
			found[l.Title] += i.Name
		}
	}
	for title, want := range map[string]string{"Pages": "/news/a", "Sources": "Google", "Countries": "VN",
		"Browsers": "Firefox", "Campaigns": "letter"} {
		if found[title] != want {
			t.Errorf("%s: %q, want %q", title, found[title], want)
		}
	}
}

// TestTheServersRouteIsClosedWithoutAKey posts to a service that has none.
func TestTheServersRouteIsClosedWithoutAKey(t *testing.T) {
	t.Parallel()
	s := startService(t, "schedule: {enabled: false}\nanalytics: {collect: true}\n",
		newDatabase(t, jobstest.SQLite, tables.Stock))
	for _, header := range []string{"", "Bearer "} {
		status, _ := s.try("POST", "/collect/server", `{"u":"http://cms.example/","ip":"203.0.113.9","ua":"x"}`,
			map[string][]string{"Authorization": {header}})
		if status < 400 || status >= 500 {
			t.Errorf("%q is answered with %d", header, status)
		}
	}
}
