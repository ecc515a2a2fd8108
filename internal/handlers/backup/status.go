package backup

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/botble"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// verificationDue is how long after its end a backup may wait for its first verification. A
// backup is verified right after it was made; one that is never verified within
// this time was killed in between.
const verificationDue = 24 * time.Hour

// state is what retention and "latest" look at.
func (h *Handler) state(b Stored) retention.State {
	_, unreadable := h.c.Destinations[b.Destination].(*botble.Store)
	switch {
	case b.Verification != nil && b.Verification.OK:
		return retention.Verified
	case b.Status == manifest.Failed:
		return retention.Failed
	case unreadable || h.c.Options.Verify == manifest.LevelNone:
		return retention.Pending // it is never due for a verification
	case h.c.Now().Sub(b.Finished) < verificationDue:
		return retention.Pending
	}
	return retention.Overdue
}

// Usable says whether a backup counts: it holds what it was to hold, is
// verified or not yet due for a verification, and this installation made it or trusts
// the one that did.
func (h *Handler) Usable(b Stored) bool {
	s := h.state(b)
	return b.Status == manifest.Complete && !b.Limited && !b.Safety && !b.Origin.Foreign() && (s == retention.Verified || s == retention.Pending)
}

// Standing says in a few words how far a backup may be relied on.
func (h *Handler) Standing(b Stored) string {
	switch h.state(b) {
	case retention.Verified:
		return fmt.Sprintf("verified (%s) on %s UTC", b.Verification.Level, b.Verification.At.UTC().Format("2006-01-02 15:04"))
	case retention.Failed:
		return b.Reason()
	case retention.Pending:
		return "not verified yet"
	}
	return "never verified, though a verification is due"
}

// rememberVerification writes down what reading a backup back showed: in our tables,
// and in the manifest file beside the archive.
func (h *Handler) rememberVerification(ctx context.Context, b Stored, p manifest.Verification) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	ok, conclusive := flag(p.OK), flag(!p.Unfinished)
	_, err = h.c.DB.ExecContext(ctx, h.c.DB.Rebind(`INSERT INTO cmsjobs_backup_verifications
		(id, backup_id, destination, level, ok, conclusive, finished_at, report) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`),
		rand.Text(), p.Backup, p.Destination, string(p.Level), ok, conclusive, p.Finished.UnixMilli(), string(data))
	if err == nil && p.OK && p.Level == manifest.LevelRestored {
		_, err = h.c.DB.ExecContext(ctx, h.c.DB.Rebind("UPDATE cmsjobs_backups SET verified_at = ? WHERE id = ?"), p.Finished.UnixMilli(), p.Backup)
	}
	if err == nil && !p.Unfinished {
		err = h.updateStatus(ctx, b)
	}
	if err != nil {
		err = fmt.Errorf("writing down the verification: %w", err)
	}
	if !p.Unfinished {
		// Our table knows it, so the list is right in any case.
		if sideErr := h.settleManifestFile(ctx, b, p.Summary()); sideErr != nil {
			h.c.Logger.WarnContext(ctx, "verification not written to the manifest file of a backup", "event", "backup.manifest_failed",
				"backup", b.ID, "destination", b.Destination, "error", sideErr)
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
func (h *Handler) updateStatus(ctx context.Context, b Stored) error {
	known, err := h.newestVerifications(ctx, b.ID)
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
	_, err = h.c.DB.ExecContext(ctx, h.c.DB.Rebind("UPDATE cmsjobs_backups SET status = ? WHERE id = ? AND status <> ?"), string(status), b.ID, string(manifest.Running))
	return err
}

// copyOf names one copy of a backup.
type copyOf struct{ backup, destination string }

// newestVerifications are the newest conclusive verifications of each copy, of one backup or,
// with "", of all.
func (h *Handler) newestVerifications(ctx context.Context, backup string) (map[copyOf]*manifest.VerificationSummary, error) {
	rows, err := h.c.DB.QueryContext(ctx, h.c.DB.Rebind(`SELECT backup_id, destination, level, ok, finished_at, CASE WHEN ok = 0 THEN report ELSE '' END
		FROM cmsjobs_backup_verifications WHERE conclusive = 1 AND (backup_id = ? OR ? = '') ORDER BY finished_at, id`), backup, backup)
	if err != nil {
		return nil, fmt.Errorf("reading the newest verifications: %w", err)
	}
	defer rows.Close()
	newest := map[copyOf]*manifest.VerificationSummary{}
	for rows.Next() {
		var c copyOf
		var p manifest.VerificationSummary
		var at int64
		var detail string
		if err := rows.Scan(&c.backup, &c.destination, &p.Level, &p.OK, &at, &detail); err != nil {
			return nil, fmt.Errorf("reading the newest verifications: %w", err)
		}
		p.At = time.UnixMilli(at).UTC()
		if detail != "" {
			var whole manifest.Verification
			if err := json.Unmarshal([]byte(detail), &whole); err == nil && len(whole.Problems) > 0 {
				p.Problem = whole.Problems[0]
			}
		}
		newest[c] = &p
	}
	return newest, rows.Err()
}

// settleManifestFile writes the manifest file again with its newest verification, so that what
// lies at the destination tells the truth where our tables are lost.
func (h *Handler) settleManifestFile(ctx context.Context, b Stored, p *manifest.VerificationSummary) error {
	store, err := h.destination(b.Destination)
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
