package sitemap

import (
	"fmt"
	"net/url"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Generate writes the sitemap.
var Generate = jobs.Kind[GeneratePayload]{Name: "sitemap.generate", Policy: jobs.Policy{
	MaxAttempts: 3, Timeout: 5 * time.Minute, Backoff: jobs.Steps(60*time.Second, 120*time.Second, 240*time.Second),
	Limit: 1, Coalesce: true,
}}

// GeneratePayload is the job's data.
type GeneratePayload struct {
	// Force writes the map even where nothing changed since the last one.
	Force bool `json:"force" default:"false" example:"true"`
}

// IndexNow tells search engines which addresses changed.
var IndexNow = jobs.Kind[IndexNowPayload]{Name: "sitemap.indexnow", Policy: jobs.Policy{
	MaxAttempts: 3, Timeout: 5 * time.Minute, Backoff: jobs.Fixed(60 * time.Second), Limit: 1, Coalesce: true,
}}

// IndexNowPayload is the job's data.
type IndexNowPayload struct {
	// SitemapURL is submitted in the modes sitemap and both; null means the
	// site's own sitemap.xml. One that is given makes the mode both, unless
	// Mode says otherwise.
	SitemapURL *string `json:"sitemapUrl"`
	// Mode overrules the configured one: urls, sitemap or both.
	Mode string `json:"mode,omitempty" choices:"urls,sitemap,both"`
}

// maxURL is how long an address of a sitemap may be, in bytes.
const maxURL = 2048

// Validate refuses modes that do not exist, and what is no address. Whether an
// address is the site's own is known at the run.
func (p *IndexNowPayload) Validate() error {
	switch p.Mode {
	case "", ModeURLs, ModeSitemap, ModeBoth:
	default:
		return fmt.Errorf("mode %q: use urls, sitemap or both", p.Mode)
	}
	if p.SitemapURL == nil {
		return nil
	}
	u, err := url.Parse(*p.SitemapURL)
	if err != nil || len(*p.SitemapURL) > maxURL || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" ||
		u.User != nil {
		return fmt.Errorf("sitemapUrl %.80q is no http or https address of at most %d bytes", *p.SitemapURL, maxURL)
	}
	return nil
}
