package backup

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// ErrBusy says that another backup runs, somewhere in the fleet.
var ErrBusy = errors.New("another backup is running")

const (
	// lockTime is how long a lock holds without a sign of life; a killed
	// holder's is free after it.
	lockTime  = 5 * time.Minute
	lockRenew = time.Minute
	busyDelay = 5 * time.Minute
	lockName  = "backup"
)

// lock keeps a second backup out until unlock is called.
func (h *Handler) lock(ctx context.Context, id string) (unlock func(), err error) {
	holder := id + "-" + rand.Text()
	if err := h.takeLock(ctx, holder); err != nil {
		return nil, err
	}
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(lockRenew)
		defer tick.Stop()
		for {
			select {
			case <-renewing.Done():
				return
			case <-tick.C:
				if err := h.setLock(renewing, holder, h.c.Now().Add(lockTime)); err != nil && renewing.Err() == nil {
					h.c.Logger.WarnContext(renewing, "the backup's lock could not be renewed", "backup", id, "error", err)
				}
			}
		}
	}()
	return func() {
		stop()
		<-done
		if err := h.setLock(context.WithoutCancel(ctx), holder, time.UnixMilli(0)); err != nil {
			h.c.Logger.WarnContext(ctx, "the backup's lock could not be given back; it ends by itself", "backup", id, "error", err)
		}
	}, nil
}

func (h *Handler) takeLock(ctx context.Context, holder string) error {
	insert := "INSERT INTO cmsjobs_backup_lock (name, holder, expires_at) VALUES (?, '', 0) ON CONFLICT DO NOTHING"
	if h.c.DB.DriverName() == "mysql" {
		insert = "INSERT IGNORE INTO cmsjobs_backup_lock (name, holder, expires_at) VALUES (?, '', 0)"
	}
	if _, err := h.c.DB.ExecContext(ctx, h.c.DB.Rebind(insert), lockName); err != nil {
		return fmt.Errorf("preparing the backup's lock: %w", err)
	}
	now := h.c.Now()
	result, err := h.c.DB.ExecContext(ctx, h.c.DB.Rebind("UPDATE cmsjobs_backup_lock SET holder = ?, expires_at = ? WHERE name = ? AND expires_at < ?"),
		holder, now.Add(lockTime).UnixMilli(), lockName, now.UnixMilli())
	if err != nil {
		return fmt.Errorf("taking the backup's lock: %w", err)
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return errors.Join(ErrBusy, err)
	}
	return nil
}

func (h *Handler) setLock(ctx context.Context, holder string, until time.Time) error {
	_, err := h.c.DB.ExecContext(ctx, h.c.DB.Rebind("UPDATE cmsjobs_backup_lock SET expires_at = ? WHERE name = ? AND holder = ?"),
		until.UnixMilli(), lockName, holder)
	return err
}

// remember writes down what is known of a backup.
func (h *Handler) remember(ctx context.Context, p Report) error {
	report, err := json.Marshal(p)
	if err != nil {
		return err
	}
	proven := int64(0)
	if p.Proof != nil && p.Proof.OK && p.Proof.Level == LevelRestored {
		proven = p.Proof.Finished.UnixMilli()
	}
	tx, err := h.c.DB.BeginTxx(ctx, nil)
	if err != nil {
		return fmt.Errorf("writing down the backup: %w", err)
	}
	defer tx.Rollback() // after Commit it does nothing
	_, err = tx.ExecContext(ctx, tx.Rebind("DELETE FROM cmsjobs_backups WHERE id = ?"), p.ID)
	if err == nil {
		_, err = tx.ExecContext(ctx, tx.Rebind("INSERT INTO cmsjobs_backups (id, status, started_at, finished_at, archive_sha256, proven_at, report) VALUES (?, ?, ?, ?, ?, ?, ?)"),
			p.ID, string(p.Status), p.Started.UnixMilli(), millis(p.Finished), p.SHA256, proven, string(report))
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return fmt.Errorf("writing down the backup: %w", err)
	}
	return nil
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// rememberProof writes down what reading a backup back showed.
func (h *Handler) rememberProof(ctx context.Context, p Proof) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	ok := 0
	if p.OK {
		ok = 1
	}
	_, err = h.c.DB.ExecContext(ctx, h.c.DB.Rebind("INSERT INTO cmsjobs_backup_proofs (id, backup_id, destination, level, ok, finished_at, proof) VALUES (?, ?, ?, ?, ?, ?, ?)"),
		rand.Text(), p.Backup, p.Destination, string(p.Level), ok, p.Finished.UnixMilli(), string(data))
	if err == nil && p.OK && p.Level == LevelRestored {
		_, err = h.c.DB.ExecContext(ctx, h.c.DB.Rebind("UPDATE cmsjobs_backups SET proven_at = ? WHERE id = ?"), p.Finished.UnixMilli(), p.Backup)
	}
	if err != nil {
		return fmt.Errorf("writing down the proof: %w", err)
	}
	return nil
}

// History lists the newest backups that were made or tried, newest first.
func (h *Handler) History(ctx context.Context, limit int) ([]Report, error) {
	var rows []string
	err := h.c.DB.SelectContext(ctx, &rows, h.c.DB.Rebind("SELECT report FROM cmsjobs_backups ORDER BY started_at DESC, id DESC LIMIT ?"), limit)
	if err != nil {
		return nil, fmt.Errorf("reading the backups' history: %w", err)
	}
	reports := make([]Report, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal([]byte(row), &reports[i]); err != nil {
			return nil, fmt.Errorf("reading the backups' history: %w", err)
		}
	}
	return reports, nil
}

// Proofs lists what reading a backup back showed, newest first. id "" means
// of all backups.
func (h *Handler) Proofs(ctx context.Context, id string, limit int) ([]Proof, error) {
	var rows []string
	err := h.c.DB.SelectContext(ctx, &rows, h.c.DB.Rebind("SELECT proof FROM cmsjobs_backup_proofs WHERE backup_id = ? OR ? = '' ORDER BY finished_at DESC, id LIMIT ?"), id, id, limit)
	if err != nil {
		return nil, fmt.Errorf("reading the backups' proofs: %w", err)
	}
	proofs := make([]Proof, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal([]byte(row), &proofs[i]); err != nil {
			return nil, fmt.Errorf("reading the backups' proofs: %w", err)
		}
	}
	return proofs, nil
}

// recorded is the archive's hash as it was when the backup was made; "" when
// this database does not know the backup.
func (h *Handler) recorded(ctx context.Context, id string) (string, error) {
	var sums []string
	err := h.c.DB.SelectContext(ctx, &sums, h.c.DB.Rebind("SELECT archive_sha256 FROM cmsjobs_backups WHERE id = ?"), id)
	if err != nil || len(sums) == 0 {
		return "", err
	}
	return sums[0], nil
}
