package backup

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/botble"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// verify reads a new backup back, from one destination as a whole, from the
// others by their bytes.
func (r *run) verify(ctx context.Context) error {
	level := r.c.Options.Verify
	if level == manifest.LevelNone {
		return nil
	}
	// What packing took is released first, so that both fit into little memory.
	r.archive = nil
	debug.FreeOSMemory()
	var failed []error
	bad, whole := 0, 0
	for i := range r.report.Outcomes {
		o := &r.report.Outcomes[i]
		if _, consumes := r.c.Destinations[o.Destination].(*botble.Store); consumes || o.Error != "" {
			if o.Error == "" {
				whole++
			}
			continue
		}
		verification, err := r.VerifyNew(ctx, r.storedAt(o.Destination), level, r.progress)
		if r.report.Verification == nil || err != nil {
			r.report.Verification = &verification
		}
		if err != nil {
			o.Error = err.Error()
		}
		if err == nil || verification.Unfinished || ctx.Err() != nil {
			whole++
		} else {
			bad++
		}
		failed = append(failed, err)
		if level != manifest.LevelNone {
			level = manifest.LevelBytes
		}
	}
	if bad > 0 && whole == 0 { // no destination has a copy that is worth anything
		r.report.Status = manifest.Failed
	}
	return errors.Join(failed...)
}

// storedAt is the new backup's copy at a destination.
func (r *run) storedAt(destination string) catalog.Stored {
	side := r.sides[destination]
	return catalog.Stored{File: side, Destination: destination, Key: r.key, Origin: manifest.Own,
		TableCount: len(side.Tables)}
}
