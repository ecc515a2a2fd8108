package purge

import (
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Payload says what is purged.
type Payload struct {
	// URLs are addresses of the site, or paths: /news/title.
	URLs []string `json:"urls,omitempty" example:"[\"/news/title\"]" synonyms:"url,paths"`
	// Changed purges what changed on the site since the last such job.
	Changed bool `json:"changed,omitempty" default:"false"`
	// Rows purges the pages of these rows of the CMS's content where they changed since
	// the last such job; each is TABLE:ID.
	Rows []string `json:"rows,omitempty" example:"[\"posts:12\"]"`
	// All purges the whole site. URLs are then only asked for.
	All bool `json:"all,omitempty" default:"false" synonyms:"everything"`
	// Cold leaves out asking for the pages.
	Cold bool `json:"cold,omitempty" default:"false"`
	// DryRun only says what would be purged.
	DryRun bool `json:"dryRun,omitempty" default:"false"`
}

// maxURLs is how many addresses one job takes.
const maxURLs = 5000

// maxRows is how many rows one job looks at.
const maxRows = 500

// compares says that the job finds out what changed.
func (p *Payload) compares() bool { return p.Changed || len(p.Rows) > 0 }

// Validate refuses what no retry repairs.
func (p *Payload) Validate() error {
	switch {
	case len(p.URLs) == 0 && len(p.Rows) == 0 && !p.All && !p.Changed:
		return phrase.Errorf(
			`nothing is named: give "urls", "changed": true for what changed since the last purge, or ` +
				`"all": true for the whole site`)
	case len(p.Rows) > maxRows:
		return phrase.Errorf("rows has %d, at most %d are taken: use changed", len(p.Rows), maxRows)
	case len(p.URLs) > maxURLs:
		return phrase.Errorf("urls has %d addresses, at most %d are taken: use several jobs, or all", len(p.URLs),
			maxURLs)
	}
	return nil
}

// Purge is the type.
var Purge = jobs.Kind[Payload]{Name: "cache.purge", Policy: jobs.Policy{MaxAttempts: 6, Timeout: 10 * time.Minute,
	Backoff: jobs.Exponential(10*time.Second, time.Hour)}}

// Result is what a run did.
type Result struct {
	// Destinations are the caches, in the order of the configuration.
	Destinations []Purged `json:"destinations"`
	// URLs is how many addresses were purged, Refused those of them that are not
	// the site's.
	URLs    int      `json:"urls"`
	All     bool     `json:"all,omitempty"`
	Refused []string `json:"refused,omitempty"`
	Warm    *Warm    `json:"warm,omitempty"`
	DryRun  bool     `json:"dryRun,omitempty"`
}

// Purged is what one cache did.
type Purged struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Requests is how many it took.
	Requests int    `json:"requests"`
	Error    string `json:"error,omitempty"`
}

// Warm is what asking for the pages showed.
type Warm struct {
	// Asked pages, of which so many were answered as they should, the others not:
	// a page that is gone answers 404 and is none of them.
	Asked  int `json:"asked"`
	Found  int `json:"found"`
	Gone   int `json:"gone"`
	Failed int `json:"failed"`
	// Left is how many were not asked for, because of the limit or the time.
	Left int `json:"left,omitempty"`
	// P50 and Max are milliseconds of the pages that were found.
	P50 int64 `json:"p50ms"`
	Max int64 `json:"maxMs"`
	// Examples are the first failures.
	Examples []string `json:"examples,omitempty"`
}

// Summary implements jobs.Summarizer.
func (r Result) Summary() (s phrase.Summary) {
	failed := 0
	for _, d := range r.Destinations {
		if d.Error != "" {
			failed++
		}
	}
	switch n := len(r.Destinations); {
	case r.DryRun && r.All:
		s.Say("Would purge everything at %s {cache|caches}.", n)
	case r.DryRun:
		s.Say("Would purge %s {address|addresses} at %s {cache|caches}.", r.URLs, n)
	case r.All:
		s.Say("Purged everything at %s {cache|caches}.", n)
	default:
		s.Say("Purged %s {address|addresses} at %s {cache|caches}.", r.URLs, n)
	}
	phrase.Count(&s, failed, "%s {cache|caches} failed.")
	phrase.Count(&s, len(r.Refused), "%s {address that is|addresses that are} not the site's {was|were} left out.")
	if w := r.Warm; w != nil {
		s.Say("Of %s {page|pages} that {was|were} asked for to fill the caches again, %s came, %s {is|are} gone and "+
			"%s failed.", w.Asked, w.Found, w.Gone, w.Failed)
		phrase.Count(&s, w.Left, "%s {page was|pages were} not asked for: the limit or the time was reached.")
		phrase.Lines(&s, phrase.Columns("Page that failed"), w.Examples)
	}
	phrase.List(&s, phrase.Columns("Cache", "Requests", "Error"), r.Destinations, func(d Purged) []any {
		return []any{d.Name, d.Requests, d.Error}
	})
	phrase.Lines(&s, phrase.Columns("Not the site's"), r.Refused)
	return s
}
