package sitemap

import (
	"cmp"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap/video"
)

// newsAge is how long a post is news (Google News sitemaps: two days).
const newsAge = 48 * time.Hour

// entries lists an item and those of its other languages that have no row of
// their own. Each carries the same set of alternates, itself included, so that
// the sets are complete and mutual. The list is good until the next call.
func (p *plan) entries(g *group, item *cms.Item, media func(string) string) []entry {
	first := entry{loc: p.links.URL(item), modified: item.Modified(), frequency: g.frequency, priority: g.priority}
	if p.options.Images && item.Image != "" {
		if image := media(item.Image); badURL(image) == "" {
			first.images = []string{image}
		}
	}
	if p.options.News && g.model.Scheduled && item.Title != "" && p.now.Sub(item.Created) < newsAge {
		first.news = &news{publication: p.publication, language: p.language, title: item.Title, published: item.Created}
	}
	if p.options.LLMs {
		first.title = item.Title
	}
	if p.options.Videos {
		first.videos = videosOf(item, p.links.Root, media)
	}
	if len(item.Versions) > 0 {
		first.alternates = p.alternates(item)
	}
	list := append(p.scratch[:0], first)
	for _, v := range item.Versions {
		if v.ID == "" {
			list = append(list, entry{loc: p.links.VersionURL(item, v), modified: first.modified,
				frequency: g.frequency,
				priority:  g.priority, alternates: first.alternates, images: first.images})
		}
	}
	p.scratch = list
	return list
}

// alternates lists every language of an item in the order of the site's
// languages, the default one also as x-default.
func (p *plan) alternates(item *cms.Item) []alternate {
	at := map[string]string{}
	own := item.Language
	if own == "" {
		own = p.links.Languages[0].Code
	}
	at[own] = p.links.URL(item)
	for _, v := range item.Versions {
		at[v.Language] = p.links.VersionURL(item, v)
	}
	var set []alternate
	for _, l := range p.links.Languages {
		if loc, there := at[l.Code]; there {
			set = append(set, alternate{hreflang(l.Code), loc})
		}
	}
	if loc, there := at[p.links.Languages[0].Code]; there {
		set = append(set, alternate{"x-default", loc})
	}
	return set
}

// hreflang turns the CMS's code into a language tag: en_US → en-US (RFC 5646).
func hreflang(code string) string {
	b := []byte(code)
	for i, c := range b {
		if c == '_' {
			b[i] = '-'
		}
	}
	return string(b)
}

// extensions are the namespaces that the options need.
func (p *plan) extensions() []string {
	var list []string
	for _, x := range []struct {
		on bool
		ns string
	}{{p.options.Alternates && len(p.links.Languages) > 1, nsXHTML}, {p.options.Images, nsImage},
		{p.options.News, nsNews}, {p.options.Videos, nsVideo}} {
		if x.on {
			list = append(list, x.ns)
		}
	}
	return list
}

const (
	// maxVideos of one item are listed.
	maxVideos = 20
	// The limits of Google's video sitemaps, in characters.
	maxVideoTitle       = 100
	maxVideoDescription = 2048
)

// videosOf lists the videos that an item shows, in their order and each once. One
// without a picture is left out: search engines refuse it.
func videosOf(item *cms.Item, root string, media func(string) string) (list []video.Video) {
	base, err := url.Parse(root + "/")
	if err != nil || item.Title == "" {
		return nil
	}
	picture := ""
	if item.Image != "" {
		picture = media(item.Image)
	}
	known := map[string]bool{}
	add := func(source, poster string) {
		v := video.At(base, source)
		v.Thumbnail = cmp.Or(v.Thumbnail, video.Absolute(base, poster), picture)
		at := cmp.Or(v.Player, v.Content)
		if at == "" || known[at] || len(list) == maxVideos || badURL(at) != "" || badURL(v.Thumbnail) != "" {
			return
		}
		known[at] = true
		v.Title = firstRunes(item.Title, maxVideoTitle)
		v.Description = firstRunes(cmp.Or(strings.TrimSpace(item.Summary), item.Title), maxVideoDescription)
		list = append(list, v)
	}
	video.InMarkup(item.Content, add)
	return list
}

func firstRunes(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}
