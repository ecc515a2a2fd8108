package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// sitesFile configures the sites of the names, each with its own database.
func sitesFile(t *testing.T, names ...string) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("sites:\n")
	for _, name := range names {
		fmt.Fprintf(&text, "  %s: {database: {dsn: '%s'}}\n", name,
			strings.TrimPrefix(newDatabase(t, jobstest.SQLite, tables.Stock), "--dsn="))
	}
	file := filepath.Join(t.TempDir(), "sites.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestACommandIsForOneSite(t *testing.T) {
	t.Parallel()
	file := sitesFile(t, "shop-a", "shop-b")
	want(t, call(t, nil, "-c", file, "jobs", "list"), 2, "name one with --site: shop-a, shop-b")
	want(t, call(t, nil, "-c", file, "--site", "shop-c", "jobs", "list"), 2,
		"there is no site \"shop-c\"; there are shop-a, shop-b")
	want(t, call(t, nil, "--site", "shop-c", "jobs", "list"), 2, "the configuration names none")
	want(t, call(t, nil, "-c", file, "--site", "shop-c", "run"), 2, "there are shop-a, shop-b")
	want(t, call(t, nil, "-c", file, "--site", "shop-a", "enqueue", "cache.clear", "{}"), 0)
	want(t, call(t, nil, "-c", file, "--site", "shop-a", "jobs", "list"), 0, "cache.clear")
	if r := call(t, nil, "-c", file, "--site", "shop-b", "jobs", "list"); strings.Contains(r.out, "cache.clear") {
		t.Errorf("the job of shop-a is listed for shop-b:\n%s", r.out)
	}
	one := sitesFile(t, "only")
	want(t, call(t, nil, "-c", one, "jobs", "list"), 0)
	completed := call(t, nil, "-c", file, "__complete", "jobs", "list", "--site", "")
	want(t, completed, 0, "shop-a", "shop-b")
}

func TestConfigAndDoctorLookAtEachSite(t *testing.T) {
	t.Parallel()
	file := sitesFile(t, "shop-a", "shop-b")
	want(t, call(t, nil, "-c", file, "config", "check"), 0, "no fault")
	want(t, call(t, nil, "-c", file, "--site", "shop-b", "--set", "queue.concurrency=7", "config", "show", "--all=false"),
		0, "(sites.shop-b)", "flag --set")
	if r := call(t, nil, "-c", file, "config", "show", "--all=false"); strings.Contains(r.out, "database.dsn") {
		t.Errorf("what all share has the database of a site:\n%s", r.out)
	}
	var findings []siteFindings
	r := call(t, nil, "-c", file, "--json", "doctor")
	if findings = answer[[]siteFindings](t, r); len(findings) != 2 || findings[1].Site != "shop-b" ||
		len(findings[0].Findings) < 5 {
		t.Errorf("doctor tells of %d sites", len(findings))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// shop-c has the database of shop-b, and shop-d has none and a wrong key
	last := strings.TrimSpace(string(text))[strings.LastIndex(strings.TrimSpace(string(text)), "{database"):]
	wrong := fmt.Sprintf("%s  shop-c: %s\n  shop-d: {queue: {pol: 1s}}\n  shop-e: {cms: {dir: /nowhere/at/all}}\n", text,
		last)
	if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, call(t, nil, "-c", file, "config", "check"), 2, "sites.shop-d.queue.pol",
		"did you mean sites.shop-d.queue.poll")
	wrong = strings.Replace(wrong, "{queue: {pol: 1s}}", "{queue: {poll: 0s}}", 1)
	if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, call(t, nil, "-c", file, "config", "check"), 2, "sites.shop-c.database: the site shop-b has the same",
		"sites.shop-d.queue.poll", "sites.shop-e.cms.dir")
	want(t, call(t, nil, "-c", file, "doctor"), 2, "site shop-a", "site shop-b", "sites.shop-e.cms.dir")
}

// A host's fifty sites are one process: run serves all of them, and stops as told.
func TestRunServesAllSites(t *testing.T) {
	t.Parallel()
	file := sitesFile(t, "shop-a", "shop-b")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := startService(t, string(text)+"http: {public_metrics: true}\n")
	for path, part := range map[string]string{"/readyz": `"sites":2`, "/sites/shop-a/readyz": `"status"`,
		"/sites/shop-b/admin/sign-in": `action="/sites/shop-b/admin/sign-in"`,
		"/metrics":                    `cmsjobs_site_up{site="shop-b"} 1`} {
		var body []byte
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if _, body = s.try("GET", path, "", nil); strings.Contains(string(body), part) {
				break
			}
		}
		if !strings.Contains(string(body), part) {
			t.Errorf("%s does not have %s:\n%.500s", path, part, body)
		}
	}
	if log := s.log(); !strings.Contains(log, `"site":"shop-a"`) || !strings.Contains(log, `"site":"shop-b"`) {
		t.Errorf("the log does not name the sites:\n%.2000s", log)
	}
	s.stop()
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("run ended with code %d:\n%s", code, s.log())
	}
}
