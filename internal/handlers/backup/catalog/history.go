package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// Record writes down what is known of a backup.
func (c *Catalog) Record(ctx context.Context, p Report) error {
	report, err := json.Marshal(p)
	if err != nil {
		return err
	}
	verified := int64(0)
	if p.Verification != nil && p.Verification.OK && p.Verification.Level == manifest.LevelRestored {
		verified = p.Verification.Finished.UnixMilli()
	}
	return database.InTx(ctx, c.config.DB, "writing down the backup", func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, tx.Rebind("DELETE FROM cmsjobs_backups WHERE id = ?"), p.ID)
		if err == nil {
			_, err = tx.ExecContext(ctx, tx.Rebind("INSERT INTO cmsjobs_backups (id, status, started_at, "+
				"finished_at, archive_sha256, verified_at, source, asked_by, report) "+
				"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"),
				p.ID, string(p.Status), p.Started.UnixMilli(), millis(p.Finished), p.SHA256, verified, p.Source, p.By,
				string(report))
		}
		return err
	})
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// interruptedError is what history says of a backup whose process was killed.
const interruptedError = "its process ended before the backup was finished and verified"

// History lists the newest backups that were made or tried, newest first. A backup
// runs only while the lock is held: otherwise its process is dead, and it failed.
func (c *Catalog) History(ctx context.Context, limit int) ([]Report, error) {
	reports, err := c.recordedRuns(ctx, limit)
	running := func(r Report) bool { return r.Status == manifest.Running }
	if err != nil || !slices.ContainsFunc(reports, running) {
		return reports, err
	}
	held, err := c.config.Running(ctx)
	if err != nil || held {
		return reports, err
	}
	again, err := c.recordedRuns(ctx, limit) // it may have ended between the two questions
	if err != nil {
		return nil, err
	}
	for i := range again {
		ran := func(r Report) bool { return r.ID == again[i].ID && running(r) }
		if running(again[i]) && slices.ContainsFunc(reports, ran) {
			again[i].Status, again[i].Error = manifest.Failed, interruptedError
		}
	}
	return again, nil
}

func (c *Catalog) recordedRuns(ctx context.Context, limit int) ([]Report, error) {
	var rows []struct {
		Status manifest.Status `db:"status"`
		Report string          `db:"report"`
	}
	err := c.config.DB.SelectContext(ctx, &rows, c.config.DB.Rebind("SELECT status, report FROM cmsjobs_backups "+
		"ORDER BY started_at DESC, id DESC LIMIT ?"), limit)
	if err != nil {
		return nil, fmt.Errorf("reading the backups' history: %w", err)
	}
	reports := make([]Report, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal([]byte(row.Report), &reports[i]); err != nil {
			return nil, fmt.Errorf("reading the backups' history: %w", err)
		}
		reports[i].Status = row.Status // a verification since then may have changed it
	}
	return reports, nil
}
