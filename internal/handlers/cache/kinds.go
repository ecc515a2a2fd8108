package cache

import (
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// ClearPayload asks for a cache to be emptied. Without tags and
// without ClearAll the default entries go: the cache store, the CMS's cache
// groups and the compiled views.
type ClearPayload struct {
	// Tags name parts: pages, posts, categories, tags, galleries, sitemap,
	// menus, languages, widgets, settings, views, config, routes, events, or the class name
	// of a cache group.
	Tags []string `json:"tags" example:"[\"posts\"]" synonyms:"tag"`
	// ClearAll empties everything: also the bootstrap caches, which PHP makes
	// again.
	ClearAll bool `json:"clearAll" default:"false" example:"false"`
	DryRun   bool `json:"dryRun,omitempty" default:"false"`
}

// ExpiredPayload asks for what expired to be removed.
type ExpiredPayload struct {
	DryRun bool `json:"dryRun,omitempty" default:"false"`
}

// LogsPayload asks for old log files and rows to be removed.
type LogsPayload struct {
	// Days to keep log files; 0 means the configured number. Over HTTP only
	// administrators may ask for fewer than that.
	Days   int  `json:"days,omitempty" unit:"days" example:"14"`
	DryRun bool `json:"dryRun,omitempty" default:"false"`
}

// Validate refuses a negative age.
func (p *LogsPayload) Validate() error {
	if p.Days < 0 {
		return phrase.Errorf("days cannot be negative")
	}
	return nil
}

// CleanPayload asks for the queue's own tables to be cleaned.
type CleanPayload struct {
	DryRun bool `json:"dryRun,omitempty" default:"false"`
}

// The types of this package. Runs that wait for the same thing are one run:
// after a night without workers nobody wants a hundred cleanings.
var (
	Clear = jobs.Kind[ClearPayload]{Name: "cache.clear",
		Policy: jobs.Policy{MaxAttempts: 1, Timeout: 5 * time.Minute, Coalesce: true}}
	ClearExpired = jobs.Kind[ExpiredPayload]{Name: "cache.clearExpired",
		Policy: jobs.Policy{MaxAttempts: 1, Timeout: 5 * time.Minute, Coalesce: true}}
	LogsCleanup = jobs.Kind[LogsPayload]{Name: "logs.cleanup",
		Policy: jobs.Policy{MaxAttempts: 3, Timeout: 5 * time.Minute, Coalesce: true}}
	QueueClean = jobs.Kind[CleanPayload]{Name: "queue.clean",
		Policy: jobs.Policy{MaxAttempts: 3, Timeout: 5 * time.Minute, Coalesce: true}}
	Maintenance = jobs.Kind[CleanPayload]{Name: "maintenance.cleanup",
		Policy: jobs.Policy{MaxAttempts: 3, Timeout: time.Minute, Coalesce: true}}
)
