package web_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/testgolden"
)

// What differs from run to run on a page.
var (
	verifications = regexp.MustCompile(`name="_csrf" value="[^"]*"`)
	blanks        = regexp.MustCompile(`\n\s*\n`)
	mains         = regexp.MustCompile(`(?s)<main.*</main>`)
)

// TestPagesLookAsTheyDid holds pages of a known site at a known time against
// testdata/pages. After a change that is meant: go test ./internal/web -run LookAs -update.
func TestPagesLookAsTheyDid(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished, func(c *config) { c.Now = func() time.Time { return noon } })
	for _, lang := range []string{"en", "vi"} {
		for _, page := range []string{"backups", "sitemap", "media", "mail",
			"analytics?since=2026-11-01&until=2026-11-21", "usage", "schedules", "settings"} {
			ask := func() answer {
				return s.admin("GET", "/admin/"+page, nil, header("Cookie", "cmsjobs_lang="+lang))
			}
			r := ask()
			for deadline := time.Now().Add(patience); counting(string(r.body)) && time.Now().Before(deadline); {
				r = ask()
			}
			if r.status != 200 {
				t.Fatalf("%s: %d", page, r.status)
			}
			got := blanks.ReplaceAllString(verifications.ReplaceAllString(mains.FindString(string(r.body)),
				`name="_csrf" value=""`), "\n") + "\n"
			name, _, _ := strings.Cut(page, "?")
			file := filepath.Join("testdata", "pages", name+"."+lang+".golden")
			testgolden.Check(t, file, []byte(got))
		}
	}
}
