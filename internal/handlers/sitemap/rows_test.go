package sitemap_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func TestOneBadRowDoesNotEndTheRun(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	insert(t, site, "settings", 1, "theme", "ripple")
	for i, c := range []struct {
		key              any
		created, updated any
	}{
		{"good", before, before},
		{nil, before, before},                          // 2: no slug's key
		{"bad\xff\xfe", before, before},                // 3: no UTF-8
		{"zero", "0000-00-00 00:00:00", before},        // 4
		{"absurd", before, "12026-13-45 99:00:00"},     // 5
		{"control\x07", before, before},                // 6
		{strings.Repeat("x", 2100), before, before},    // 7: too long
		{"fullwidth\uFFFD", before, before},            // 8
		{"no-dates", nil, nil},                         // 9: good
		{"", before, before},                           // 10
		{"<script>alert(1)</script>&'\"", before, nil}, // 11: good, when escaped
	} {
		insert(t, site, "posts", i+1, "Post", nil, "published", c.created, c.updated)
		insert(t, site, "slugs", i+1, c.key, i+1, postClass, "")
	}
	insert(t, site, "posts", 12, "Without a slug's row", nil, "published", before, before)
	insert(t, site, "pages", 1, "Without a slug's row", nil, "published", before, before)
	h := handler(t, site, nil)
	r := write(t, h, false)
	const root = "https://cms.example"
	same(t, "posts", locs(t, site, "blog-posts.xml"), []string{root + "/good", root + "/no-dates",
		root + "/%3Cscript%3Ealert(1)%3C/script%3E&'%22"})
	var skipped []string
	for _, s := range r.Skipped {
		skipped = append(skipped, s.Table+" "+s.ID)
	}
	same(t, "skipped", skipped, strings.Split("pages 1,posts 2,posts 3,posts 4,posts 5,posts 6,posts 7,posts 8,posts "+
		"10,posts 12", ","))
	if r.SkippedRows != len(r.Skipped) {
		t.Errorf("%d skipped rows, %d named", r.SkippedRows, len(r.Skipped))
	}
	checked(t, h)
}

func TestIdsThatAreNoNumbersAndATablePrefix(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			site := plainCMS(t, engine, "varchar(36)")
			for _, table := range []string{"settings", "slugs", "slugs_translations", "meta_boxes", "languages",
				"language_meta", "pages", "posts", "categories", "tags", "posts_translations", "pages_translations"} {
				site.DB.MustExec("ALTER TABLE " + table + " RENAME TO web_" + table)
			}
			site.Prefix = "web_"
			languages(t, &cms.Site{DB: site.DB, Prefix: "web_"})
			insert(t, site, "web_settings", "a", "theme", "ripple")
			var want []string
			for i := range 25 {
				id := fmt.Sprintf("%08x-7e57-4a11-8000-00000000%04d", (i*2654435761)&0xffffffff, i)
				insert(t, site, "web_posts", id, "Post", nil, "published", before, before)
				insert(t, site, "web_slugs", id, fmt.Sprintf("post-%d", i), id, postClass, "")
				insert(t, site, "web_posts_translations", "vi", id, "Bài")
				want = append(want, fmt.Sprintf("https://cms.example/post-%d", i),
					fmt.Sprintf("https://cms.example/vi/post-%d", i))
			}
			h := handler(t, site, nil)
			write(t, h, false)
			same(t, "posts", locs(t, site, "blog-posts.xml"), want)
			checked(t, h)
		})
	}
}

func TestNumbersAreReadInTheirOrderAcrossBatches(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			site := plainCMS(t, engine, "bigint")
			const rows = 250
			for i := rows; i > 0; i-- {
				insert(t, site, "posts", i, "Post", nil, "published", before, before)
				insert(t, site, "slugs", i, fmt.Sprintf("post-%d", i), i, postClass, "")
				if i%3 == 0 { // a second slug, at the border of batches too
					insert(t, site, "slugs", rows+i, fmt.Sprintf("other-%d", i), i, postClass, "")
				}
			}
			var got []string
			for item, err := range site.Content(t.Context(), cms.Models()[1], cms.ContentQuery{Now: noon, Batch: 7}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, item.ID+"="+item.Key)
			}
			if len(got) != rows || got[0] != "1=post-1" || got[9] != "10=post-10" || got[rows-1] != "250=post-250" {
				t.Errorf("%d rows: %v", len(got), got)
			}
		})
	}
}

func TestTheCMSsOwnZone(t *testing.T) { jobstest.EachMySQL(t, testTheCMSsOwnZone) }

func testTheCMSsOwnZone(t *testing.T, engine jobstest.Engine) {
	site := plainCMS(t, engine, "bigint")
	insert(t, site, "settings", 1, "time_zone", "Asia/Ho_Chi_Minh")
	for i, created := range []string{"2026-11-20 18:59:59", "2026-11-20 19:00:01"} { // noon UTC is 19:00 there
		insert(t, site, "posts", i+1, "Post", nil, "published", created, created)
		insert(t, site, "slugs", i+1, fmt.Sprintf("post-%d", i+1), i+1, postClass, "")
	}
	write(t, handler(t, site, func(c *sitemap.Config) { c.Options.Naming = "botble" }), false)
	list := readURLs(t, site, "blog-posts.xml")
	if len(list) != 1 || list[0].LastMod.Format("2006-01-02T15:04:05Z07:00") != "2026-11-20T18:59:59+07:00" {
		t.Errorf("%d posts, the first of %v", len(list), list[0].LastMod)
	}
}
