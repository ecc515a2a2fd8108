package restore

import (
	"context"
	"fmt"
	"time"
)

// unfinishedRestore names the row of cmsjobs_backup_locks that is there while a
// restore changes the site, and after one that did not succeed. Nobody waits for
// it: it never holds anything off.
const unfinishedRestore = "unfinished restore"

// Unfinished names a restore that does not run any more and did not succeed.
func (r *Restorer) Unfinished(ctx context.Context) (string, error) {
	row, err := r.config.Locks.Holder(ctx, unfinishedRestore)
	if err != nil || row.Purpose == "" {
		return "", err
	}
	running, err := r.config.Locks.Busy(ctx)
	if err != nil || running {
		return "", err // perhaps it is the one that runs
	}
	row, err = r.config.Locks.Holder(ctx, unfinishedRestore) // again: it may have finished just now
	if err != nil || row.Purpose == "" {
		return "", err
	}
	return fmt.Sprintf("%s, begun %s,", row.Purpose, row.Started.Format(time.RFC3339)), nil
}

// beginRestore writes down that the site is being changed; finish says that it
// is whole again. A restore into another place needs neither.
func (r *Restorer) beginRestore(ctx context.Context, q Request) (finish func() error, err error) {
	if (!q.Database || q.IntoDSN != "") && (!q.Files || q.IntoFolder != "") {
		return func() error { return nil }, nil
	}
	if err := r.config.Locks.Note(ctx, unfinishedRestore, "the restore of "+q.Backup.ID); err != nil {
		return nil, fmt.Errorf("writing down that the restore begins: %w", err)
	}
	return func() error {
		if err := r.config.Locks.Forget(context.WithoutCancel(ctx), unfinishedRestore); err != nil {
			return fmt.Errorf("writing down that the restore ended: %w", err)
		}
		return nil
	}, nil
}
