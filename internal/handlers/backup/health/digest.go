package health

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Watched is what a look at the backups showed. Digest is what a week was
// like, where that was asked for.
type Watched struct {
	Health Health  `json:"health"`
	Digest *Digest `json:"digest,omitempty"`
}

// Digest sums a week up.
type Digest struct {
	Since time.Time `json:"since"`
	// Complete, Partial and Failed count the backups that were made or tried.
	Complete int `json:"complete"`
	Partial  int `json:"partial"`
	Failed   int `json:"failed"`
	// Verifications and BadProofs count what reading backups back showed.
	Verifications    int `json:"verifications"`
	BadVerifications int `json:"failed_verifications"`
	// Stored are the backups that lie at places that answer, and their size together.
	Stored int   `json:"stored"`
	Bytes  int64 `json:"bytes"`
}

const (
	digestTime = 7 * 24 * time.Hour
	// digestLimit is more than a week has.
	digestLimit = 2000
)

// Digest looks at the last seven days.
func (c *Checker) Digest(ctx context.Context) (Digest, error) {
	d := Digest{Since: c.config.Now().UTC().Add(-digestTime)}
	history, err := c.config.Catalog.History(ctx, digestLimit)
	if err != nil {
		return d, err
	}
	for _, r := range history {
		if r.Started.Before(d.Since) {
			continue
		}
		switch r.Status {
		case manifest.Complete:
			d.Complete++
		case manifest.Partial:
			d.Partial++
		case manifest.Failed:
			d.Failed++
		}
	}
	verifications, err := c.config.Catalog.Verifications(ctx, "", digestLimit)
	if err != nil {
		return d, err
	}
	for _, p := range verifications {
		if p.Finished.Before(d.Since) {
			continue
		}
		d.Verifications++
		if !p.OK {
			d.BadVerifications++
		}
	}
	all, _ := c.config.Catalog.List(ctx, "") // a place that is away is among Health's warnings
	for _, b := range all {
		d.Stored++
		d.Bytes += b.Size
	}
	return d, nil
}

// Text is what people read: warnings one a line, after the week's sums where
// they were asked for. It is empty when there is nothing to say.
func (w Watched) Text() string {
	var lines []string
	if d := w.Digest; d != nil {
		lines = append(lines, display.Sprintf("Since %s: %d complete {backup|backups}, %d partial, %d failed; %d "+
			"{verification|verifications}, "+
			"%d of them failed. %d {backup is|backups are} kept, %d MiB in total.",
			d.Since.Format(time.DateOnly), d.Complete, d.Partial, d.Failed, d.Verifications, d.BadVerifications,
			d.Stored, d.Bytes>>20))
		lines = append(lines, w.Health.lastVerified())
	}
	for _, warning := range w.Health.Warnings {
		lines = append(lines, "Warning: "+warning.Text+".")
	}
	return strings.Join(lines, "\n")
}

// lastVerified says in a line what a person may rely on.
func (s Health) lastVerified() string {
	if !s.LastChecked.IsZero() {
		text := fmt.Sprintf("The last backup was checked by its content on %s UTC, and not restored",
			s.LastChecked.UTC().Format("2006-01-02 15:04"))
		return strings.TrimSuffix(text+": "+s.Note, ": ") + "."
	}
	if s.LastVerified.IsZero() {
		return "No backup was ever verified by a restore."
	}
	return fmt.Sprintf("The last verified restore was of %s, on %s UTC.", s.VerifiedID,
		s.LastVerified.UTC().Format("2006-01-02 15:04"))
}

// Summary implements jobs.Summarizer.
func (w Watched) Summary() (s phrase.Summary) {
	if n := len(w.Health.Warnings); n > 0 {
		s.Say("%s {warning|warnings} about the backups.", n)
	} else {
		s.Say("The backups are as they should be.")
	}
	if d := w.Digest; d != nil {
		s.Say("Since %s, %s {backup was|backups were} complete, %s partial and %s failed; %s {backup is|backups are} "+
			"kept, %s.",
			d.Since, d.Complete, d.Partial, d.Failed, d.Stored, phrase.Size(d.Bytes))
	}
	phrase.List(&s, phrase.Columns("Destination", "Warning"), w.Health.Warnings, func(v Warning) []any {
		return []any{v.Destination, v.Text}
	})
	return s
}
