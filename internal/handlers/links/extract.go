package links

import (
	"io"
	"net/url"
	"strings"

	"golang.org/x/net/html"

	"github.com/cmsjobs/cmsjobs/internal/markup"
)

// maxLinks bounds how many links of a page are followed.
const maxLinks = 5000

// link is a place that a page names: another page, or a file that it needs.
type link struct {
	to   *url.URL
	file bool
}

// named are the attributes that name an address, by element; file says that it is no page.
var named = map[string]struct {
	attribute string
	file      bool
}{
	"a": {"href", false}, "area": {"href", false}, "iframe": {"src", false},
	"img": {"src", true}, "script": {"src", true}, "source": {"src", true}, "video": {"src", true},
	"audio": {"src", true}, "link": {"href", true},
}

// extract lists the links of a page at an address. What cannot be read as an address is
// left out: a browser shows no link either. It reads any bytes.
func extract(page io.Reader, at *url.URL) (list []link) {
	base := at
	for tokens := html.NewTokenizer(page); len(list) < maxLinks; {
		switch tokens.Next() {
		case html.ErrorToken:
			return list // the end, or as far as the page can be read
		case html.StartTagToken, html.SelfClosingTagToken:
			token := tokens.Token()
			if token.Data == "base" {
				if to := resolve(at, strings.TrimSpace(markup.Attribute(token, "href"))); to != nil {
					base = to
				}
				continue
			}
			element, names := named[token.Data]
			if !names || token.Data == "link" && !needed(strings.TrimSpace(markup.Attribute(token, "rel"))) {
				continue
			}
			if to := resolve(base, strings.TrimSpace(markup.Attribute(token, element.attribute))); to != nil {
				list = append(list, link{to, element.file})
			}
		}
	}
	return list
}

// needed says whether a page needs what a link element names. Feeds and alternates are
// asked for too; a preconnect names no file.
func needed(rel string) bool {
	switch strings.ToLower(strings.TrimSpace(rel)) {
	case "stylesheet", "icon", "shortcut icon", "apple-touch-icon", "manifest", "alternate", "canonical", "next",
		"prev", "preload", "modulepreload":
		return true
	}
	return false
}

// resolve is the address that a page means, without its fragment; nil where it is none that
// is asked for over HTTP.
func resolve(base *url.URL, ref string) *url.URL {
	if ref == "" || strings.HasPrefix(ref, "#") {
		return nil
	}
	to, err := base.Parse(ref)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return nil
	}
	to.Fragment, to.RawFragment, to.User = "", "", nil
	if to.Path == "" {
		to.Path = "/"
	}
	return to
}
