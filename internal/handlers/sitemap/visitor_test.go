package sitemap

import (
	"os"
	"regexp"
	"testing"
)

// The nginx example in docs/sitemap.md passes on every file that a visitor or a search
// engine asks for, and nothing else of the site.
func TestTheDocumentedProxyPassesEveryFile(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/sitemap.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^location ~ (\S+) \{$`).FindSubmatch(doc)
	if m == nil {
		t.Fatal("docs/sitemap.md has no example for nginx")
	}
	location := regexp.MustCompile(string(m[1]))
	for _, name := range []string{
		"sitemap.xml", "sitemap.xml.gz", "sitemap.xsl", "pages.xml", "pages-page-2.xml", "galleries.xml",
		"galleries-page-1.xml", "galleries-page-12.xml.gz",
		"blog-posts.xml", "blog-posts-page-3.xml", "blog-categories-page-1.xml", "blog-tags.xml.gz",
		"sitemap-pages.xml", "sitemap-posts-page-2.xml",
	} {
		if !location.MatchString("/" + name) {
			t.Errorf("%s is not passed on", name)
		}
	}
	for _, name := range []string{"index.php", "sitemap.xml.php", "a/sitemap.xml", "pages.html", "pagesxml",
		"robots.txt"} {
		if location.MatchString("/" + name) {
			t.Errorf("%s is passed on", name)
		}
	}
}
