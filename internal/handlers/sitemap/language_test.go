package sitemap_test

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// link is an alternate as any XML reader sees it.
type link struct {
	Rel      string `xml:"rel,attr"`
	Language string `xml:"hreflang,attr"`
	Href     string `xml:"href,attr"`
}

// alternatesOf reads a file with encoding/xml: address → its alternates.
func alternatesOf(t testing.TB, site *cms.Site, names ...string) map[string][]link {
	t.Helper()
	all := map[string][]link{}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(site.Public(), name))
		if err != nil {
			t.Fatal(err)
		}
		var set struct {
			URLs []struct {
				Loc   string `xml:"loc"`
				Links []link `xml:"http://www.w3.org/1999/xhtml link"`
			} `xml:"url"`
		}
		if err := xml.Unmarshal(text, &set); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, u := range set.URLs {
			all[u.Loc] = u.Links
		}
	}
	return all
}

// mutual checks Google's rule: each version names all versions, itself too,
// and those that it names say the same.
func mutual(t testing.TB, all map[string][]link) {
	t.Helper()
	for loc, links := range all {
		self := len(links) == 0
		for _, l := range links {
			self = self || l.Href == loc
			if l.Rel != "alternate" || !slices.Equal(all[l.Href], links) {
				t.Errorf("%s names %s as %s, which itself names %v", loc, l.Href, l.Language, all[l.Href])
			}
		}
		if !self {
			t.Errorf("%s does not name itself: %v", loc, links)
		}
	}
}

func languages(t testing.TB, site *cms.Site) {
	t.Helper()
	insert(t, site, site.Table("languages"), 1, "English", "en", "en_US", 1, 0)
	insert(t, site, site.Table("languages"), 2, "Tiếng Việt", "vi", "vi", 0, 1)
	insert(t, site, site.Table("languages"), 3, "Deutsch", "de", "de_DE", 0, 2)
}

func TestTranslationsAreCompleteAndMutual(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			site := plainCMS(t, engine, "bigint")
			blog(t, site)
			languages(t, site)
			insert(t, site, "pages_translations", "vi", 1, "Trang chủ")
			insert(t, site, "pages_translations", "de_DE", 2, "Über uns")
			insert(t, site, "posts_translations", "vi", 1, "Một")
			insert(t, site, "posts_translations", "de_DE", 1, "Eins")
			// a language that the site does not have any more
			insert(t, site, "posts_translations", "fr_FR", 1, "Un")
			insert(t, site, "posts_translations", "vi", 3, "ẩn") // of a post that is kept out
			// the default language has no version of the entry
			insert(t, site, "posts_translations", "en_US", 10, "Older")
			insert(t, site, "slugs_translations", "vi", 4, "mot", "tin-tuc")
			insert(t, site, "slugs_translations", "de_DE", 4, "", nil) // empty key, NULL prefix: the default's
			h := handler(t, site, nil)
			write(t, h, false)
			all := alternatesOf(t, site, "pages.xml", "blog-posts.xml", "blog-categories.xml")
			mutual(t, all)
			const root = "https://cms.example"
			en, vi, de := root+"/blog/2026/one.html", root+"/vi/tin-tuc/mot.html", root+"/de/blog/2026/one.html"
			want := map[string][]link{
				root: {{"alternate", "en-US", root}, {"alternate", "vi", root + "/vi"},
					{"alternate", "x-default", root}},
				root + "/about.html": {{"alternate", "en-US", root + "/about.html"},
					{"alternate", "de-DE", root + "/de/about.html"}, {"alternate", "x-default", root + "/about.html"}},
				en: {{"alternate", "en-US", en}, {"alternate", "vi", vi},
					{"alternate", "de-DE", de}, {"alternate", "x-default", en}},
				root + "/%C3%BCber%20uns.html": nil,
				root + "/world&co.html":        nil,
			}
			want[root+"/vi"], want[root+"/de/about.html"], want[vi], want[de] = want[root], want[root+"/about.html"],
				want[en], want[en]
			if len(all) != len(want) {
				t.Errorf("%d addresses, want %d: %v", len(all), len(want), all)
			}
			for loc, links := range want {
				if got, there := all[loc]; !there || !slices.Equal(got, links) {
					t.Errorf("%s: %v, want %v", loc, got, links)
				}
			}
			checked(t, h)
			insert(t, site, "posts_translations", "de_DE", 10, "Neu")
			if r := write(t, h, false); r.Unchanged != "" {
				t.Error("a new translation is a change")
			}
		})
	}
}

func TestLanguagesWithRowsOfTheirOwn(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	languages(t, site)
	site.DB.MustExec("DROP TABLE posts_translations")
	insert(t, site, "settings", 1, "language_hide_default", "0")
	insert(t, site, "settings", 2, "theme", "ripple")
	for i, p := range []struct{ code, origin, status, created, key string }{
		{"en_US", "a", "published", before, "one"}, {"vi", "a", "published", before, "mot"},
		{"de_DE", "a", "draft", before, "eins"},
		{"vi", "b", "published", before, "hai"}, {"en_US", "b", "published", "2027-01-01 00:00:00", "two"},
		{"en_US", "c", "published", before, "three"}, {"vi", "c", "published", before, "ba"},
	} {
		insert(t, site, "posts", i+1, p.key, nil, p.status, p.created, p.created)
		insert(t, site, "slugs", i+1, p.key, i+1, postClass, "")
		insert(t, site, "language_meta", i+1, p.code, p.origin, i+1, postClass)
	}
	insert(t, site, "meta_boxes", 1, "seo_meta", `[{"index":"noindex"}]`, 7, postClass)
	h := handler(t, site, nil)
	write(t, h, false)
	all := alternatesOf(t, site, "blog-posts.xml")
	mutual(t, all)
	const root = "https://cms.example"
	want := []string{root + "/en/one", root + "/vi/mot", root + "/vi/hai", root + "/en/three"}
	var got []string
	for loc, links := range all {
		got = append(got, loc)
		if pair := loc == want[0] || loc == want[1]; pair != (len(links) == 3) {
			t.Errorf("%s: %v", loc, links)
		}
	}
	same(t, "posts", got, want)
	checked(t, h)
}

// A post is on the front page of each language.
func TestFrontPagesListAPost(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	languages(t, site)
	h := teller(t, site, newEngine(t, site), nil)
	wantChanges(t, h, 10) // notes what is there
	site.DB.MustExec("UPDATE posts SET updated_at = '2026-11-19 00:00:00' WHERE id = 1")
	c, err := h.ChangesOfRows(t.Context(), []string{"posts:1"})
	if root := site.URL(); err != nil || !slices.Equal(c.Lists, []string{root, root + "/vi", root + "/de"}) {
		t.Errorf("%v, %v", c.Lists, err)
	}
}
