package sitemap

import (
	"cmp"
	"fmt"
	"net/url"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

// Options say how the map looks. DefaultOptions is what most sites want.
type Options struct {
	// Profile chooses priorities: "specification" (pages 0.8, posts 0.7,
	// categories 0.6) or "botble" (the real CMS's: 0.8 all, tags 0.3).
	Profile string
	// Naming chooses file names: "botble" (pages.xml, blog-posts.xml, …, which
	// stand before the CMS's own routes), "plain" (sitemap-pages.xml, …) or
	// "auto", which looks at the CMS.
	Naming string
	// PerFile is how many addresses a file has; 0 means the CMS's setting
	// sitemap_items_per_page, which is 1,000 by default. Never above 50,000.
	PerFile int
	// Models are content of the site beside the stock CMS's.
	Models []cms.Model
	// Priorities overrule the profile, by the model's name: {"products": "0.9"}.
	Priorities map[string]string
	// Images adds each item's picture, Alternates its other languages, News
	// marks the posts of the last two days for news services.
	Images, Alternates, News bool
	// Videos adds the videos that are shown in an item: of YouTube, or files.
	Videos bool
	// Publication is the name for News; the site's title when empty.
	Publication string
	// Gzip puts a compressed copy beside each file, Stylesheet an XSL that
	// shows the map to people, Robots the line "Sitemap:" into robots.txt.
	Gzip, Stylesheet, Robots bool
	// LLMs writes llms.txt: the names and addresses of the newest content.
	LLMs bool
	// KeepNoIndex lists items that the editor keeps out of search engines, as
	// the CMS itself does.
	KeepNoIndex bool
}

// IndexNowOptions say how search engines are notified. The zero value is good.
type IndexNowOptions struct {
	// Mode is ModeURLs when empty.
	Mode string
	// Endpoints are api.indexnow.org when empty, which passes on to all others
	// that take part.
	Endpoints []string
	// WriteKey puts the key file into the public folder when it is missing.
	WriteKey bool
	// Batch is how many addresses one call has: 10,000, the most that the
	// protocol allows, when 0.
	Batch int
}

const (
	defaultEndpoint = "https://api.indexnow.org/indexnow"
	maxBatch        = 10_000
)

// Validate says what cannot be meant.
func (o Options) Validate() error {
	switch {
	case o.Profile != "" && o.Profile != "specification" && o.Profile != "botble":
		return fmt.Errorf("sitemap profile %q: use specification or botble", o.Profile)
	case o.Naming != "" && o.Naming != "auto" && o.Naming != "botble" && o.Naming != "plain":
		return fmt.Errorf("sitemap naming %q: use auto, botble or plain", o.Naming)
	case o.PerFile < 0 || o.PerFile > maxURLs:
		return fmt.Errorf("%d addresses a sitemap file: sitemaps.org allows 1 to %d", o.PerFile, maxURLs)
	}
	for _, m := range o.Models {
		if err := m.Validate(); err != nil {
			return fmt.Errorf("sitemap: %w", err)
		}
	}
	return nil
}

// Validate says what cannot be meant.
func (o IndexNowOptions) Validate() error {
	if err := (&IndexNowPayload{Mode: o.Mode}).Validate(); err != nil {
		return fmt.Errorf("IndexNow: %w", err)
	}
	for _, e := range o.Endpoints {
		if u, err := url.Parse(e); err != nil || u.Host == "" {
			return fmt.Errorf("IndexNow endpoint %q is no address", e)
		}
	}
	if o.Batch < 0 || o.Batch > maxBatch {
		return fmt.Errorf("%d addresses a call: IndexNow allows 1 to %d", o.Batch, maxBatch)
	}
	return nil
}

func (o IndexNowOptions) withDefaults() IndexNowOptions {
	o.Mode = cmp.Or(o.Mode, ModeURLs)
	if len(o.Endpoints) == 0 {
		o.Endpoints = []string{defaultEndpoint}
	}
	if o.Batch == 0 {
		o.Batch = maxBatch
	}
	return o
}
