package video

import (
	"cmp"
	"net/url"
	"path"
	"regexp"
	"strings"

	"golang.org/x/net/html"

	"github.com/cmsjobs/cmsjobs/internal/markup"
)

// Video is what search engines want to know of a video on a page. Each has one
// of Content, the file, and Player, a page that plays it.
type Video struct {
	Thumbnail, Title, Description string
	Content, Player               string
}

// shortcode is how the CMS's editor names a video: [youtube-video]URL[/youtube-video],
// [media url="URL"][/media], [video url="URL"].
var shortcode = regexp.MustCompile(`\[(?:youtube-video|media|video)(?:\s[^\]]*?url="([^"\]]+)"[^\]]*)?\]` +
	`(?:\s*([^\s\[\]<]+)\s*\[/)?`)

// youTubeID is what YouTube calls a video.
var youTubeID = regexp.MustCompile(`^[A-Za-z0-9_-]{6,20}$`)

// InMarkup gives found each address of a video in an editor's HTML, with the picture
// that it names for it. It reads any bytes.
func InMarkup(content string, found func(source, poster string)) {
	poster := ""
	for tokens := html.NewTokenizer(strings.NewReader(content)); ; {
		switch tokens.Next() {
		case html.ErrorToken:
			return // the end, or as far as it can be read
		case html.TextToken:
			for _, m := range shortcode.FindAllStringSubmatch(string(tokens.Text()), -1) {
				found(cmp.Or(m[1], m[2]), "")
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			switch t := tokens.Token(); t.Data {
			case "iframe":
				found(markup.Attribute(t, "src"), "")
			case "video":
				poster = markup.Attribute(t, "poster")
				found(markup.Attribute(t, "src"), poster)
			case "source":
				found(markup.Attribute(t, "src"), poster)
			}
		case html.EndTagToken:
			if name, _ := tokens.TagName(); string(name) == "video" {
				poster = ""
			}
		}
	}
}

// At is the video at an address: YouTube's and files of videos are known. All else is
// none, without Content and Player. A Title and a Description are the caller's to give.
func At(base *url.URL, source string) Video {
	source = strings.TrimSpace(source)
	at, err := base.Parse(source)
	if source == "" || err != nil || at.Scheme != "https" && at.Scheme != "http" || at.User != nil {
		return Video{}
	}
	if id := youTube(at); id != "" {
		return Video{Player: "https://www.youtube.com/embed/" + id,
			Thumbnail: "https://i.ytimg.com/vi/" + id + "/hqdefault.jpg"}
	}
	switch strings.ToLower(path.Ext(at.Path)) {
	case ".mp4", ".m4v", ".webm", ".ogv", ".mov", ".mpeg", ".mpg":
		return Video{Content: at.String()}
	}
	return Video{}
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

// Absolute is an address of a page as one of the web; "" where it is none.
func Absolute(base *url.URL, ref string) string {
	if ref = strings.TrimSpace(ref); ref == "" {
		return ""
	}
	at, err := base.Parse(ref)
	if err != nil || at.Scheme != "https" && at.Scheme != "http" {
		return ""
	}
	return at.String()
}
