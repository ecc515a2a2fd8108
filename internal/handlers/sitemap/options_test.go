package sitemap_test

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
	"github.com/cmsjobs/cmsjobs/internal/testgolden"
)

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	testgolden.Check(t, filepath.Join("testdata", name+".golden"), got)
}

func read(t *testing.T, site *cms.Site, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(site.Public(), name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestEveryOptionInOneMap(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	languages(t, site)
	insert(t, site, "settings", 20, "theme-ripple-site_title", "Tom & Jerry's")
	insert(t, site, "posts_translations", "vi", 1, "Một")
	insert(t, site, "posts", 20, `Fresh "news" <today>`, "news/a b.jpg", "published", "2026-11-19 13:00:00", nil)
	insert(t, site, "slugs", 20, "fresh", 20, postClass, "news/%%year%%/%%month%%/%%day%%")
	h := handler(t, site, func(c *sitemap.Config) {
		o := &c.Options
		o.Images, o.News, o.Gzip, o.Robots, o.KeepNoIndex, o.Profile = true, true, true, true, true, "botble"
	})
	write(t, h, false)
	checked(t, h)
	golden(t, "blog-posts.xml", read(t, site, "blog-posts.xml"))
	golden(t, "sitemap.xml", read(t, site, "sitemap.xml"))
	for _, name := range []string{"sitemap.xml", "pages.xml", "blog-posts.xml", "blog-categories.xml"} {
		f, err := os.Open(filepath.Join(site.Public(), name+".gz"))
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err := errors.Join(err, f.Close()); err != nil || string(text) != string(read(t, site, name)) {
			t.Errorf("%s.gz holds something else (%v)", name, err)
		}
	}
	write(t, handler(t, site, nil), true)
	same(t, "files without copies", files(t, site), strings.Fields("sitemap.xml sitemap.xsl pages.xml blog-posts.xml "+
		"blog-categories.xml robots.txt"))
}

func TestRobots(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	h := handler(t, site, func(c *sitemap.Config) { c.Options.Robots = true })
	write(t, h, true)
	const line = "Sitemap: https://cms.example/sitemap.xml\n"
	if got := string(read(t, site, "robots.txt")); got != "User-agent: *\nDisallow:\n\n"+line {
		t.Errorf("a new one: %q", got)
	}
	for before, after := range map[string]string{
		"User-agent: *\nDisallow: /admin":              "User-agent: *\nDisallow: /admin\n\n" + line,
		"# mine\n" + line:                              "# mine\n" + line,
		line + "a: b\n" + line:                         line + "a: b\n",
		"Sitemap: https://other.example/sitemap.xml\n": "Sitemap: https://other.example/sitemap.xml\n\n" + line,
	} {
		if err := os.WriteFile(filepath.Join(site.Public(), "robots.txt"), []byte(before), 0o644); err != nil {
			t.Fatal(err)
		}
		write(t, h, true)
		if got := string(read(t, site, "robots.txt")); got != after {
			t.Errorf("%q became %q, want %q", before, got, after)
		}
	}
	insert(t, site, "settings", 50, "sitemap_enabled", "0")
	write(t, h, true)
	if got := string(read(t, site, "robots.txt")); strings.Contains(got, "cms.example") {
		t.Errorf("the line is still there: %q", got)
	}
}

func TestPlainNamesAndSwitches(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	site.DB.MustExec("DELETE FROM settings WHERE id = 1") // no theme: not the real CMS
	insert(t, site, "settings", 40, "sitemap_items_per_page", "2")
	h := handler(t, site, nil)
	write(t, h, false)
	checked(t, h)
	// Without the theme no page is the homepage: root, /home and /about.
	same(t, "files", files(t, site), strings.Fields("sitemap.xml sitemap.xsl sitemap-pages-1.xml sitemap-pages-2.xml "+
		"sitemap-posts.xml sitemap-categories.xml"))
	if first := readURLs(t, site, "sitemap-pages-1.xml")[0]; first.Loc != "https://cms.example" || first.Priority != 1 {
		t.Errorf("the root: %+v", first)
	}
	for i, key := range []string{"sitemap_pages_enabled", "sitemap_blog_categories_enabled"} {
		insert(t, site, "settings", 60+i, key, "0")
	}
	write(t, h, false)
	checked(t, h)
	same(t, "one file needs no index", files(t, site), []string{"sitemap.xml", "sitemap.xsl"})
	same(t, "posts", locs(t, site, "sitemap.xml"), []string{"https://cms.example/blog/2026/one.html",
		"https://cms.example/%C3%BCber%20uns.html"})
}

func TestModelsOfTheConfiguration(t *testing.T) { jobstest.EachMySQL(t, testModelsOfTheConfiguration) }

func testModelsOfTheConfiguration(t *testing.T, engine jobstest.Engine) {
	site := plainCMS(t, engine, "bigint")
	insert(t, site, "settings", 1, "theme", "shop")
	site.DB.MustExec("CREATE TABLE ec_products (id bigint PRIMARY KEY, name varchar(255), state varchar(20), " +
		"updated_at datetime)")
	site.DB.MustExec("INSERT INTO ec_products VALUES (1, 'Chair', 'on', '2026-01-01 00:00:00'), (2, 'Table', 'off', " +
		"NULL)")
	insert(t, site, "slugs", 1, "chair", 1, `Botble\Ecommerce\Models\Product`, "products")
	insert(t, site, "slugs", 2, "table", 2, `Botble\Ecommerce\Models\Product`, "products")
	h := handler(t, site, func(c *sitemap.Config) {
		c.Options.Models = []cms.Model{
			{Name: "products", Table: "ec_products", Class: `Botble\Ecommerce\Models\Product`, StatusColumn: "state",
				Published: "on"}}
		c.Options.Priorities = map[string]string{"products": "0.9"}
	})
	write(t, h, false)
	if list := readURLs(t, site, "products.xml"); len(list) != 1 ||
		list[0].Loc != "https://cms.example/products/chair" || list[0].Priority != 0.9 {
		t.Errorf("%+v", list)
	}
}

func TestABucketAndTheCachesTableAreTargetsToo(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	site.DB.MustExec(`CREATE TABLE cache ("key" varchar(255) PRIMARY KEY, value text, expiration bigint)`)
	site.DB.MustExec(`INSERT INTO cache VALUES ('cms_cache_other', 's:1:"x";', 9), ('cms_cache_CMSJOBS:sitemap:x',
		's:1:"x";', 9)`)
	store, err := storage.NewLocal(t.TempDir(), storage.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Put(t.Context(), "maps/foreign.xml", strings.NewReader("<mine/>"),
		storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]sitemap.Target{
		"bucket": sitemap.Bucket(store, "maps/"),
		"cache": sitemap.CacheTable(cms.CacheTable{Site: site, Prefix: "cms_cache_"}, func() time.Time {
			return noon
		}),
	} {
		t.Run(name, func(t *testing.T) {
			with := func(perFile int) *sitemap.Handler {
				return handler(t, site, func(c *sitemap.Config) { c.Target, c.Options.PerFile = target, perFile })
			}
			write(t, with(1), false)
			checked(t, with(1))
			r := write(t, with(1000), false)
			same(t, "removed", r.Removed, strings.Fields("pages-page-1.xml pages-page-2.xml blog-posts-page-1.xml "+
				"blog-posts-page-2.xml"))
			if r := checked(t, with(1000)); r.URLs != 5 || len(r.Strays) != 0 {
				t.Errorf("%+v", r)
			}
			if r := write(t, with(1000), false); r.Unchanged == "" {
				t.Errorf("%+v", r)
			}
			if p := published(t, with(1000)); p.URLs != 5 || p.Files != 5 || p.Listed[0].Name != "sitemap.xml" ||
				!p.At.Equal(noon) || !strings.Contains(p.Target, name) {
				t.Errorf("%+v", p)
			}
			insert(t, site, "settings", 50, "sitemap_enabled", "0")
			defer site.DB.MustExec("DELETE FROM settings WHERE id = 50")
			if r := write(t, with(1000), false); len(r.Removed) != 5 {
				t.Errorf("%+v", r)
			}
			if p := published(t, with(1000)); p.Files != 0 {
				t.Errorf("of a map that was taken away: %+v", p)
			}
		})
	}
	if _, err := store.Stat(t.Context(), "maps/foreign.xml"); err != nil {
		t.Errorf("a foreign file: %v", err)
	}
	var rows int
	if err := site.DB.Get(&rows, "SELECT COUNT(*) FROM cache"); err != nil || rows != 2 {
		t.Errorf("%d rows of others are left, %v", rows, err)
	}
	if entries, err := os.ReadDir(site.Public()); err != nil || len(entries) != 0 {
		t.Errorf("the public folder was touched: %v, %v", entries, err)
	}
}

func TestPHPReadsWhatTheCacheTableHolds(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	site.DB.MustExec(`CREATE TABLE cache ("key" varchar(255) PRIMARY KEY, value text, expiration bigint)`)
	table := cms.CacheTable{Site: site, Prefix: "p_"}
	_, err := table.Replace(t.Context(), "g:", noon, func(yield func(cms.CacheEntry, error) bool) {
		yield(cms.CacheEntry{Key: "g:a", Text: `ü"; x`}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	var value string
	if err := site.DB.Get(&value, `SELECT value FROM cache WHERE "key" = 'p_g:a'`); err != nil ||
		value != `s:6:"ü"; x";` {
		t.Errorf("%q, %v; PHP's serialize counts bytes", value, err)
	}
}

func TestHostilePlacesInThePublicFolder(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	h := handler(t, site, func(c *sitemap.Config) { c.Options.Robots = true })
	outside := filepath.Join(t.TempDir(), "victim.xml")
	marked := "<!-- made by cmsjobs -->"
	if err := os.WriteFile(outside, []byte(marked), 0o600); err != nil {
		t.Fatal(err)
	}
	public := site.Public()
	for _, name := range []string{"sitemap.xml", "pages.xml", "old.xml", "robots.txt", ".cmsjobs-robots",
		".cmsjobs-sitemap"} {
		if err := os.Symlink(outside, filepath.Join(public, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(public, "folder.xml"), 0o755); err != nil {
		t.Fatal(err)
	}
	intact := func() {
		t.Helper()
		if text, err := os.ReadFile(outside); err != nil || string(text) != marked {
			t.Errorf("the file outside holds %q, %v", text, err)
		}
	}
	if _, err := h.Write(t.Context(), true, nil); err == nil {
		t.Error("a staging folder that is a link must be refused")
	}
	intact()
	for _, name := range []string{".cmsjobs-sitemap", "robots.txt", ".cmsjobs-robots"} {
		if err := os.Remove(filepath.Join(public, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"sitemap.xml", "pages.xml"} {
		if _, err := h.Write(t.Context(), true, nil); !errors.Is(err, sitemap.ErrForeign) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s, a link that is not ours, is no reason to stop: %v", name, err)
		}
		intact()
		if err := os.Remove(filepath.Join(public, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, h, true)
	intact()
	if info, err := os.Lstat(filepath.Join(public, "sitemap.xml")); err != nil || !info.Mode().IsRegular() ||
		info.Mode().Perm() != 0o644 {
		t.Errorf("the map must be a file that the web server can read: %v, %v", info, err)
	}
	if _, err := os.Lstat(filepath.Join(public, "old.xml")); err != nil {
		t.Errorf("a link is not ours to remove: %v", err)
	}
}

func TestALimitIsKeptByEntryAndByByte(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	insert(t, site, "settings", 1, "sitemap_items_per_page", "100000") // above what sitemaps.org allows
	long := strings.Repeat("k", 1900)
	const numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) "
	site.DB.MustExec("INSERT INTO posts " + numbers + "SELECT i, 'p', NULL, 'published', NULL, NULL FROM n")
	site.DB.MustExec(`INSERT INTO slugs (id, "key", reference_id, reference_type, prefix) `+numbers+
		"SELECT i, ?, i, ?, '' FROM n", long, postClass)
	write(t, handler(t, site, nil), false)
	total := 0
	for _, name := range files(t, site) {
		if !strings.HasPrefix(name, "sitemap-posts") {
			continue
		}
		total++
		if info, err := os.Stat(filepath.Join(site.Public(), name)); err != nil || info.Size() > 50<<20 {
			t.Errorf("%s has %d bytes, %v", name, info.Size(), err)
		}
	}
	if total != 2 {
		t.Errorf("%d files for 58 MB, want 2", total)
	}
}
