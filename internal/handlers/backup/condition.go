package backup

import (
	"context"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// Condition is how the backups stand by our own tables. It is cheap: no
// destination is asked.
type Condition struct {
	// LastComplete and LastVerification are zero where there was none; a verification is a
	// backup that was read back (parsed or restored) and found good.
	LastComplete, LastVerification time.Time
	LastBytes                      int64 // size of the last complete one
	VerificationFailed             bool  // the newest verification found its backup bad
	// Unfinished names a restore of the site that began and did not succeed.
	Unfinished string
	// TempDB are databases and folders of verifications that died.
	TempDB []string
	// Log says what keeps the binary log from being archived.
	Log string
}

// Condition looks at the state of backups.
func (h *Handler) Condition(ctx context.Context) (Condition, error) {
	var c Condition
	var complete, verification int64
	err := h.c.DB.QueryRowxContext(ctx, h.c.DB.Rebind(`SELECT (SELECT COALESCE(MAX(finished_at), 0) FROM
		cmsjobs_backups WHERE status = ?),
		(SELECT COALESCE(MAX(finished_at), 0) FROM cmsjobs_backup_verifications WHERE ok = 1 AND level IN (?, ?)),
		EXISTS (SELECT 1 FROM cmsjobs_backup_verifications WHERE ok = 0 AND conclusive = 1 AND finished_at =
			(SELECT MAX(finished_at) FROM cmsjobs_backup_verifications WHERE conclusive = 1)),
		(SELECT COALESCE(MAX(purpose), '') FROM cmsjobs_backup_locks WHERE name = ?)`),
		string(manifest.Complete), string(manifest.LevelParsed), string(manifest.LevelRestored),
		logTrouble).Scan(&complete, &verification, &c.VerificationFailed, &c.Log)
	if err != nil {
		return c, fmt.Errorf("reading the history of backups: %w", err)
	}
	if complete > 0 {
		if last, err := h.History(ctx, conditionHistory); err == nil {
			c.LastBytes = lastComplete(last)
		}
		c.LastComplete = time.UnixMilli(complete).UTC()
	}
	if verification > 0 {
		c.LastVerification = time.UnixMilli(verification).UTC()
	}
	if c.Unfinished, err = h.Unfinished(ctx); err != nil {
		return c, err
	}
	if h.c.Options.Log == LogOff {
		c.Log = ""
	}
	c.TempDB, err = h.Leftovers(ctx)
	return c, err
}

// conditionHistory is how many backups are looked at for the last complete one.
const conditionHistory = 20

func lastComplete(newestFirst []catalog.Report) int64 {
	for _, r := range newestFirst {
		if r.Status == manifest.Complete {
			return r.Size
		}
	}
	return 0
}
