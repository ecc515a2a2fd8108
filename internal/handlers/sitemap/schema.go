package sitemap

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The rules of sitemaps.org's sitemap.xsd and siteindex.xsd (2008-03-26) and
// of the extensions that we write, checked without a schema processor.

// listed is one entry as it was read back.
type listed struct {
	loc        string
	modified   time.Time // zero: none
	alternates []alternate
	images     int
}

// inspector reads a document of either type.
type inspector struct {
	// entry gets each <url> or <sitemap>; problem each breach of the rules.
	entry   func(listed)
	problem func(line int, text string)

	index   bool // a <sitemapindex>
	entries int
	line    int
}

// node is any element.
type node struct {
	Name     xml.Name   `xml:"-"`
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []node     `xml:",any"`
	Text     string     `xml:",chardata"`
}

// UnmarshalXML keeps the name, which a field tag cannot for any element.
func (n *node) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	type plain node
	n.Name = start.Name
	return d.DecodeElement((*plain)(n), &start)
}

func (in *inspector) fault(text string, args ...any) { in.problem(in.line, fmt.Sprintf(text, args...)) }

// read checks one document. The error is of reading it, or that it is no XML.
func (in *inspector) read(r io.Reader) error {
	d := xml.NewDecoder(r)
	root, err := in.root(d)
	if err != nil {
		return err
	}
	if root.Name.Space != nsSitemap || root.Name.Local != "urlset" && root.Name.Local != "sitemapindex" {
		in.fault("the root element is %s in the namespace %q; urlset or sitemapindex in %q is meant", root.Name.Local,
			root.Name.Space, nsSitemap)
		return nil
	}
	in.index = root.Name.Local == "sitemapindex"
	for {
		token, err := d.Token()
		in.line, _ = d.InputPos()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := in.child(d, token); err != nil {
			return err
		}
	}
	if in.entries == 0 {
		in.fault("there is no entry; the schema wants at least one")
	}
	if in.entries > maxURLs {
		in.fault("there are %d entries; at most %d are allowed", in.entries, maxURLs)
	}
	return nil
}

// root skips what may stand before the root element.
func (in *inspector) root(d *xml.Decoder) (xml.StartElement, error) {
	for {
		token, err := d.Token()
		in.line, _ = d.InputPos()
		if err != nil {
			return xml.StartElement{}, fmt.Errorf("it is no XML: %w", err)
		}
		if start, ok := token.(xml.StartElement); ok {
			return start, nil
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			return xml.StartElement{}, errors.New("it is no XML: text stands before the root element")
		}
	}
}

func (in *inspector) child(d *xml.Decoder, token xml.Token) error {
	switch t := token.(type) {
	case xml.CharData:
		if strings.TrimSpace(string(t)) != "" {
			in.fault("text %.40q stands between elements", strings.TrimSpace(string(t)))
		}
	case xml.StartElement:
		var n node
		if err := d.DecodeElement(&n, &t); err != nil {
			return err
		}
		n.Name = t.Name
		in.element(&n)
	}
	return nil
}

func (in *inspector) element(n *node) {
	want := "url"
	if in.index {
		want = "sitemap"
	}
	if n.Name.Space != nsSitemap || n.Name.Local != want {
		if n.Name.Space == nsSitemap || in.entries > 0 {
			in.fault("<%s> stands where <%s> is meant", n.Name.Local, want)
		}
		return
	}
	in.entries++
	allowed := []string{"loc", "lastmod", "changefreq", "priority"}
	if in.index {
		allowed = allowed[:2]
	}
	e, at := listed{}, -1
	for i := range n.Children {
		c := &n.Children[i]
		if c.Name.Space != nsSitemap {
			at = len(allowed) // nothing of the schema's own may follow
			in.extension(c, &e)
			continue
		}
		position := slices.Index(allowed, c.Name.Local)
		switch {
		case position < 0:
			in.fault("<%s> is not known in <%s>", c.Name.Local, want)
		case position <= at:
			in.fault("<%s> stands too late or twice: the order is %s, then extensions", c.Name.Local,
				strings.Join(allowed, ", "))
		}
		at = max(at, position)
		in.value(c, &e)
	}
	if e.loc == "" {
		in.fault("<%s> without <loc>", want)
	}
	in.entry(e)
}

var (
	frequencies = []string{"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"}
	decimal     = regexp.MustCompile(`^[+-]?(\d+(\.\d*)?|\.\d+)$`)
	languageTag = regexp.MustCompile(`^(x-default|[A-Za-z]{2,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|\d{3}))?)$`)
)

