package sitemap

import (
	"io"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap/video"
)

// entry is one <url> of a sitemap.
type entry struct {
	loc        string
	modified   time.Time // zero: unknown
	frequency  string
	priority   string // "0.8"; "" leaves it out
	alternates []alternate
	images     []string
	news       *news
	videos     []video.Video
	title      string // of content, where llms.txt is asked for
	post       string // the id of the post whose page it is, "" of another
}

// alternate is the same content in a language; "x-default" is for readers of
// any other.
type alternate struct{ language, loc string }

// news is what search engines' news services want to know of a fresh post.
type news struct {
	publication, language, title string
	published                    time.Time
}

// The limits of sitemaps.org: a file, and an address.
const (
	maxURLs  = 50_000
	maxBytes = 50 << 20
	maxLoc   = 2047
)

// marker is in each file of ours. Only files that carry it are ever removed.
const marker = "<!-- made by cmsjobs -->"

const (
	xmlHeader = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	footer    = "</urlset>\n"
	nsSitemap = "http://www.sitemaps.org/schemas/sitemap/0.9"
	nsXHTML   = "http://www.w3.org/1999/xhtml"
	nsImage   = "http://www.google.com/schemas/sitemap-image/1.1"
	nsVideo   = "http://www.google.com/schemas/sitemap-video/1.1"
	nsNews    = "http://www.google.com/schemas/sitemap-news/0.9"
)

// prefixes are the usual names of the extensions' elements.
var prefixes = map[string]string{nsXHTML: "xhtml", nsImage: "image", nsNews: "news", nsVideo: "video"}

// header begins a file; stylesheet is the address of its XSL, or "".
func header(stylesheet string, extensions ...string) string {
	var b strings.Builder
	b.WriteString(xmlHeader + preamble(stylesheet) + `<urlset xmlns="` + nsSitemap + `"`)
	for _, ns := range extensions {
		b.WriteString(` xmlns:` + prefixes[ns] + `="` + ns + `"`)
	}
	b.WriteString(">\n")
	return b.String()
}

// preamble is what stands between the XML declaration and the root element.
func preamble(stylesheet string) string {
	if stylesheet == "" {
		return marker + "\n"
	}
	return string(appendXML([]byte(`<?xml-stylesheet type="text/xsl" href="`), stylesheet)) + `"?>` + "\n" + marker +
		"\n"
}

// appendEntry writes one <url>, its elements in the schema's order.
func appendEntry(b []byte, e *entry) []byte {
	b = append(b, "<url><loc>"...)
	b = appendXML(b, e.loc)
	b = append(b, "</loc>"...)
	if !e.modified.IsZero() {
		b = append(b, "<lastmod>"...)
		b = appendTime(b, e.modified)
		b = append(b, "</lastmod>"...)
	}
	if e.frequency != "" {
		b = append(append(append(b, "<changefreq>"...), e.frequency...), "</changefreq>"...)
	}
	if e.priority != "" {
		b = append(append(append(b, "<priority>"...), e.priority...), "</priority>"...)
	}
	for _, a := range e.alternates {
		b = appendXML(append(b, `<xhtml:link rel="alternate" hreflang="`...), a.language)
		b = appendXML(append(b, `" href="`...), a.loc)
		b = append(b, `"/>`...)
	}
	if e.news != nil {
		b = appendNews(b, e.news)
	}
	for _, image := range e.images {
		b = append(appendXML(append(b, "<image:image><image:loc>"...), image), "</image:loc></image:image>"...)
	}
	for i := range e.videos {
		b = appendVideo(b, &e.videos[i])
	}
	return append(b, "</url>\n"...)
}

func appendNews(b []byte, n *news) []byte {
	b = appendXML(append(b, "<news:news><news:publication><news:name>"...), n.publication)
	b = appendXML(append(b, "</news:name><news:language>"...), n.language)
	b = appendTime(append(b, "</news:language></news:publication><news:publication_date>"...), n.published)
	b = appendXML(append(b, "</news:publication_date><news:title>"...), n.title)
	return append(b, "</news:title></news:news>"...)
}

