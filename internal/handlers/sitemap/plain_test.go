package sitemap_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// plainTables are the CMS's tables as far as a sitemap reads them, in the SQL
// that all three databases know; {id}, {time} and {key} differ.
const plainTables = `
CREATE TABLE settings (id {id} PRIMARY KEY, {key} varchar(255), value text);
CREATE TABLE slugs (id {id} PRIMARY KEY, {key} varchar(255), reference_id {id}, reference_type varchar(255), prefix
	varchar(120) DEFAULT '');
CREATE TABLE slugs_translations (lang_code varchar(20), slugs_id {id}, {key} varchar(255), prefix varchar(120));
CREATE TABLE meta_boxes (id {id} PRIMARY KEY, meta_key varchar(255), meta_value text, reference_id {id}, reference_type
	varchar(120));
CREATE TABLE languages (lang_id int, lang_name varchar(120), lang_locale varchar(20), lang_code varchar(20),
	lang_is_default smallint, lang_order int);
CREATE TABLE language_meta (lang_meta_id int, lang_meta_code varchar(20), lang_meta_origin varchar(32), reference_id
	{id}, reference_type varchar(120));
CREATE TABLE admin_notifications ({auto}, title varchar(191), action_label varchar(191), action_url varchar(191),
	description varchar(400), created_at {time}, updated_at {time});
CREATE TABLE pages (id {id} PRIMARY KEY, name varchar(120), image varchar(255), status varchar(60), created_at {time},
	updated_at {time});
CREATE TABLE posts (id {id} PRIMARY KEY, name varchar(255), image varchar(255), status varchar(60), created_at {time},
	updated_at {time});
CREATE TABLE categories (id {id} PRIMARY KEY, name varchar(120), status varchar(60), created_at {time}, updated_at
	{time});
CREATE TABLE tags (id {id} PRIMARY KEY, name varchar(120), status varchar(60), created_at {time}, updated_at {time});
CREATE TABLE pages_translations (lang_code varchar(20), pages_id {id}, name varchar(255));
CREATE TABLE posts_translations (lang_code varchar(20), posts_id {id}, name varchar(255));
`

// plainCMS is an empty CMS on any database; id is the type of its ids.
func plainCMS(t testing.TB, engine jobstest.Engine, id string) *cms.Site {
	t.Helper()
	db := jobstest.Migrated(t, engine)
	key, time, auto := `"key"`, "timestamp NULL", "id integer PRIMARY KEY"
	switch engine {
	case jobstest.MariaDB, jobstest.MySQL:
		key, time, auto = "`key`", "datetime NULL", "id bigint AUTO_INCREMENT PRIMARY KEY"
	case jobstest.PostgreSQL:
		auto = "id bigserial PRIMARY KEY"
	}
	script := strings.NewReplacer("{id}", id, "{key}", key, "{time}", time, "{auto}", auto).Replace(plainTables)
	for statement := range strings.SplitSeq(script, ";\n") {
		if strings.TrimSpace(statement) != "" {
			execute(t, db, statement)
		}
	}
	return siteAt(t, db)
}

