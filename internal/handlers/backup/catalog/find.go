package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/dustin/go-humanize/english"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// ErrNoBackup says that no backup fits.
var ErrNoBackup = jobs.NotFound("no such backup")

// Wanted names a backup.
type Wanted struct {
	// ID of the backup, or "latest".
	ID string
	// Destination "" takes any that has it.
	Destination string
	// Database and Files are what it must hold. Where neither is set, "latest"
	// prefers a backup that holds both.
	Database, Files bool
}

// Show finds one backup by its id, or the latest one.
func (c *Catalog) Show(ctx context.Context, id, destination string) (Stored, error) {
	b, _, err := c.Find(ctx, Wanted{ID: id, Destination: destination})
	return b, err
}

// Find finds one backup. The latest one is the newest that is complete, of a
// known origin, and verified or not yet due for a verification. passed are the newer
// ones that are none of that.
func (c *Catalog) Find(ctx context.Context, w Wanted) (found Stored, passed []Stored, err error) {
	all, err := c.List(ctx, w.Destination)
	var fits []Stored
	for _, b := range all {
		if b.ID == w.ID || w.ID == "latest" && c.candidate(b, w) {
			fits = append(fits, b)
		}
	}
	if len(fits) == 0 {
		if err == nil {
			err = jobs.Permanent(fmt.Errorf("%w: %s%s", ErrNoBackup, w.ID, c.unfit(all, w)))
		}
		return Stored{}, nil, err
	}
	// the first, so the newest, of the best
	found = slices.MinFunc(fits, func(a, b Stored) int { return cmp.Compare(c.rank(a, w), c.rank(b, w)) })
	if w.ID == "latest" {
		for _, b := range all {
			if b.Started.After(found.Started) && !b.Safety {
				passed = append(passed, b)
			}
		}
	}
	found, err = c.Full(ctx, found)
	return found, passed, err
}

// unfit says why none of the backups is the latest one.
func (c *Catalog) unfit(all []Stored, w Wanted) string {
	if w.ID != "latest" || len(all) == 0 {
		return ""
	}
	var failed, partial, other int
	for _, b := range all {
		switch b.Status {
		case manifest.Failed:
			failed++
		case manifest.Partial:
			partial++
		default:
			other++
		}
	}
	return fmt.Sprintf(" (of %s, the newest verification of %d failed, %d are partial, and %d hold other parts, or "+
		"only some tables, "+
		"or were made before a restore; name one by its id: cmsjobs backup list)",
		english.Plural(len(all), "backup", ""), failed, partial, other)
}

// candidate says whether a backup may be the latest one at all.
func (c *Catalog) candidate(b Stored, w Wanted) bool {
	return b.Status == manifest.Complete && !b.Limited && !b.Safety && (b.Database || !w.Database) &&
		(b.Files || !w.Files)
}

// rank orders candidates, the best first: of known origin, verified or not due,
// with both parts where none was named.
func (c *Catalog) rank(b Stored, w Wanted) (rank int) {
	if b.Origin.Foreign() {
		rank += 4
	}
	if b.Status == manifest.Failed || !c.Usable(b) && !b.Origin.Foreign() {
		rank += 2
	}
	if !w.Database && !w.Files && !(b.Database && b.Files) {
		rank++
	}
	return rank
}
