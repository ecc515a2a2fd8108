package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"filippo.io/age/agessh"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/notify"
	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/sqlstore"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// uploadsLabel is the folder's name in archives that holds the CMS's uploads.
const uploadsLabel = "uploads"

// backupHandler joins the making, proving and restoring of backups.
func backupHandler(registry *jobs.Registry, r *rooms) error {
	places, err := r.backupPlaces()
	if err != nil {
		return usageError{err}
	}
	if len(places) == 0 {
		r.log.Debug("no backups here: where they go is not known (backup.dir, or cms.dir)")
		return nil
	}
	c := backup.Config{Site: r.site, DB: r.ownDB, Destinations: places, Version: version, Breaker: r.breakers,
		Finished: r.backupFinished, Now: r.now, Logger: r.log}
	if c.Options, err = backupOptions(r.config.Backup); err != nil {
		return usageError{err}
	}
	if dsn := r.config.Database.DSN; dsn != "" {
		if c.DSN, err = sqlstore.DriverDSN(dsn.Reveal()); err != nil {
			return usageError{err}
		}
	}
	if dsn := r.config.Backup.VerifyDSN; dsn != "" {
		if c.ScratchDSN, err = sqlstore.DriverDSN(dsn.Reveal()); err != nil {
			return usageError{fmt.Errorf("backup.verify_dsn: %w", err)}
		}
	}
	if r.site.Root != "" {
		c.Files = []backup.FileSet{{Label: uploadsLabel, Store: &laterFolder{dir: r.uploads()}}}
	}
	h, err := backup.New(c)
	if err != nil {
		return usageError{err}
	}
	h.Register(registry)
	r.handlers.backup = h
	return nil
}

// uploads is the folder of the CMS's uploads; the usual one where its settings
// cannot be asked or name a bucket.
func (r *rooms) uploads() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if settings, err := r.site.Settings(ctx); err == nil {
		if place, err := r.site.MediaPlace(settings); err == nil && place.Folder != "" {
			return place.Folder
		}
	}
	return filepath.Join(r.site.Public(), "storage")
}

// backupPlaces are where backups go, by name.
func (r *rooms) backupPlaces() (map[string]storage.Store, error) {
	c := r.config.Backup
	places := map[string]storage.Store{}
	if slices.Contains(c.To, "s3") {
		bucket, err := openS3(r.config.Storage.S3)
		if err != nil {
			return nil, fmt.Errorf("backup.to names s3: %w (storage.s3)", err)
		}
		places["s3"] = bucket
	}
	if slices.Contains(c.To, "local") && (c.Dir != "" || r.site.Root != "") {
		dir := c.Dir
		if dir == "" {
			dir = filepath.Join(r.site.Storage(), "app", "cmsjobs-backups")
		}
		places["local"] = &laterFolder{dir: dir}
	}
	if c.Profile != "own" && r.site.Root != "" {
		folder := &laterFolder{dir: filepath.Join(r.site.Storage(), "app", "backup")}
		places["botble"] = backup.NewBotble(folder, uploadsLabel, r.site.Zone, true)
	}
	if c.Profile == "botble" {
		delete(places, "local")
	}
	return places, nil
}

// openS3 opens the bucket of the configuration.
func openS3(c config.S3) (*storage.S3, error) {
	return storage.NewS3(storage.S3Config{Bucket: c.Bucket, Prefix: strings.Trim(c.Prefix, "/"), Region: c.Region, Endpoint: c.Endpoint,
		AccessKey: c.AccessKey, SecretKey: c.SecretKey.Reveal(), PathStyle: c.PathStyle})
}

func backupOptions(c config.Backup) (backup.Options, error) {
	o := backup.Options{
		Compression: archive.Format(c.Format), Include: c.Include, Exclude: c.Exclude, ExcludeTables: c.NoTables, EmptyTables: c.NoRows,
		Tool: c.Tool, Throttle: int64(c.Throttle), StallTimeout: c.Stall, MinFree: int64(c.Freespace), NotifySuccess: true,
		Retention: backup.Retention{Keep: c.Keep, Daily: c.Daily, Weekly: c.Weekly, Monthly: c.Monthly, MaxBytes: int64(c.MaxTotal)},
		Verify:    map[string]backup.Level{"restore": backup.LevelRestored, "read": backup.LevelParsed, "off": backup.LevelNone}[c.Verify],
		Health:    backup.HealthLimits{MaxAge: c.Alert},
	}
	if c.Alert == 0 {
		o.Health.MaxAge = math.MaxInt64
	}
	for _, key := range c.Age {
		recipient, err := ageRecipient(key)
		if err != nil {
			return o, fmt.Errorf("backup.age_recipients: %w", err)
		}
		o.Recipients = append(o.Recipients, recipient)
	}
	return o, nil
}

func ageRecipient(key string) (age.Recipient, error) {
	if strings.HasPrefix(key, "ssh-") {
		return agessh.ParseRecipient(key)
	}
	return age.ParseX25519Recipient(key)
}

// backupFinished tells the metrics, the subscribers, and people when a backup
// is bad.
func (r *rooms) backupFinished(ctx context.Context, report backup.Report) {
	if r.metrics != nil && report.Status == backup.Good {
		r.metrics.BackedUp(report.Finished, report.Size)
		if report.Proof != nil && report.Proof.OK {
			r.metrics.Verified(report.Proof.Finished)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	if err := r.tellOfBackup(ctx, report); err != nil {
		r.log.Error("nobody could be told how the backup ended", "backup", report.ID, "status", report.Status, "error", err)
	}
}

func (r *rooms) tellOfBackup(ctx context.Context, report backup.Report) error {
	var next []jobs.New
	if h := r.handlers.webhook; h != nil && report.Status == backup.Good {
		deliveries, err := h.Publish(ctx, webhook.BackupCompleted, report)
		if err != nil {
			return err
		}
		next = append(next, deliveries...)
	}
	if text := badBackup(report); text != "" {
		next = append(next, notify.BackupBad(text, r.pageURL("/admin/backups")))
	}
	if len(next) == 0 {
		return nil
	}
	_, err := r.Enqueue(ctx, next...)
	return err
}

// badBackup says what is wrong with a backup, "" when nothing is.
func badBackup(report backup.Report) string {
	switch {
	case report.Error != "":
		return fmt.Sprintf("Backup %s is %s: %s", report.ID, report.Status, report.Error)
	case report.Status != backup.Good:
		return fmt.Sprintf("Backup %s is %s: %s", report.ID, report.Status, strings.TrimSpace(report.DatabaseError+" "+report.FilesError))
	case report.Proof != nil && !report.Proof.OK:
		return fmt.Sprintf("Backup %s could not be proven: %s", report.ID, strings.Join(report.Proof.Problems, "; "))
	}
	return ""
}
