package sitemap

import (
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Generate writes the sitemap (S0.16–S0.30).
var Generate = jobs.Kind[GeneratePayload]{Name: "sitemap.generate", Policy: jobs.Policy{
	MaxAttempts: 3, Timeout: 5 * time.Minute, Backoff: jobs.Steps(60*time.Second, 120*time.Second, 240*time.Second),
	Limit: 1, Coalesce: true,
}}

// GeneratePayload is the job's data.
type GeneratePayload struct {
	// Force writes the map even where nothing changed since the last one.
	Force bool `json:"force"`
}

// IndexNow tells search engines which addresses changed (S0.31–S0.39).
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
	Mode string `json:"mode,omitempty"`
}

// Validate refuses modes that do not exist.
func (p *IndexNowPayload) Validate() error {
	switch p.Mode {
	case "", ModeURLs, ModeSitemap, ModeBoth:
		return nil
	}
	return fmt.Errorf("mode %q: use urls, sitemap or both", p.Mode)
}
