package cms_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

var jobstestNow = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestPermalinks(t *testing.T) {
	db := jobstest.Open(t, jobstest.SQLite)
	db.MustExec("CREATE TABLE settings (\"key\" text, value text)")
	site := &cms.Site{
		DB: db.DB, Env: cms.Env{"APP_URL": "https://old.example", "FORCE_ROOT_URL": "https://cms.example/shop/",
			"PUBLIC_SINGLE_ENDING_URL": "php"}}
	set := func(key, value string) {
		db.MustExec("DELETE FROM settings WHERE \"key\" = ?", key)
		db.MustExec("INSERT INTO settings VALUES (?, ?)", key, value)
	}
	url := func(m cms.Model, id, prefix, key string) string {
		t.Helper()
		p, err := site.Permalinks(t.Context(), jobstestNow)
		if err != nil {
			t.Fatal(err)
		}
		return p.URL(&cms.Item{Model: &m, ID: id, Prefix: prefix, Key: key})
	}
	page, post := cms.PageModel(), cms.Models()[1]
	check := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	check(url(page, "2", "", "about"), "https://cms.example/shop/about.php")
	set("public_single_ending_url", "html")
	check(url(post, "1", "/news/", "a/b"), "https://cms.example/shop/news/a/b.html")
	check(url(post, "1", "%%year%%/%%month%%/%%day%%", "100% ü?#"),
		"https://cms.example/shop/2026/11/11/100%25%20%C3%BC%3F%23.html")
	set("show_on_front", "2")
	check(url(page, "2", "", "about"), "https://cms.example/shop")
	check(url(post, "2", "", "not-the-page"), "https://cms.example/shop/not-the-page.html")
	set("theme", "ripple")
	set("theme-ripple-homepage_id", "7")
	check(url(page, "2", "", "about"), "https://cms.example/shop/about.html")
	check(url(page, "7", "", "home"), "https://cms.example/shop")
	set("time_zone", "Asia/Tokyo")
	site.Env["FORCE_SCHEMA"] = "http"
	check(url(post, "1", "%%year%%", "x"), "http://cms.example/shop/2026/x.html")
	if _, err := (&cms.Site{DB: db.DB}).Permalinks(t.Context(), jobstestNow); err == nil {
		t.Error("a site without an address must say so")
	}
}

func TestOldSlugsTakeTheirPrefixFromTheSettings(t *testing.T) {
	db := jobstest.Open(t, jobstest.SQLite)
	for _, statement := range []string{`CREATE TABLE settings ("key" text, value text)`, `CREATE TABLE slugs (id
		integer, "key" text, reference_id integer, reference_type text)`,
		"CREATE TABLE posts (id integer, status text)", "CREATE TABLE tags (id integer, status text)",
		`INSERT INTO settings VALUES ('permalink-botble-blog-models-post', 'news')`,
		"INSERT INTO posts VALUES (1, 'published')", "INSERT INTO tags VALUES (1, 'published')",
		`INSERT INTO slugs VALUES (1, 'a', 1, 'Botble\Blog\Models\Post'), (2, 'b', 1, 'Botble\Blog\Models\Tag')`} {
		db.MustExec(statement)
	}
	site := &cms.Site{DB: db.DB}
	var got []string
	for _, m := range cms.Models() {
		for item, err := range site.Content(t.Context(), m, cms.ContentQuery{Now: jobstestNow}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, item.Prefix+"/"+item.Key)
		}
	}
	if fmt.Sprint(got) != "[news/a tag/b]" {
		t.Errorf("%v", got)
	}
}

func TestContentEndsWhenItsReaderDoes(t *testing.T) {
	db := jobstest.Open(t, jobstest.SQLite)
	db.MustExec(`CREATE TABLE slugs (id integer, "key" text, reference_id integer, reference_type text, prefix text)`)
	db.MustExec("CREATE TABLE pages (id integer, status text)")
	db.MustExec("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) INSERT INTO pages " +
		"SELECT i, 'published' FROM n")
	site := &cms.Site{DB: db.DB}
	n := 0
	for range site.Content(t.Context(), cms.PageModel(), cms.ContentQuery{Batch: 3}) {
		if n++; n == 4 {
			break
		}
	}
	if open := db.Stats().InUse; n != 4 || open != 0 {
		t.Errorf("%d rows, %d connections still in use", n, open)
	}
	db.MustExec("DROP TABLE slugs")
	for _, err := range site.Content(t.Context(), cms.PageModel(), cms.ContentQuery{}) {
		if err == nil {
			t.Error("a CMS without slugs must be said")
		}
		return
	}
	t.Error("no error")
}
