package cli

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/storage/storagetest"
)

// sampleSite seeds a site in a folder and opens its database.
func sampleSite(t *testing.T) (dir string, db *sqlx.DB) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "site")
	asProcess(t, "demo", "--seed-only", "--dir", dir)
	db, err := sqlx.Open("sqlite", "file:"+filepath.Join(dir, "database", "database.sqlite")+
		"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return dir, db
}

// TestAWorkerPublishesTheSitemapInABucket runs the jobs with a real S3 API
// behind: made, found unchanged, made smaller, and withdrawn.
func TestAWorkerPublishesTheSitemapInABucket(t *testing.T) {
	t.Parallel()
	dir, db := sampleSite(t)
	bucket := storagetest.New(t)
	on := func(args ...string) result {
		t.Helper()
		return call(t, nil, append([]string{"--cms", dir, "--set", "sitemap.target=s3", "--set", "sitemap.dir=maps",
			"--set", "sitemap.gzip=true", "--set", "sitemap.per_file=100",
			"--set", "storage.s3.bucket=" + bucket.Name, "--set", "storage.s3.endpoint=" + bucket.URL, "--set",
			"storage.s3.path_style=true",
			"--set", "storage.s3.access_key=" + storagetest.Key, "--set", "storage.s3.secret_key=" + storagetest.Secret}, args...)...)
	}
	work := func(wants string) {
		t.Helper()
		uuid := answer[struct{ ID string }](t, on("--json", "enqueue", "sitemap.generate")).ID
		want(t, on("work", "--stop-when-empty"), 0)
		want(t, on("jobs", "show", uuid), 0, "completed", wants)
	}

	work(`"files"`)
	want(t, on("sitemap", "check"), 0, "394")
	index := struct {
		Maps []struct {
			Loc string `xml:"loc"`
		} `xml:"sitemap"`
	}{}
	if err := xml.Unmarshal(bucket.Read("maps/sitemap.xml"), &index); err != nil ||
		len(index.Maps) != 6 {
		t.Fatalf("%+v, %v", index, err)
	}
	for _, m := range index.Maps {
		name := strings.TrimPrefix(m.Loc, "https://demo.example/")
		if text := string(bucket.Read("maps/" + name)); !strings.Contains(text, "<urlset") ||
			len(bucket.Read("maps/"+name+".gz")) == 0 {
			t.Errorf("%s is %.80s", name, text)
		}
	}
	want(t, on("jobs", "list", "--status", "completed", "--json"), 0, `"sitemap.indexnow"`)
	work("nothing changed since")
	db.MustExec("DELETE FROM posts WHERE id > 50")
	work("blog-posts-page-2.xml")
	want(t, on("sitemap", "check"), 0)
	db.MustExec("INSERT INTO settings (key, value) VALUES ('sitemap_enabled', '0')")
	work("sitemap_enabled is 0")
	if left := bucket.Keys(); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

// TestAFailedSitemapIsToldToTheAdministrators holds what happens when all
// attempts fail: a mail, and one row where the CMS shows notifications.
func TestAFailedSitemapIsToldToTheAdministrators(t *testing.T) {
	t.Parallel()
	dir, db := sampleSite(t)
	mails := filepath.Join(t.TempDir(), "mails")
	on := func(args ...string) result {
		t.Helper()
		return call(t, nil, append([]string{"--cms", dir, "--set", "sitemap.dir=" + filepath.Join(dir, "nowhere"),
			"--set", "mail.driver=files", "--set", "mail.dir=" + mails,
			"--set", "mail.admin=boss@demo.example"}, args...)...)
	}
	uuid := answer[struct{ ID string }](t, on("--json", "enqueue", "sitemap.generate", "{}", "--max-attempts", "1")).ID
	want(t, on("work", "--stop-when-empty"), 0)
	want(t, on("work", "--stop-when-empty"), 0) // what it reported at its end
	want(t, on("jobs", "show", uuid), 0, "failed", "must exist and be writable")
	var titles []string
	if err := db.Select(&titles, "SELECT title FROM admin_notifications WHERE title LIKE '%sitemap%'"); err != nil ||
		len(titles) != 1 || titles[0] != "sitemap.generate failed" {
		t.Errorf("the CMS shows %q, %v", titles, err)
	}
	letters, err := filepath.Glob(filepath.Join(mails, "*.eml"))
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, letter := range letters {
		text, err := os.ReadFile(letter)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?m)^Subject: .*sitemap\.generate failed`).Match(text) &&
			strings.Contains(string(text), "boss@demo.example") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("%d of %q tell of the sitemap", told, letters)
	}
}
