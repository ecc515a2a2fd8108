package sitemap

import (
	"cmp"
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

// video is what search engines want to know of a video on a page. Each has one
// of content, the file, and player, a page that plays it.
type video struct {
	thumbnail, title, description string
	content, player               string
}

const (
	// maxVideos of one item are listed.
	maxVideos = 20
	// The limits of Google's video sitemaps, in characters.
	maxVideoTitle       = 100
	maxVideoDescription = 2048
)

// shortcode is how the CMS's editor names a video: [youtube-video]URL[/youtube-video],
// [media url="URL"][/media], [video url="URL"].
var shortcode = regexp.MustCompile(`\[(?:youtube-video|media|video)(?:\s[^\]]*?url="([^"\]]+)"[^\]]*)?\]` +
	`(?:\s*([^\s\[\]<]+)\s*\[/)?`)

// youTubeID is what YouTube calls a video.
var youTubeID = regexp.MustCompile(`^[A-Za-z0-9_-]{6,20}$`)

// videosOf lists the videos that an item shows, in their order and each once. One
// without a picture is left out: search engines refuse it.
func videosOf(item *cms.Item, root string, media func(string) string) (list []video) {
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
		v := videoAt(base, source)
		v.thumbnail = cmp.Or(v.thumbnail, absolute(base, poster), picture)
		at := cmp.Or(v.player, v.content)
		if at == "" || known[at] || len(list) == maxVideos || badURL(at) != "" || badURL(v.thumbnail) != "" {
			return
		}
		known[at] = true
		v.title = firstRunes(item.Title, maxVideoTitle)
		v.description = firstRunes(cmp.Or(strings.TrimSpace(item.Summary), item.Title), maxVideoDescription)
		list = append(list, v)
	}
	inMarkup(item.Content, add)
	return list
}

// inMarkup gives found each address of a video in an editor's HTML, with the picture
// that it names for it. It reads any bytes.
func inMarkup(content string, found func(source, poster string)) {
	poster := ""
	for tokens := html.NewTokenizer(strings.NewReader(content)); ; {
		switch tokens.Next() {
		case html.ErrorToken:
			return // the end, or as far as it can be read
		case html.TextToken:
			for _, m := range shortcode.FindAllStringSubmatch(string(tokens.Text()), -1) {
				found(html.UnescapeString(cmp.Or(m[1], m[2])), "")
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			switch t := tokens.Token(); t.Data {
			case "iframe":
				found(attribute(t, "src"), "")
			case "video":
				poster = attribute(t, "poster")
				found(attribute(t, "src"), poster)
			case "source":
				found(attribute(t, "src"), poster)
			}
		case html.EndTagToken:
			if name, _ := tokens.TagName(); string(name) == "video" {
				poster = ""
			}
		}
	}
}

// videoAt knows YouTube's addresses and files of videos; all else is none.
func videoAt(base *url.URL, source string) video {
	at, err := base.Parse(strings.TrimSpace(source))
	if source == "" || err != nil || at.Scheme != "https" && at.Scheme != "http" || at.User != nil {
		return video{}
	}
	if id := youTube(at); id != "" {
		return video{player: "https://www.youtube.com/embed/" + id,
			thumbnail: "https://i.ytimg.com/vi/" + id + "/hqdefault.jpg"}
	}
	switch strings.ToLower(path.Ext(at.Path)) {
	case ".mp4", ".m4v", ".webm", ".ogv", ".mov", ".mpeg", ".mpg":
		return video{content: at.String()}
	}
	return video{}
}

// youTube is the video's id in an address of YouTube's, or "".
func youTube(at *url.URL) string {
	id := ""
	switch strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(at.Host), "www."), "m.") {
	case "youtu.be":
		id = strings.TrimPrefix(at.Path, "/")
	case "youtube.com", "youtube-nocookie.com":
		if at.Path == "/watch" {
			id = at.Query().Get("v")
			break
		}
		for _, prefix := range []string{"/embed/", "/shorts/", "/live/"} {
			if rest, is := strings.CutPrefix(at.Path, prefix); is {
				id = rest
			}
		}
	}
	if !youTubeID.MatchString(id) || id == "videoseries" { // a list, not a video
		return ""
	}
	return id
}

func absolute(base *url.URL, ref string) string {
	if ref == "" {
		return ""
	}
	at, err := base.Parse(ref)
	if err != nil || at.Scheme != "https" && at.Scheme != "http" {
		return ""
	}
	return at.String()
}

func attribute(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return strings.TrimSpace(a.Val)
		}
	}
	return ""
}

func firstRunes(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// appendVideo writes a video's elements in the order of its schema.
func appendVideo(b []byte, v *video) []byte {
	b = appendXML(append(b, "<video:video><video:thumbnail_loc>"...), v.thumbnail)
	b = appendXML(append(b, "</video:thumbnail_loc><video:title>"...), v.title)
	b = appendXML(append(b, "</video:title><video:description>"...), v.description)
	b = append(b, "</video:description>"...)
	if v.content != "" {
		b = append(appendXML(append(b, "<video:content_loc>"...), v.content), "</video:content_loc>"...)
	}
	if v.player != "" {
		b = append(appendXML(append(b, "<video:player_loc>"...), v.player), "</video:player_loc>"...)
	}
	return append(b, "</video:video>"...)
}