// execute runs a statement with ? marks.
func execute(t testing.TB, db *jobstest.Database, statement string, args ...any) {
	t.Helper()
	if _, err := db.Exec(db.Rebind(statement), args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// insert adds a row, its values in the table's order.
func insert(t testing.TB, site *cms.Site, table string, values ...any) {
	t.Helper()
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", ")
	if _, err := site.DB.Exec(site.DB.Rebind(fmt.Sprintf("INSERT INTO %s VALUES (%s)", table, marks)),
		values...); err != nil {
		t.Fatalf("a row for %s: %v", table, err)
	}
}

const (
	pageClass     = `Botble\Page\Models\Page`
	postClass     = `Botble\Blog\Models\Post`
	categoryClass = `Botble\Blog\Models\Category`
	before        = "2026-11-01 10:00:00"
)

// blog fills a CMS with a little of everything that must and must not be listed.
func blog(t testing.TB, site *cms.Site) {
	t.Helper()
	insert(t, site, "settings", 1, "theme", "ripple")
	insert(t, site, "settings", 2, "theme-ripple-homepage_id", "1")
	insert(t, site, "settings", 3, "public_single_ending_url", "html")
	insert(t, site, "pages", 1, "Home", nil, "published", before, before)
	insert(t, site, "pages", 2, "About", nil, "published", before, nil)
	insert(t, site, "pages", 3, "Draft", nil, "draft", before, before)
	insert(t, site, "posts", 1, "One", "news/1.jpg", "published", before, "2026-11-02 08:30:00")
	insert(t, site, "posts", 2, "Ahead", nil, "published", "2026-12-24 18:00:00", before)
	insert(t, site, "posts", 3, "Hidden from engines", nil, "published", before, before)
	insert(t, site, "posts", 4, "Pending", nil, "pending", before, before)
	insert(t, site, "posts", 10, "Ünïcode", nil, "published", before, before)
	insert(t, site, "categories", 1, "World & Co", "published", before, before)
	for i, s := range []struct {
		key    string
		id     int
		class  string
		prefix any
	}{{"home", 1, pageClass, ""}, {"about", 2, pageClass, ""}, {"draft", 3, pageClass, ""},
		{"one", 1, postClass, "blog/%%year%%"}, {"one-again", 1, postClass, "blog"},
		{"ahead", 2, postClass, "blog"}, {"hidden", 3, postClass, "blog"}, {"pending", 4, postClass, "blog"},
		{"über uns", 10, postClass, nil}, {"world&co", 1, categoryClass, ""}} {
		insert(t, site, "slugs", i+1, s.key, s.id, s.class, s.prefix)
	}
	insert(t, site, "meta_boxes", 1, "seo_meta", `[{"index":"noindex"}]`, 3, postClass)
	insert(t, site, "meta_boxes", 2, "seo_meta", `[{"index":"index"}]`, 1, postClass)
}

func TestTheMapOnEveryDatabase(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			site := plainCMS(t, engine, "bigint")
			blog(t, site)
			result := write(t, handler(t, site, nil), false)
			const root = "https://cms.example"
			same(t, "pages", locs(t, site, "pages.xml"), []string{root, root + "/about.html"})
			same(t, "posts", locs(t, site, "blog-posts.xml"),
				[]string{root + "/blog/2026/one.html", root + "/%C3%BCber%20uns.html"})
			same(t, "categories", locs(t, site, "blog-categories.xml"), []string{root + "/world&co.html"})
			if result.URLs != 5 || result.SkippedRows != 0 || result.Index != root+"/sitemap.xml" {
				t.Errorf("result %+v", result)
			}
			if post := readURLs(t, site, "blog-posts.xml")[0]; post.LastMod.UTC().Format(
				"2006-01-02 15:04:05") != "2026-11-02 08:30:00" {
				t.Errorf("lastmod %v", post.LastMod)
			}
		})
	}
}