func (in *inspector) value(c *node, e *listed) {
	text := strings.TrimSpace(c.Text)
	if len(c.Children) > 0 {
		in.fault("<%s> has elements inside", c.Name.Local)
	}
	switch c.Name.Local {
	case "loc":
		e.loc = text
		if reason := badURL(text); reason != "" {
			in.fault("loc %.200q %s", text, reason)
		}
		if n := utf8.RuneCountInString(text); n < 12 || n > 2048 {
			in.fault("loc %.60q has %d characters; 12 to 2,048 are allowed", text, n)
		}
	case "lastmod":
		var ok bool
		if e.modified, ok = parseW3C(text); !ok {
			in.fault("lastmod %q is neither a date nor a date and time", text)
		}
	case "changefreq":
		if !slices.Contains(frequencies, text) {
			in.fault("changefreq %q is none of %s", text, strings.Join(frequencies, ", "))
		}
	case "priority":
		if v, err := strconv.ParseFloat(text, 64); err != nil || !decimal.MatchString(text) || v < 0 || v > 1 {
			in.fault("priority %q is no number from 0.0 to 1.0", text)
		}
	}
}

// extension checks what we write beside the schema's own elements.
func (in *inspector) extension(c *node, e *listed) {
	switch {
	case in.index:
		in.fault("<%s> is not known in an index", c.Name.Local)
	case c.Name.Space == nsXHTML && c.Name.Local == "link":
		e.alternates = append(e.alternates, in.alternate(c))
	case c.Name.Space == nsImage && c.Name.Local == "image":
		e.images++
		if len(c.Children) == 0 || c.Children[0].Name.Local != "loc" ||
			badURL(strings.TrimSpace(c.Children[0].Text)) != "" {
			in.fault("an image without an address")
		}
		if e.images > 1000 {
			in.fault("more than 1,000 images in one entry")
		}
	case c.Name.Space == nsNews && c.Name.Local == "news":
		in.news(c)
	case c.Name.Space == nsVideo && c.Name.Local == "video":
		in.video(c)
	default:
		in.fault("the extension %s in %q is not known", c.Name.Local, c.Name.Space)
	}
}

// alternate reads a link to the same page in another language.
func (in *inspector) alternate(c *node) alternate {
	a := map[string]string{}
	for _, attr := range c.Attrs {
		a[attr.Name.Local] = attr.Value
	}
	if a["rel"] != "alternate" || !languageTag.MatchString(a["hreflang"]) || badURL(a["href"]) != "" {
		in.fault("the alternate %v is not complete: rel, hreflang and href are needed", a)
	}
	return alternate{a["hreflang"], a["href"]}
}

func (in *inspector) news(c *node) {
	have := map[string]string{}
	for _, child := range c.Children {
		have[child.Name.Local] = strings.TrimSpace(child.Text)
		for _, inner := range child.Children {
			have[inner.Name.Local] = strings.TrimSpace(inner.Text)
		}
	}
	for _, name := range []string{"name", "language", "publication_date", "title"} {
		if have[name] == "" {
			in.fault("news without %s", name)
		}
	}
	if _, ok := parseW3C(have["publication_date"]); !ok {
		in.fault("the news date %q is no date", have["publication_date"])
	}
}

func (in *inspector) video(c *node) {
	have := map[string]string{}
	for _, child := range c.Children {
		have[child.Name.Local] = strings.TrimSpace(child.Text)
	}
	for _, name := range []string{"thumbnail_loc", "title", "description"} {
		if have[name] == "" {
			in.fault("a video without %s", name)
		}
	}
	for _, name := range []string{"thumbnail_loc", "content_loc", "player_loc"} {
		if reason := badURL(have[name]); have[name] != "" && reason != "" {
			in.fault("the %s %q of a video %s", name, have[name], reason)
		}
	}
	if have["content_loc"] == "" && have["player_loc"] == "" {
		in.fault("a video has neither content_loc nor player_loc")
	}
}

// badURL says why text is no absolute http(s) address in RFC 3986's characters.
func badURL(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "is no address"
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "is no absolute http address"
	case strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("<>\"{}|\\^`", r)
	}):
		return "has characters that must be escaped"
	}
	return ""
}

// parseW3C reads what xsd:date and xsd:dateTime allow.
func parseW3C(text string) (time.Time, bool) {
	for _, layout := range []string{"2006-01-02T15:04:05Z07:00", "2006-01-02", "2006-01-02T15:04:05",
		"2006-01-02Z07:00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
