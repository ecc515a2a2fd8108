package catalog

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/botble"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// RecordVerification writes down what reading a backup back showed: in our tables,
// and in the manifest file beside the archive.
func (c *Catalog) RecordVerification(ctx context.Context, b Stored, p manifest.Verification) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	ok, conclusive := flag(p.OK), flag(!p.Unfinished)
	_, err = c.config.DB.ExecContext(ctx, c.config.DB.Rebind(`INSERT INTO cmsjobs_backup_verifications
		(id, backup_id, destination, level, ok, conclusive, finished_at, report) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`),
		rand.Text(), p.Backup, p.Destination, string(p.Level), ok, conclusive, p.Finished.UnixMilli(), string(data))
	if err == nil && p.OK && p.Level == manifest.LevelRestored {
		_, err = c.config.DB.ExecContext(ctx, c.config.DB.Rebind("UPDATE cmsjobs_backups SET verified_at = ? WHERE "+
			"id = ?"), p.Finished.UnixMilli(), p.Backup)
	}
	if err == nil && !p.Unfinished {
		err = c.updateStatus(ctx, b)
	}
	if err != nil {
		err = fmt.Errorf("writing down the verification: %w", err)
	}
	if !p.Unfinished {
		// Our table knows it, so the list is right in any case.
		if sideErr := c.settleManifestFile(ctx, b, p.Summary()); sideErr != nil {
			c.config.Logger.WarnContext(ctx, "verification not written to the manifest file of a backup",
				"event", "backup.manifest_failed", "backup", b.ID, "destination", b.Destination, "error", sideErr)
		}
	}
	return err
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// updateStatus sets a backup's status in our table: failed when it was read
// back and no destination has a copy whose newest verification succeeded.
func (c *Catalog) updateStatus(ctx context.Context, b Stored) error {
	known, err := c.newestVerifications(ctx, b.ID)
	if err != nil {
		return err
	}
	status := b.Made
	if len(known) > 0 {
		status = manifest.Failed
	}
	for _, p := range known {
		if p.OK {
			status = b.Made
		}
	}
	_, err = c.config.DB.ExecContext(ctx, c.config.DB.Rebind("UPDATE cmsjobs_backups SET status = ? WHERE id = ? AND "+
		"status <> ?"), string(status), b.ID, string(manifest.Running))
	return err
}

// copyOf names one copy of a backup.
type copyOf struct{ backup, destination string }

// newestVerifications are the newest conclusive verifications of each copy, of one backup or,
// with "", of all.
func (c *Catalog) newestVerifications(ctx context.Context, backup string) (map[copyOf]*manifest.VerificationSummary,
	error) {
	rows, err := c.config.DB.QueryContext(ctx, c.config.DB.Rebind(`SELECT backup_id, destination, level, ok,
		finished_at, CASE WHEN ok = 0 THEN report ELSE '' END
		FROM cmsjobs_backup_verifications WHERE conclusive = 1 AND (backup_id = ? OR ? = '')
		ORDER BY finished_at, id`), backup, backup)
	if err != nil {
		return nil, fmt.Errorf("reading the newest verifications: %w", err)
	}
	defer rows.Close()
	newest := map[copyOf]*manifest.VerificationSummary{}
	for rows.Next() {
		var of copyOf
		var p manifest.VerificationSummary
		var at int64
		var detail string
		if err := rows.Scan(&of.backup, &of.destination, &p.Level, &p.OK, &at, &detail); err != nil {
			return nil, fmt.Errorf("reading the newest verifications: %w", err)
		}
		p.At = time.UnixMilli(at).UTC()
		if detail != "" {
			var whole manifest.Verification
			if err := json.Unmarshal([]byte(detail), &whole); err == nil && len(whole.Problems) > 0 {
				p.Problem = whole.Problems[0]
			}
		}
		newest[of] = &p
	}
	return newest, rows.Err()
}

// settleManifestFile writes the manifest file again with its newest verification, so that what
// lies at the destination tells the truth where our tables are lost.
func (c *Catalog) settleManifestFile(ctx context.Context, b Stored, p *manifest.VerificationSummary) error {
	store, err := c.Destination(b.Destination)
	if err != nil {
		return err
	}
	if _, consumes := store.(*botble.Store); consumes {
		return nil
	}
	side, err := manifest.ReadFile(ctx, store, b.Key+manifest.Ending)
	if errors.Is(err, storage.ErrNotFound) {
		return nil // deleted meanwhile, or never sealed
	}
	if err != nil {
		return err
	}
	if side.ID != b.ID {
		return fmt.Errorf("%s is of another backup, %s", b.Key+manifest.Ending, side.ID)
	}
	side.Settle(p)
	return manifest.WriteFile(ctx, store, b.Key, side)
}

// Verifications lists what reading a backup back showed, newest first. id "" means
// of all backups.
func (c *Catalog) Verifications(ctx context.Context, id string, limit int) ([]manifest.Verification, error) {
	var rows []string
	err := c.config.DB.SelectContext(ctx, &rows, c.config.DB.Rebind("SELECT report FROM cmsjobs_backup_verifications "+
		"WHERE backup_id = ? OR ? = '' ORDER BY finished_at DESC, id LIMIT ?"), id, id, limit)
	if err != nil {
		return nil, fmt.Errorf("reading the backups' verifications: %w", err)
	}
	verifications := make([]manifest.Verification, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal([]byte(row), &verifications[i]); err != nil {
			return nil, fmt.Errorf("reading the backups' verifications: %w", err)
		}
	}
	return verifications, nil
}
