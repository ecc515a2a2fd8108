package sitemap_test

import (
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// Videos that a post shows are named on every database, each once, with what
// search engines ask for; what is no video, or has no picture, is not.
func TestVideos(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			site := plainCMS(t, engine, "bigint")
			for _, column := range []string{"content text", "description varchar(400)"} {
				if _, err := site.DB.Exec("ALTER TABLE posts ADD COLUMN " + column); err != nil {
					t.Fatal(err)
				}
			}
			post := func(id int, key, image, content, summary string) {
				t.Helper()
				insert(t, site, "posts", id, "A film & more", image, "published", before, before, content, summary)
				insert(t, site, "slugs", id, key, id, postClass, "")
			}
			post(1, "tube", "", `<p>[youtube-video]https://www.youtube.com/watch?v=SlPhMPnQ58k&amp;t=3[/youtube-video]</p>
				<iframe src="//www.youtube-nocookie.com/embed/SlPhMPnQ58k?rel=0"></iframe>
				[media url="https://youtu.be/aqz-KE-bpKQ" width="100%"][/media]
				<iframe src="https://maps.example/embed/x"></iframe>`, "Short <text>")
			post(2, "files", "news/1.jpg", `<video poster="/p/1.png"><source src="/storage/a film.mp4"></video>
				<video src="https://cdn.example/b.WEBM"></video><video src="javascript:alert(1)//x.mp4"></video>`, "")
			post(3, "no-picture", "", `<video src="/storage/c.mp4"></video>`, "")
			h := handler(t, site, func(c *sitemap.Config) { c.Options.Videos, c.Options.Naming = true, "plain" })
			write(t, h, true)
			checked(t, h)
			if engine == jobstest.SQLite {
				golden(t, "videos.xml", read(t, site, "sitemap-posts.xml"))
			}
			text := string(read(t, site, "sitemap-posts.xml"))
			for want, n := range map[string]int{"<video:video>": 4,
				"<video:player_loc>https://www.youtube.com/embed/SlPhMPnQ58k</video:player_loc>": 1,
				"<video:thumbnail_loc>https://i.ytimg.com/vi/aqz-KE-bpKQ/hqdefault.jpg<":         1,
				"<video:content_loc>https://cms.example/storage/a%20film.mp4<":                   1,
				"<video:thumbnail_loc>https://cms.example/p/1.png<":                              1,
				"<video:thumbnail_loc>https://cms.example/storage/news/1.jpg<":                   1,
				"<video:description>Short &lt;text&gt;<":                                         2,
				"javascript":                                                                     0, "c.mp4": 0, "maps.example": 0} {
				if got := strings.Count(text, want); got != n {
					t.Errorf("%q stands there %d times, want %d", want, got, n)
				}
			}
		})
	}
}
