package app

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"filippo.io/age/agessh"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/botble"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/fileset"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/health"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/storage"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/backups"
)

// The folders' names in archives: uploads is the CMS's upload folder, media
// the bucket that it may have instead.
const (
	uploadsLabel = "uploads"
	mediaLabel   = "media"
)

// backupHandler builds the handler of backups.
func backupHandler(registry *jobs.Registry, r *Services) error {
	places, err := r.backupPlaces()
	if err != nil {
		return UsageError{Err: err}
	}
	if len(places) == 0 {
		r.Log.Debug("no backups here: where they go is not known (backup.dir, or cms.dir)", "event", "backup.off")
		return nil
	}
	c := backup.Config{Site: r.Site, DB: r.OwnDB, Destinations: places, Version: r.Version, Breaker: r.Breakers,
		Orders: r.Orders, Working: r.collector.Press,
		Scheduled: r.scheduledJob, Finished: r.backupFinished, Watched: r.backupsWatched, Now: r.Now, Logger: r.Log}
	if c.Options, err = backupOptions(r.Config.Backup, r.Config.Database.JobsTable); err != nil {
		return UsageError{Err: err}
	}
	if r.Site.Root != "" {
		c.ManifestCache = filepath.Join(r.Site.Storage(), "app", "cmsjobs-manifests")
	}
	if dsn := r.Config.Database.DSN; dsn != "" {
		if c.DSN, err = database.DriverDSN(dsn.Reveal()); err != nil {
			return UsageError{Err: err}
		}
	}
	if dsn := r.Config.Backup.VerifyDSN; dsn != "" {
		if c.TempDBDSN, err = database.DriverDSN(dsn.Reveal()); err != nil {
			return UsageError{Err: fmt.Errorf("backup.verify_dsn: %w", err)}
		}
	}
	setting, dsn := "backup.log_dsn", r.Config.Backup.LogDSN
	if dsn == "" {
		setting, dsn = "feed.dsn", r.Config.Feed.DSN
	}
	if dsn != "" && c.DSN != "" {
		if c.LogDSN, err = database.DriverDSN(dsn.Reveal()); err != nil {
			return UsageError{Err: fmt.Errorf("%s: %w", setting, err)}
		}
	}
	if c.Files, err = r.backupFiles(); err != nil {
		return err
	}
	h, err := backup.New(c)
	if err != nil {
		return UsageError{Err: err}
	}
	h.Register(registry)
	r.Handlers.Backup = h
	return nil
}

// scheduledJob says whether the schedule enqueued a job, rather than a person or
// a row.
func (r *Services) scheduledJob(ctx context.Context, uuid string) (bool, error) {
	return r.Store.Ticked(ctx, uuid)
}

// backupFiles are the folders of uploads and, where the CMS keeps its media in
// a bucket, that bucket.
func (r *Services) backupFiles() ([]fileset.Set, error) {
	var sets []fileset.Set
	if r.Site.Application().Other() {
		folders, err := r.Site.Uploads()
		for _, u := range folders {
			sets = append(sets, fileset.Set{Label: u.Label, Store: storage.NewLazyLocal(u.Folder)})
		}
		return sets, err
	}
	if r.Site.Root != "" {
		sets = append(sets, fileset.Set{Label: uploadsLabel, Store: storage.NewLazyLocal(r.uploads())})
	}
	place, err := r.mediaPlace()
	if err != nil {
		r.Log.Warn("the CMS's media storage is unknown; backups hold its upload folder only",
			"event", "backup.media_unknown", "error", err)
	}
	if err != nil || place.Folder != "" {
		return sets, nil
	}
	bucket, err := storage.NewS3(r.mediaBucket(place, place.KeyPrefix))
	if err != nil {
		return nil, fmt.Errorf("the bucket of the CMS's media cannot be backed up: %w", err)
	}
	return append(sets, fileset.Set{Label: mediaLabel, Store: bucket}), nil
}

// mediaPlace is where the CMS keeps its media.
func (r *Services) mediaPlace() (cms.MediaPlace, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	settings, err := r.Site.Settings(ctx)
	if err != nil {
		return cms.MediaPlace{}, err
	}
	return r.Site.MediaPlace(settings)
}

// uploads is the folder of the CMS's uploads; the usual one where its settings
// cannot be asked or name a bucket.
func (r *Services) uploads() string {
	if place, err := r.mediaPlace(); err == nil && place.Folder != "" {
		return place.Folder
	}
	return filepath.Join(r.Site.Public(), "storage")
}

