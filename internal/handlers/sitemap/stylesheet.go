package sitemap

import (
	_ "embed" // the style sheet is part of the program
	"net/url"
)

//go:embed sitemap.xsl
var stylesheet []byte

const stylesheetName = "sitemap.xsl"

// stylesheet is its address as files of the map name it: a path, as browsers
// apply style sheets of the same origin only.
func (p *plan) stylesheet() string {
	if !p.options.Stylesheet {
		return ""
	}
	root, err := url.Parse(p.links.Root)
	if err != nil {
		return "/" + stylesheetName
	}
	return root.EscapedPath() + "/" + stylesheetName
}
