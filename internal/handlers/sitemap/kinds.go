package sitemap

import (
	"net/url"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
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

// What sitemap.indexnow submits.
const (
	ModeURLs    = "urls"    // the addresses that changed since they were last accepted
	ModeSitemap = "sitemap" // the address of the sitemap only, as the CMS itself does
	ModeBoth    = "both"
)

// Submission is what a run of sitemap.indexnow did.
type Submission struct {
	// Why says why nothing was submitted; "" when it was.
	Why     string `json:"why,omitempty"`
	Mode    string `json:"mode,omitempty"`
	Added   int    `json:"added"`
	Changed int    `json:"changed"`
	Deleted int    `json:"deleted"`
	// Refused addresses were refused alone, Forgotten ones are of another host:
	// the site has moved.
	Refused   int      `json:"refused,omitempty"`
	Forgotten int      `json:"forgotten,omitempty"`
	Calls     int      `json:"calls"`
	Status    int      `json:"status,omitempty"` // of HTTP, of the last call that was accepted
	Sitemap   string   `json:"sitemap,omitempty"`
	KeyFile   string   `json:"keyFile,omitempty"` // "written" when we put it there
	Refusals  []string `json:"refusals,omitempty"`
}

// Result is what a run of sitemap.generate did.
type Result struct {
	// Unchanged and Disabled say why nothing was written; "" when it was.
	Unchanged string `json:"unchanged,omitempty"`
	Disabled  string `json:"disabled,omitempty"`
	// Index is the address of sitemap.xml, Target where it was put.
	Index  string `json:"index,omitempty"`
	Target string `json:"target"`
	URLs   int    `json:"urls"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	// Removed are the files that were no longer needed.
	Removed []string `json:"removed,omitempty"`
	// SkippedRows counts the rows that could not be listed; Skipped names the
	// first 50.
	SkippedRows int       `json:"skippedRows,omitempty"`
	Skipped     []Skipped `json:"skipped,omitempty"`
	DurationMS  int64     `json:"durationMs"`
}

// Skipped is a row that is not in the map, and why.
type Skipped struct {
	Table  string `json:"table"`
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// maxSkipped bounds how many skipped rows a result names; all are counted.
const maxSkipped = 50

// Validate refuses modes that do not exist, and what is no address. Whether an
// address is the site's own is known at the run.
func (p *IndexNowPayload) Validate() error {
	switch p.Mode {
	case "", ModeURLs, ModeSitemap, ModeBoth:
	default:
		return phrase.Errorf("mode %q: use urls, sitemap or both", p.Mode)
	}
	if p.SitemapURL == nil {
		return nil
	}
	u, err := url.Parse(*p.SitemapURL)
	if err != nil || len(*p.SitemapURL) > maxURL || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" ||
		u.User != nil {
		return phrase.Errorf("sitemapUrl %.80q is no http or https address of at most %d bytes", *p.SitemapURL, maxURL)
	}
	return nil
}

// Summary implements jobs.Summarizer.
func (r Result) Summary() (s phrase.Summary) {
	switch {
	case r.Disabled != "":
		s.Say("No map was written: %s.", r.Disabled)
		return s
	case r.Unchanged != "":
		s.Say("No map was written: %s.", r.Unchanged)
		return s
	}
	s.Say("Wrote %s {file|files} with %s {address|addresses}, %s, in %s.", r.Files, r.URLs, phrase.Size(r.Bytes),
		time.Duration(r.DurationMS)*time.Millisecond)
	phrase.Count(&s, len(r.Removed), "%s {file that was|files that were} no longer needed {was|were} removed.")
	phrase.Count(&s, r.SkippedRows, "%s {row is|rows are} not in the map.")
	phrase.List(&s, phrase.Columns("Table", "ID", "Reason"), r.Skipped, func(k Skipped) []any {
		return []any{k.Table, k.ID, k.Reason}
	})
	return s
}

// Summary implements jobs.Summarizer.
func (u Submission) Summary() (s phrase.Summary) {
	switch {
	case u.Why != "":
		s.Say("Nothing was submitted: %s.", u.Why)
	case u.Added+u.Changed+u.Deleted == 0 && u.Sitemap != "":
		s.Say("Submitted the address of the sitemap, %s.", u.Sitemap)
	default:
		s.Say("Submitted %s {address|addresses} in %s {call|calls}: %s new, %s changed, %s deleted.",
			u.Added+u.Changed+u.Deleted, u.Calls, u.Added, u.Changed, u.Deleted)
	}
	phrase.Count(&s, u.Refused, "%s {address was|addresses were} refused.")
	phrase.Count(&s, u.Forgotten, "%s {address|addresses} of another host {was|were} forgotten: the site has moved.")
	phrase.Lines(&s, phrase.Columns("Refusal"), u.Refusals)
	return s
}