// appendTime writes W3C date and time, as the CMS does:
// 2026-11-21T05:00:00+00:00. time.AppendFormat takes four times as long.
func appendTime(b []byte, t time.Time) []byte {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	_, offset := t.Zone()
	sign := byte('+')
	if offset < 0 {
		sign, offset = '-', -offset
	}
	text := [...]byte{tens(year / 100), ones(year / 100), tens(year % 100), ones(year % 100), '-',
		tens(int(month)), ones(int(month)), '-', tens(day), ones(day), 'T',
		tens(hour), ones(hour), ':', tens(minute), ones(minute), ':', tens(second), ones(second),
		sign, tens(offset / 3600), ones(offset / 3600), ':', tens(offset % 3600 / 60), ones(offset % 3600 / 60)}
	return append(b, text[:]...)
}

// tens and ones are the digits of a number below 100.
func tens(n int) byte { return byte('0' + uint(n)/10) }
func ones(n int) byte { return byte('0' + uint(n)%10) }

// appendXML escapes text for content and attributes. Characters that XML
// cannot hold become U+FFFD, as encoding/xml has it.
func appendXML(b []byte, text string) []byte {
	if plainXML(text) {
		return append(b, text...)
	}
	start := 0
	for i, r := range text {
		var escape string
		switch {
		case r == '&':
			escape = "&amp;"
		case r == '<':
			escape = "&lt;"
		case r == '>':
			escape = "&gt;"
		case r == '"':
			escape = "&quot;"
		case r == '\'':
			escape = "&apos;"
		case r == 0xFFFD || r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF:
			escape = "\uFFFD"
		default:
			continue
		}
		b = append(append(b, text[start:i]...), escape...)
		start = i + width(text[i:], r)
	}
	return append(b, text[start:]...)
}

// plainXML says that text stands in XML as it is, as nearly all addresses do. It asks
// once for eight bytes.
func plainXML(text string) bool {
	for ; len(text) >= 8; text = text[8:] {
		if special[text[0]]|special[text[1]]|special[text[2]]|special[text[3]]|
			special[text[4]]|special[text[5]]|special[text[6]]|special[text[7]] != 0 {
			return false
		}
	}
	for i := range len(text) {
		if special[text[i]] != 0 {
			return false
		}
	}
	return true
}

// special has 0 for the printable ASCII characters that XML has no use for.
var special = func() (set [256]byte) {
	for c := range set {
		if c < ' ' || c > '~' || strings.ContainsRune(`&<>"'`, rune(c)) {
			set[c] = 1
		}
	}
	return set
}()

// width is how many bytes a range over text took for r: one for a byte that is
// no UTF-8.
func width(text string, r rune) int {
	if r != 0xFFFD || strings.HasPrefix(text, "\uFFFD") {
		return len(string(r))
	}
	return 1
}

func zipped(name string) bool { return strings.HasSuffix(name, ".gz") }

func gunzip(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }

// appendVideo writes a video's elements in the order of its schema.
func appendVideo(b []byte, v *video.Video) []byte {
	b = appendXML(append(b, "<video:video><video:thumbnail_loc>"...), v.Thumbnail)
	b = appendXML(append(b, "</video:thumbnail_loc><video:title>"...), v.Title)
	b = appendXML(append(b, "</video:title><video:description>"...), v.Description)
	b = append(b, "</video:description>"...)
	if v.Content != "" {
		b = append(appendXML(append(b, "<video:content_loc>"...), v.Content), "</video:content_loc>"...)
	}
	if v.Player != "" {
		b = append(appendXML(append(b, "<video:player_loc>"...), v.Player), "</video:player_loc>"...)
	}
	return append(b, "</video:video>"...)
}
