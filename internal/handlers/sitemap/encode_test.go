package sitemap

import (
	"bytes"
	"encoding/xml"
	"strconv"
	"strings"
	"testing"
	"time"

	xmlsitemap "github.com/snabb/sitemap"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap/video"
)

func sample(n int) entry {
	return entry{loc: "https://cms.example/news/a-post-with-a-title-of-usual-length-" + strconv.Itoa(n), priority: "0.7",
		frequency: "daily",
		modified:  time.Date(2026, 2, 1, 0, 0, n%86400, 0, time.UTC)}
}

// FuzzEntry holds that whatever an editor typed comes back out of the XML.
func FuzzEntry(f *testing.F) {
	f.Add("https://cms.example/a?b=1&c=<d>", `T"i't]]>le`)
	f.Add("\xff\x00\ufffd\ufffe", "\x1b[31m")
	f.Fuzz(func(t *testing.T, loc, title string) {
		e := entry{loc: loc, alternates: []alternate{{"en", title}}, images: []string{loc}, news: &news{title: title},
			videos: []video.Video{{Title: title, Thumbnail: loc, Description: title, Content: loc}}}
		text := header("", nsXHTML, nsImage, nsNews, nsVideo) + string(appendEntry(nil, &e)) + footer
		var back struct {
			URL struct {
				Loc  string `xml:"loc"`
				Link struct {
					Href string `xml:"href,attr"`
				} `xml:"link"`
				Title string `xml:"news>title"`
				Video string `xml:"video>title"`
			} `xml:"url"`
		}
		if err := xml.Unmarshal([]byte(text), &back); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		want := func(s string) string { // what encoding/xml itself would write and read
			var b bytes.Buffer
			if err := xml.EscapeText(&b, []byte(s)); err != nil {
				t.Fatal(err)
			}
			var v struct {
				T string `xml:",chardata"`
			}
			if err := xml.Unmarshal([]byte("<a>"+b.String()+"</a>"), &v); err != nil {
				t.Fatal(err)
			}
			return v.T
		}
		newline := strings.NewReplacer("\r\n", "\n", "\r", "\n")
		if got := back.URL.Loc; got != newline.Replace(want(loc)) {
			t.Errorf("loc %q became %q, want %q", loc, got, want(loc))
		}
		if got := back.URL.Title; got != newline.Replace(want(title)) {
			t.Errorf("title %q became %q, want %q", title, got, want(title))
		}
		if got := back.URL.Video; got != newline.Replace(want(title)) {
			t.Errorf("a video's title %q became %q, want %q", title, got, want(title))
		}
	})
}

// FuzzInspector holds that no file makes the checker panic or loop.
func FuzzInspector(f *testing.F) {
	e := sample(1)
	f.Add(header("/x.xsl", nsXHTML) + string(appendEntry(nil, &e)) + footer)
	f.Add(`<sitemapindex xmlns="` + nsSitemap + `"><sitemap><loc>http://a.example/b.xml</loc></sitemap></sitemapindex>`)
	f.Add("<urlset")
	f.Fuzz(func(t *testing.T, text string) {
		entries, problems := 0, 0
		in := &inspector{entry: func(listed) { entries++ }, problem: func(int, string) { problems++ }}
		if err := in.read(strings.NewReader(text)); err == nil && entries == 0 && problems == 0 {
			t.Errorf("%q is neither a sitemap nor a problem", text)
		}
	})
}

func TestPlainEntriesReadBackBySnabb(t *testing.T) {
	text := []byte(header(""))
	for i := range 100 {
		e := sample(i)
		text = appendEntry(text, &e)
	}
	var set xmlsitemap.Sitemap
	if _, err := set.ReadFrom(bytes.NewReader(append(text, footer...))); err != nil || len(set.URLs) != 100 {
		t.Fatalf("%d addresses, %v", len(set.URLs), err)
	}
	for i, u := range set.URLs {
		if e := sample(i); u.Loc != e.loc || !u.LastMod.Equal(e.modified) || u.Priority != 0.7 ||
			u.ChangeFreq != xmlsitemap.Daily {
			t.Errorf("%d: %+v", i, u)
		}
	}
}

// FuzzVideos holds that no content of an editor leads to an address that a search
// engine would refuse, or to a video without a picture.
func FuzzVideos(f *testing.F) {
	f.Add(`[media url="https://youtu.be/aqz-KE-bpKQ"][/media]<video src="//h/\x00.mp4">`)
	f.Add(`[youtube-video]https://www.youtube.com/watch?v=a%22[/youtube-video]<iframe src="https://youtube.com/embed/">`)
	f.Fuzz(func(t *testing.T, content string) {
		item := cms.Item{Title: "T", Image: "a.jpg", Content: content}
		list := videosOf(&item, "https://cms.example", func(p string) string { return "https://cms.example/" + p })
		for _, v := range list {
			if badURL(v.Thumbnail) != "" || badURL(v.Content+v.Player) != "" || v.Title == "" || v.Description == "" {
				t.Errorf("%+v", v)
			}
		}
	})
}
