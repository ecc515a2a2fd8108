package sitemap_test

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	xmlsitemap "github.com/snabb/sitemap"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// noon is when the tests run: after every date in the dumps.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// realCMS is a real CMS's dump in a database, with our tables beside it.
func realCMS(t testing.TB, engine jobstest.Engine, dump string) *cms.Site {
	t.Helper()
	text, err := os.ReadFile(jobstest.Fixture(t, dump))
	if err != nil {
		t.Fatal(err)
	}
	db := jobstest.Migrated(t, engine)
	if _, err := db.Exec(string(text)); err != nil {
		t.Fatalf("loading %s: %v", dump, err)
	}
	return siteAt(t, db)
}

// siteAt is a CMS with a public folder and the address https://cms.example.
func siteAt(t testing.TB, db *jobstest.Database) *cms.Site {
	t.Helper()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "public"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &cms.Site{DB: db.DB, Root: root, Env: cms.Env{"APP_URL": "https://cms.example"}}
}

// handler makes a Handler for a site; change may adapt its configuration.
func handler(t testing.TB, site *cms.Site, change func(*sitemap.Config)) *sitemap.Handler {
	t.Helper()
	c := sitemap.Config{Site: site, DB: site.DB, Options: sitemap.Options{Profile: "specification", Naming: "auto",
		Alternates: true, Stylesheet: true}, Now: func() time.Time { return noon },
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if change != nil {
		change(&c)
	}
	h, err := sitemap.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// write runs the job's work and fails the test on an error.
func write(t testing.TB, h *sitemap.Handler, force bool) sitemap.Result {
	t.Helper()
	result, err := h.Write(t.Context(), force, nil)
	if err != nil {
		t.Fatalf("writing the sitemap: %v", err)
	}
	return result
}

// readURLs reads one file of the map back with snabb/sitemap.
func readURLs(t testing.TB, site *cms.Site, name string) []*xmlsitemap.URL {
	t.Helper()
	f, err := os.Open(filepath.Join(site.Public(), name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var set xmlsitemap.Sitemap
	if _, err := set.ReadFrom(f); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return set.URLs
}

// readIndex reads the index back with snabb/sitemap: the files it names.
func readIndex(t testing.TB, site *cms.Site) []string {
	t.Helper()
	f, err := os.Open(filepath.Join(site.Public(), "sitemap.xml"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var index xmlsitemap.SitemapIndex
	if _, err := index.ReadFrom(f); err != nil {
		t.Fatalf("the index: %v", err)
	}
	var list []string
	for _, u := range index.URLs {
		list = append(list, u.Loc)
	}
	return list
}

func locs(t testing.TB, site *cms.Site, name string) []string {
	t.Helper()
	var list []string
	for _, u := range readURLs(t, site, name) {
		list = append(list, u.Loc)
	}
	return list
}

// files lists the public folder.
func files(t testing.TB, site *cms.Site) []string {
	t.Helper()
	entries, err := os.ReadDir(site.Public())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func under(root, text string) []string {
	var list []string
	for _, path := range strings.Fields(text) {
		list = append(list, root+path)
	}
	return list
}

func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// What plugins list their items on has no row: the CMS's own sitemap names it, and so does ours, once.
func TestListPagesOfPluginsAreInTheMap(t *testing.T) {
	jobstest.EachMySQL(t, testListPagesOfPluginsAreInTheMap)
}

func testListPagesOfPluginsAreInTheMap(t *testing.T, engine jobstest.Engine) {
	site := realCMS(t, engine, "database.sql")
	const root = "https://cms.example"
	counted := func(file, path string, want int) {
		t.Helper()
		got := 0
		for _, loc := range locs(t, site, file) {
			if loc == root+path {
				got++
			}
		}
		if got != want {
			t.Errorf("%s is %d times in %s, not %d", path, got, file, want)
		}
	}
	plugins := func(list string) {
		t.Helper()
		if _, err := site.DB.Exec("UPDATE settings SET value = ? WHERE `key` = 'activated_plugins'", list); err != nil {
			t.Fatal(err)
		}
		if result := write(t, handler(t, site, nil), false); result.Unchanged != "" {
			t.Errorf("with the plugins %s: %+v", list, result)
		}
		checked(t, handler(t, site, nil))
	}
	plugins(`["gallery","blog","ecommerce"]`)
	counted("pages.xml", "/galleries", 1) // a page of the CMS has the address
	counted("galleries.xml", "/galleries", 0)
	counted("pages.xml", "/products", 1)
	if _, err := site.DB.Exec("UPDATE slugs SET `key` = 'pictures' WHERE `key` = 'galleries'"); err != nil {
		t.Fatal(err)
	}
	if _, err := site.DB.Exec("INSERT INTO settings (`key`, value) VALUES " +
		"('permalink-botble-ecommerce-models-product', 'shop/%%year%%')"); err != nil {
		t.Fatal(err)
	}
	plugins(`["gallery","ecommerce","blog"]`)
	counted("pages.xml", "/pictures", 1)
	counted("galleries.xml", "/galleries", 1)
	year := time.Now().Format("/shop/2006")
	counted("pages.xml", year, 1)
	counted("pages.xml", "/products", 0)
	for _, u := range readURLs(t, site, "galleries.xml") {
		if u.Loc == root+"/galleries" && (u.Priority != 0.8 || u.ChangeFreq != "weekly" || u.LastMod != nil) {
			t.Errorf("the list page of galleries is %+v", u)
		}
	}
	plugins(`["blog"]`)
	counted("galleries.xml", "/galleries", 0)
	counted("pages.xml", year, 0)
}

// The lists below were written from the dumps by hand, by the CMS's rules: the
// homepage is the root without a slash, a page, post or category without a
// prefix is at /key, tags are at /tag/key, galleries at /galleries/key.
func TestEverythingPublicOfARealCMSIsInTheMap(t *testing.T) {
	jobstest.EachMySQL(t, testEverythingPublicOfARealCMSIsInTheMap)
}

func testEverythingPublicOfARealCMSIsInTheMap(t *testing.T, engine jobstest.Engine) {
	site := realCMS(t, engine, "database.sql")
	result := write(t, handler(t, site, nil), false)
	const root = "https://cms.example"
	same(t, "files", files(t, site), strings.Fields("sitemap.xml sitemap.xsl pages.xml blog-posts.xml "+
		"blog-categories.xml blog-tags.xml galleries.xml"))
	same(t, "index", readIndex(t, site), under(root, "/pages.xml /blog-posts.xml /blog-categories.xml /blog-tags.xml "+
		"/galleries.xml"))
	same(t, "pages", locs(t, site, "pages.xml"), append(under(root, "/blog /contact /cookie-policy /galleries"), root))
	same(t, "categories", locs(t, site, "blog-categories.xml"),
		under(root, `/artificial-intelligence /cybersecurity /blockchain-technology
		/5g-and-connectivity /augmented-reality-ar /green-technology /quantum-computing /edge-computing`))
	same(t, "tags", locs(t, site, "blog-tags.xml"),
		under(root, `/tag/ai /tag/machine-learning /tag/neural-networks /tag/data-security
		/tag/blockchain /tag/cryptocurrency /tag/iot /tag/ar-gaming`))
	same(t, "galleries", locs(t, site, "galleries.xml"),
		under(root, `/galleries/sunset /galleries/ocean-views /galleries/adventure-time
		/galleries/city-lights /galleries/dreamscape /galleries/enchanted-forest /galleries/golden-hour /galleries/serenity
		/galleries/eternal-beauty /galleries/moonlight-magic /galleries/starry-night /galleries/hidden-gems /galleries/tranquil-waters
		/galleries/urban-escape /galleries/twilight-zone`))
	same(t, "posts", locs(t, site, "blog-posts.xml"),
		under(root, `/breakthrough-in-quantum-computing-computing-power-reaches-milestone
		/5g-rollout-accelerates-next-gen-connectivity-transforms-communication /tech-giants-collaborate-on-open-source-ai-framework
		/spacex-launches-mission-to-establish-first-human-colony-on-mars /cybersecurity-advances-new-protocols-bolster-digital-defense
		/artificial-intelligence-in-healthcare-transformative-solutions-for-patient-care /robotic-innovations-autonomous-systems-reshape-industries
		/virtual-reality-breakthrough-immersive-experiences-redefine-entertainment /innovative-wearables-track-health-metrics-and-enhance-well-being
		/tech-for-good-startups-develop-solutions-for-social-and-environmental-issues /ai-powered-personal-assistants-evolve-enhancing-productivity-and-convenience
		/blockchain-innovation-decentralized-finance-defi-reshapes-finance-industry /quantum-internet-secure-communication-enters-a-new-era
		/drone-technology-advances-applications-expand-across-industries /biotechnology-breakthrough-crispr-cas9-enables-precision-gene-editing
		/augmented-reality-in-education-interactive-learning-experiences-for-students /ai-in-autonomous-vehicles-advancements-in-self-driving-car-technology
		/green-tech-innovations-sustainable-solutions-for-a-greener-future /space-tourism-soars-commercial-companies-make-strides-in-space-travel
		/humanoid-robots-in-everyday-life-ai-companions-and-assistants`))
	if result.URLs != 5+20+8+8+15 || result.SkippedRows != 0 {
		t.Errorf("result %+v", result)
	}
	post := readURLs(t, site, "blog-posts.xml")[0]
	if post.Priority != 0.7 || post.ChangeFreq != "daily" || post.LastMod == nil ||
		post.LastMod.Format(time.RFC3339) != "2024-10-13T17:05:07Z" {
		t.Errorf("post %+v, %v", post, post.LastMod)
	}
	if tag := readURLs(t, site, "blog-tags.xml")[0]; tag.Priority != 0.3 || tag.ChangeFreq != "weekly" {
		t.Errorf("tag %+v", tag)
	}
	checked(t, handler(t, site, nil))
	if again := write(t, handler(t, site, nil), false); again.Unchanged == "" {
		t.Errorf("the second run wrote again: %+v", again)
	}
}

// In this dump posts have the prefix "news", a job offer has none of the CMS's
// own models, and the theme's homepage is page 1.
func TestARealShopOfTheNewestVersion(t *testing.T) {
	jobstest.EachMySQL(t, testARealShopOfTheNewestVersion)
}

func testARealShopOfTheNewestVersion(t *testing.T, engine jobstest.Engine) {
	site := realCMS(t, engine, "database-core-7.6.8.sql")
	h := handler(t, site, func(c *sitemap.Config) {
		c.Options.Profile = "botble"
		c.Options.Models = []cms.Model{{Name: "careers", Class: `ArchiElite\Career\Models\Career`}}
	})
	write(t, h, false)
	checked(t, h)
	const root = "https://cms.example"
	same(t, "pages", locs(t, site, "pages.xml"),
		append(under(root, `/homepage-2 /homepage-3 /homepage-4 /homepage-5 /blog /contact-us /our-services /faqs
		/about-us /pricing-plans /privacy-policy /coming-soon /properties /projects /cookie-policy`), root))
	same(t, "categories", locs(t, site, "blog-categories.xml"),
		under(root+"/news", `/buying-a-home /selling-a-home /market-trends /home-improvement
		/real-estate-investing /neighborhood-guides`))
	same(t, "tags", locs(t, site, "blog-tags.xml"),
		under(root+"/tag", `/tips /investing /market-analysis /diy /luxury-homes /first-time-buyers
		/property-management /renovation`))
	same(t, "posts", locs(t, site, "blog-posts.xml"),
		under(root+"/news", `/top-10-tips-for-first-time-home-buyers /how-to-stage-your-home-for-a-quick-sale
		/understanding-the-current-real-estate-market-trends /diy-home-improvement-projects-that-add-value /a-beginners-guide-to-real-estate-investing
		/how-to-choose-the-right-neighborhood-for-your-family /luxury-homes-what-to-look-for /property-management-best-practices-for-landlords
		/renovation-ideas-to-increase-your-homes-value /the-ultimate-guide-to-buying-a-vacation-home /how-to-successfully-sell-your-home-in-a-buyers-market
		/home-inspection-what-to-expect-and-how-to-prepare /eco-friendly-home-improvements-for-sustainable-living /how-to-navigate-the-mortgage-process
		/real-estate-market-analysis-what-you-need-to-know /tips-for-renting-out-your-property /understanding-property-taxes-and-how-to-lower-them
		/the-benefits-of-smart-home-technology`))
	same(t, "careers", locs(t, site, "careers.xml"),
		under(root+"/careers", `/senior-full-stack-engineer-creator-success-full-time
		/data-science-specialist-analytics-division /product-marketing-manager-growth-team /uxui-designer-user-experience-team
		/operations-manager-supply-chain-division /financial-analyst-investment-group`))
	if post := readURLs(t, site, "blog-posts.xml")[0]; post.Priority != 0.8 {
		t.Errorf("the profile botble gives posts 0.8, not %v", post.Priority)
	}
}