func published(t testing.TB, h *sitemap.Handler) sitemap.Published {
	t.Helper()
	p, err := h.Published(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What pages show of the map: totals of all files, the index before the others
// though it is written last, no more of them than fit into their column, and
// nothing once somebody removed the index.
func TestThePublishedMapIsTold(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	h := handler(t, site, func(c *sitemap.Config) { c.Options.PerFile = 1 })
	if p := published(t, h); p.Files != 0 || p.Listed != nil {
		t.Errorf("before the first: %+v", p)
	}
	for id := 100; id < 400; id++ {
		insert(t, site, "posts", id, "A post", "", "published", "2026-11-01 00:00:00", nil)
		insert(t, site, "slugs", id, fmt.Sprint("post-", id), id, postClass, "blog")
	}
	r := write(t, h, false)
	p := published(t, h)
	if p.URLs != 305 || p.Files != r.Files || p.Bytes != r.Bytes || len(p.Listed) != 200 ||
		p.Listed[0].Name != "sitemap.xml" || p.Listed[0].URLs != 0 {
		t.Fatalf("%d addresses in %d files, %d listed: %+v", p.URLs, p.Files, len(p.Listed), p.Listed[0])
	}
	if f := p.Listed[1]; f.Name != "pages-page-1.xml" || f.URLs != 1 || f.Bytes != int64(len(read(t, site, f.Name))) ||
		f.Modified.IsZero() {
		t.Errorf("%+v", f)
	}
	if err := os.Remove(filepath.Join(site.Public(), "sitemap.xml")); err != nil {
		t.Fatal(err)
	}
	if p := published(t, h); p.Files != 0 {
		t.Errorf("of a removed map: %+v", p)
	}
}

func TestUnchangedChangedForcedAndRemoved(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	h := handler(t, site, nil)
	write(t, h, false)
	if r := write(t, h, false); r.Unchanged == "" {
		t.Error("the second run should find nothing new")
	}
	if r := write(t, h, true); r.Unchanged != "" || r.URLs == 0 {
		t.Errorf("a forced run must write: %+v", r)
	}
	changes := []string{
		"UPDATE posts SET updated_at = '2026-11-03 00:00:00' WHERE id = 1",
		"UPDATE posts SET status = 'draft' WHERE id = 10",
		`UPDATE slugs SET "key" = 'another' WHERE id = 4`,
		"DELETE FROM meta_boxes WHERE id = 1",
		"UPDATE settings SET value = 'htm' WHERE id = 3",
	}
	for _, change := range changes {
		site.DB.MustExec(change)
		if r := write(t, h, false); r.Unchanged != "" {
			t.Errorf("not seen: %s", change)
		}
	}
	if err := os.Remove(filepath.Join(site.Public(), "sitemap.xml")); err != nil {
		t.Fatal(err)
	}
	if r := write(t, h, false); r.Unchanged != "" {
		t.Error("a map that somebody removed is written again")
	}
}

func TestADisabledSitemapIsRemovedAndForeignFilesStay(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	if err := os.WriteFile(filepath.Join(site.Public(), "products.xml"), []byte("<mine/>"), 0o644); err != nil {
		t.Fatal(err)
	}
	h := handler(t, site, func(c *sitemap.Config) { c.Options.PerFile = 1 })
	write(t, h, false)
	same(t, "files", files(t, site), strings.Fields("products.xml sitemap.xml sitemap.xsl pages-page-1.xml "+
		"pages-page-2.xml blog-posts-page-1.xml blog-posts-page-2.xml blog-categories.xml"))
	r := write(t, handler(t, site, nil), false)
	same(t, "files", files(t, site), strings.Fields("products.xml sitemap.xml sitemap.xsl pages.xml blog-posts.xml "+
		"blog-categories.xml"))
	same(t, "removed", r.Removed, strings.Fields("pages-page-1.xml pages-page-2.xml blog-posts-page-1.xml "+
		"blog-posts-page-2.xml"))
	insert(t, site, "settings", 9, "sitemap_enabled", "0")
	if r := write(t, h, true); r.Disabled == "" {
		t.Errorf("result %+v", r)
	}
	same(t, "files", files(t, site), []string{"products.xml"})
}

// A sitemap that another program wrote is never replaced, in no target that has
// files; what is ours stays up to date.
func TestAForeignSitemapIsNeverReplaced(t *testing.T) {
	const theirs = `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"></urlset>`
	for _, name := range []string{"sitemap.xml", "blog-posts.xml"} {
		site := plainCMS(t, jobstest.SQLite, "bigint")
		blog(t, site)
		insert(t, site, "settings", 99, "theme", "ripple")
		path := filepath.Join(site.Public(), name)
		if err := os.WriteFile(path, []byte(theirs), 0o644); err != nil {
			t.Fatal(err)
		}
		h := handler(t, site, nil)
		if r, err := h.Write(t.Context(), true, nil); !errors.Is(err, sitemap.ErrForeign) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != theirs {
			t.Errorf("%s was replaced: %s, %v", name, text, err)
		}
		same(t, "files beside "+name, files(t, site), []string{name})
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		write(t, h, true)
		write(t, h, true) // ours is replaced
	}
}