// backupPlaces are where backups go, by name.
func (r *Services) backupPlaces() (map[string]storage.Store, error) {
	c := r.Config.Backup
	places := map[string]storage.Store{}
	if slices.Contains(c.To, "s3") {
		bucket, err := openBackups(r.Config.Storage.S3, c.Places["s3"])
		if err != nil {
			return nil, fmt.Errorf("backup.to names s3: %w (storage.s3)", err)
		}
		places["s3"] = bucket
	}
	if slices.Contains(c.To, "sftp") {
		folder, err := OpenSFTP(r.Config.Storage.SFTP, int64(c.Places["sftp"].Bandwidth))
		if err != nil {
			return nil, fmt.Errorf("backup.to names sftp: %w (storage.sftp)", err)
		}
		places["sftp"] = folder
	}
	if slices.Contains(c.To, "local") && (c.Dir != "" || r.Site.Root != "") {
		dir := c.Dir
		if dir == "" {
			dir = filepath.Join(r.Site.Storage(), "app", "cmsjobs-backups")
		}
		places["local"] = storage.NewLazyLocal(dir)
	}
	if c.Profile != "own" && r.Site.Root != "" && !r.Site.Application().Other() {
		folder := storage.NewLazyLocal(filepath.Join(r.Site.Storage(), "app", "backup"))
		places["botble"] = botble.New(folder, uploadsLabel, r.Site.Zone, true)
	}
	if c.Profile == "botble" {
		delete(places, "local")
	}
	return places, nil
}

func backupOptions(c config.Backup, jobsTable string) (backup.Options, error) {
	o := backup.Options{
		Form: backup.Form(c.Form), FullEvery: c.FullEvery,
		Compression: archive.Format(c.Format), Include: c.Include, Exclude: c.Exclude, ExcludeTables: c.NoTables,
		EmptyTables: slices.Clone(c.NoRows),
		Tool:        c.Tool, Throttle: int64(c.Throttle), StallTimeout: c.Stall, MinFree: int64(c.Freespace),
		NotifySuccess: true,
		Retention:     retention.Rules{Keep: c.Keep, Weekly: c.Weekly, Monthly: c.Monthly, MinAge: orNone(c.MinAge)},
		Places:        placeLimits(c),
		MaxBytes:      int64(c.MaxTotal), MinInterval: orNone(c.MinInterval), TrustedKeys: c.TrustedKeys,
		WithSecrets: c.WithSecrets,
		Verify: map[string]manifest.Level{"restore": manifest.LevelRestored, "read": manifest.LevelParsed,
			"off": manifest.LevelNone}[c.Verify],
		Log: backup.LogMode(c.Log), LogEvery: c.LogEvery,
		VerifyMaxBytes: int64(c.VerifyMax), VerifyBudget: c.Budget,
		Health: health.Limits{MaxAge: orNever(c.Alert), MaxUnverified: orNever(c.Unverified)},
	}
	if slices.Contains(o.EmptyTables, "jobs") { // whatever its name is here
		o.EmptyTables = append(o.EmptyTables, jobsTable)
	}
	for _, file := range c.Identity {
		identities, err := readIdentities(file)
		if err != nil {
			return o, fmt.Errorf("backup.age_identities: %w", err)
		}
		o.Identities = append(o.Identities, identities...)
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

// orNone reads 0 as none, which is not the default.
func orNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// orNever reads 0 as no limit.
func orNever(d time.Duration) time.Duration {
	if d == 0 {
		return math.MaxInt64
	}
	return d
}

// readIdentities reads the keys of a file of age, or one of SSH.
func readIdentities(file string) ([]age.Identity, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(data, []byte("-----BEGIN")) {
		one, err := agessh.ParseIdentity(data)
		if err != nil {
			return nil, fmt.Errorf("%s holds no SSH key that opens archives: %w", file, err)
		}
		return []age.Identity{one}, nil
	}
	identities, err := age.ParseIdentities(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s holds no age identity: %w", file, err)
	}
	return identities, nil
}

func ageRecipient(key string) (age.Recipient, error) {
	if strings.HasPrefix(key, "ssh-") {
		return agessh.ParseRecipient(key)
	}
	return age.ParseX25519Recipient(key)
}

// placeLimits are the places whose retention differs from the general one.
func placeLimits(c config.Backup) map[string]backup.PlaceLimits {
	limits := map[string]backup.PlaceLimits{}
	for name, p := range c.Places {
		limits[name] = backup.PlaceLimits{MaxBytes: int64(cmp.Or(p.MaxTotal, c.MaxTotal)),
			Retention: retention.Rules{Keep: cmp.Or(p.Keep, c.Keep), Weekly: cmp.Or(p.Weekly, c.Weekly),
				Monthly: cmp.Or(p.Monthly, c.Monthly), MinAge: orNone(cmp.Or(p.MinAge, c.MinAge))}}
	}
	return limits
}

// Moments says which spans of time can be restored.
func (b webBackups) Moments(ctx context.Context) (list []backups.Moments, err error) {
	reach, err := b.h.LogReach(ctx)
	for _, name := range slices.Sorted(maps.Keys(reach)) {
		windows := reach[name].Windows
		for i, w := range windows {
			m := backups.Moments{Destination: name, From: w.From.UTC(), Until: w.Until.UTC(), Bytes: reach[name].Bytes}
			if i == len(windows)-1 {
				m.Missing = reach[name].Missing
			}
			list = append(list, m)
		}
	}
	return list, reached(err)
}
