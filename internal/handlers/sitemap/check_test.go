package sitemap_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// checked fails the test unless the published map keeps to the rules and says
// what the CMS says.
func checked(t testing.TB, h *sitemap.Handler) sitemap.Report {
	t.Helper()
	r, err := h.Check(t.Context(), nil)
	if err != nil {
		t.Fatalf("checking: %v", err)
	}
	if !r.OK() || r.Missing+r.Extra+r.Stale > 0 {
		t.Errorf("the map is not as it should be: %+v", r)
	}
	return r
}

const urlset = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml">`

func TestCheckKnowsTheRulesOfSitemapsOrg(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	h := handler(t, site, nil)
	write(t, h, false)
	if r := checked(t, h); r.URLs != 5 || r.Files != 4 {
		t.Errorf("%+v", r)
	}
	const one = "<url><loc>https://cms.example/world&amp;co.html</loc><lastmod>2026-11-01T10:00:00Z</lastmod></url>"
	for name, c := range map[string]struct{ text, says string }{
		"good": {urlset + one + "</urlset>", ""},
		"date without time": {
			urlset + "<url><loc>https://cms.example/x</loc><lastmod>2026-11-01</lastmod></url></urlset>", ""},
		"empty":       {urlset + "</urlset>", "at least one"},
		"no XML":      {"hello", "no XML"},
		"half a file": {urlset + one, "unexpected EOF"},
		"another namespace": {`<urlset xmlns="http://www.google.com/schemas/sitemap/0.84">` + one + "</urlset>",
			"namespace"},
		"another root": {strings.ReplaceAll(urlset+one+"</urlset>", "urlset", "sitemaps"), "root element"},
		"no loc":       {urlset + "<url><priority>0.5</priority></url></urlset>", "without <loc>"},
		"relative":     {urlset + "<url><loc>/relative/address</loc></url></urlset>", "no absolute"},
		"short":        {urlset + "<url><loc>http://a.b</loc></url></urlset>", "12 to 2,048"},
		"long": {urlset + "<url><loc>https://cms.example/" + strings.Repeat("x", 2048) +
			"</loc></url></urlset>", "12 to 2,048"},
		"unescaped": {urlset + "<url><loc>https://cms.example/über uns</loc></url></urlset>",
			"must be escaped"},
		"elsewhere": {urlset + "<url><loc>https://elsewhere.example/x</loc></url></urlset>",
			"not on this site"},
		"lastmod": {
			urlset + "<url><loc>https://cms.example/x</loc><lastmod>yesterday</lastmod></url></urlset>", "lastmod"},
		"database's date": {urlset + "<url><loc>https://cms.example/x</loc><lastmod>2026-11-01 " +
			"10:00:00</lastmod></url></urlset>", "lastmod"},
		"changefreq": {
			urlset + "<url><loc>https://cms.example/x</loc><changefreq>often</changefreq></url></urlset>",
			"changefreq"},
		"priority": {
			urlset + "<url><loc>https://cms.example/x</loc><priority>1.1</priority></url></urlset>", "priority"},
		"priority as a power": {
			urlset + "<url><loc>https://cms.example/x</loc><priority>1e-1</priority></url></urlset>", "priority"},
		"order (the CMS's own)": {
			urlset +
				"<url><loc>https://cms.example/x</loc><priority>0.8</priority><lastmod>2026-11-01</lastmod></url></urlset>", "too late or twice"},
		"twice": {
			urlset + "<url><loc>https://cms.example/x</loc><loc>https://cms.example/x</loc></url></urlset>",
			"too late or twice"},
		"unknown element": {urlset + "<url><loc>https://cms.example/x</loc><title>x</title></url></urlset>",
			"not known"},
		"unknown extension": {urlset + `<url><loc>https://cms.example/x</loc><a xmlns="urn:x"/></url></urlset>`,
			"not known"},
		"text between": {urlset + "x" + one + "</urlset>", "between elements"},
		"not itself": {
			urlset +
				`<url><loc>https://cms.example/x</loc><xhtml:link rel="alternate" hreflang="vi" href="https://cms.example/vi/x"/></url></urlset>`, "do not name itself"},
		"not mutual": {
			urlset +
				`<url><loc>https://cms.example/x</loc><xhtml:link rel="alternate" hreflang="en" href="https://cms.example/x"/><xhtml:link rel="alternate" hreflang="vi" href="https://cms.example/vi/x"/></url><url><loc>https://cms.example/vi/x</loc></url></urlset>`, "is not listed with alternates"},
		"a language that is none": {
			urlset +
				`<url><loc>https://cms.example/x</loc><xhtml:link rel="alternate" hreflang="en_US" href="https://cms.example/x"/></url></urlset>`, "not complete"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(site.Public(), "blog-categories.xml"), []byte(c.text),
				0o644); err != nil {
				t.Fatal(err)
			}
			r, err := h.Check(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, p := range r.Problems {
				texts = append(texts, p.Text)
			}
			if all := strings.Join(texts, "\n"); c.says == "" && !r.OK() || c.says != "" &&
				!strings.Contains(all, c.says) {
				t.Errorf("problems: %q, want %q", all, c.says)
			}
		})
	}
}

func TestCheckComparesWithTheCMS(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	h := handler(t, site, func(c *sitemap.Config) { c.Options.PerFile = 1 })
	write(t, h, false)
	site.DB.MustExec("UPDATE posts SET status = 'published' WHERE id = 4")
	site.DB.MustExec("UPDATE posts SET status = 'draft' WHERE id = 10")
	site.DB.MustExec("UPDATE posts SET updated_at = '2026-11-10 00:00:00' WHERE id = 1")
	if r, err := h.Check(t.Context(), nil); err != nil || r.Missing != 1 || r.Extra != 1 || r.Stale != 1 || !r.OK() {
		t.Errorf("%+v, %v", r, err)
	}
	if err := os.Remove(filepath.Join(site.Public(), "pages-page-2.xml")); err != nil {
		t.Fatal(err)
	}
	if r, err := h.Check(t.Context(), nil); err != nil || r.OK() || r.Problems[0].File != "pages-page-2.xml" {
		t.Errorf("%+v, %v", r, err)
	}
	if err := os.Remove(filepath.Join(site.Public(), "sitemap.xml")); err != nil {
		t.Fatal(err)
	}
	if r, err := h.Check(t.Context(), nil); err != nil || r.OK() || r.Problems[0].Text != "it is not there" {
		t.Errorf("%+v, %v", r, err)
	}
}
