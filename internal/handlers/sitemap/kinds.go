package sitemap

import (
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
