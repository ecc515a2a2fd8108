package backup

import (
	"context"
	"fmt"
	"time"
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
}

// Condition looks at the state of backups.
func (h *Handler) Condition(ctx context.Context) (Condition, error) {
	var c Condition
	var complete, verification int64
	err := h.c.DB.QueryRowxContext(ctx, h.c.DB.Rebind(`SELECT (SELECT COALESCE(MAX(finished_at), 0) FROM cmsjobs_backups WHERE status = ?),
		(SELECT COALESCE(MAX(finished_at), 0) FROM cmsjobs_backup_verifications WHERE ok = 1 AND level IN (?, ?)),
		EXISTS (SELECT 1 FROM cmsjobs_backup_verifications WHERE ok = 0 AND conclusive = 1 AND finished_at =
			(SELECT MAX(finished_at) FROM cmsjobs_backup_verifications WHERE conclusive = 1))`),
		string(Complete), string(LevelParsed), string(LevelRestored)).Scan(&complete, &verification, &c.VerificationFailed)
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
	if c.Unfinished, err = h.unfinished(ctx); err != nil {
		return c, err
	}
	c.TempDB, err = h.Leftovers(ctx)
	return c, err
}

// conditionHistory is how many backups are looked at for the last complete one.
const conditionHistory = 20

func lastComplete(newestFirst []Report) int64 {
	for _, r := range newestFirst {
		if r.Status == Complete {
			return r.Size
		}
	}
	return 0
}

// unfinishedRestore names the row of cmsjobs_backup_locks that is there while a
// restore changes the site, and after one that did not succeed. Nobody waits for
// it: it never holds anything off.
const unfinishedRestore = "unfinished restore"

// unfinished names a restore that does not run any more and did not succeed.
func (h *Handler) unfinished(ctx context.Context) (string, error) {
	if row, err := h.locks.Holder(ctx, unfinishedRestore); err != nil || row.Purpose == "" {
		return "", err
	}
	running, err := h.locks.Held(ctx, lockName)
	if err != nil || running {
		return "", err // perhaps it is the one that runs
	}
	row, err := h.locks.Holder(ctx, unfinishedRestore) // again: it may have finished just now
	if err != nil || row.Purpose == "" {
		return "", err
	}
	return fmt.Sprintf("%s, begun %s,", row.Purpose, row.Started.Format(time.RFC3339)), nil
}

// beginRestore writes down that the site is being changed; finish says that it
// is whole again. A restore into another place needs neither.
func (h *Handler) beginRestore(ctx context.Context, q RestoreRequest) (finish func() error, err error) {
	if (!q.Database || q.IntoDSN != "") && (!q.Files || q.IntoFolder != "") {
		return func() error { return nil }, nil
	}
	if err := h.locks.Note(ctx, unfinishedRestore, "the restore of "+q.Backup.ID); err != nil {
		return nil, fmt.Errorf("writing down that the restore begins: %w", err)
	}
	return func() error {
		if err := h.locks.Forget(context.WithoutCancel(ctx), unfinishedRestore); err != nil {
			return fmt.Errorf("writing down that the restore ended: %w", err)
		}
		return nil
	}, nil
}
