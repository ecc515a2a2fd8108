package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/health"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/notify"
	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// backupFinished tells the subscribers, and people when a backup
// is bad.
func (r *Services) backupFinished(ctx context.Context, report catalog.Report) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	if err := r.tellOfBackup(ctx, report); err != nil {
		r.Log.Error("no notification of the backup's end was sent", "event", "backup.notify_failed",
			"backup", report.ID, "status", report.Status, "error", err)
	}
}

// backupsWatched tells people what a look at the backups showed.
func (r *Services) backupsWatched(ctx context.Context, w health.Watched) {
	text := w.Text()
	if text == "" {
		return
	}
	n := notify.BackupsWatched(text, len(w.Health.Warnings) > 0, w.Digest != nil, r.pageURL("/admin/backups"))
	if _, err := r.Enqueue(ctx, n); err != nil {
		r.Log.Error("no notification of the backups' status was sent", "event", "backup.notify_failed",
			"warnings", len(w.Health.Warnings), "error", err)
	}
}

func (r *Services) tellOfBackup(ctx context.Context, report catalog.Report) error {
	var next []jobs.Spec
	if h := r.Handlers.Webhook; h != nil && report.Status == manifest.Complete {
		deliveries, err := h.Publish(ctx, webhook.BackupCompleted, report)
		if err != nil {
			return err
		}
		next = append(next, deliveries...)
	}
	if text := badBackup(report); text != "" {
		next = append(next, notify.BackupBad(text, r.pageURL("/admin/backups")))
	} else if r.Config.Backup.Notify == "always" {
		next = append(next, notify.BackupMade(goodBackup(report), r.pageURL("/admin/backups")))
	}
	if len(next) == 0 {
		return nil
	}
	_, err := r.Enqueue(ctx, next...)
	return err
}

// goodBackup says what a complete backup holds.
func goodBackup(report catalog.Report) string {
	verification := "It was not read back."
	if report.Verification != nil {
		verification = "Verification: " + VerificationText(*report.Verification) + "."
	}
	return fmt.Sprintf("Backup %s holds %d tables with %d rows and %d files in %s. %s", report.ID, report.Tables, report.Rows, report.Files, humanize.IBytes(uint64(report.Size)), verification)
}

// badBackup says what is wrong with a backup, "" when nothing is.
func badBackup(report catalog.Report) string {
	switch {
	case report.Error != "":
		return fmt.Sprintf("Backup %s is %s: %s", report.ID, report.Status, report.Error)
	case report.Status != manifest.Complete:
		return fmt.Sprintf("Backup %s is %s: %s", report.ID, report.Status, strings.TrimSpace(report.DatabaseError+" "+report.FilesError))
	case report.Verification != nil && !report.Verification.OK:
		return fmt.Sprintf("Backup %s could not be verified: %s", report.ID, strings.Join(report.Verification.Problems, "; "))
	}
	return ""
}
