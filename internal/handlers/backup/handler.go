package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"filippo.io/age"
	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/botble"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/browse"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/fileset"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/health"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/lock"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/temporary"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/verify"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Breaker holds jobs back while a dependency is out.
type Breaker interface {
	// Allow returns an error marked by jobs.RetryAfter while it is out.
	Allow(ctx context.Context, dependency string) error
	// Record tells how a use ended; nil is success.
	Record(ctx context.Context, dependency string, err error) error
}

// Config is what a Handler needs. Zero fields get the defaults named.
type Config struct {
	// Site is the CMS. Required.
	Site *cms.Site
	// DB holds cmsjobs_backup*. Required.
	DB *sqlx.DB
	// DSN opens the CMS's database for dumps and restores; its form is that of
	// Site.DB's driver. Required for backups of the database.
	DSN string
	// TempDBDSN names another server for restores that verify a backup; "" is
	// the CMS's own.
	TempDBDSN string
	// LogDSN opens the server with an account that may read its binary log; "" is DSN.
	LogDSN string
	// Destinations by name. At least one is required.
	Destinations map[string]storage.Store
	// Files are the folders to back up.
	Files []fileset.Set
	// Version of this program, for the manifest.
	Version string
	Options Options
	// Finished receives every backup that ended; nil is nobody.
	Finished func(context.Context, catalog.Report)
	// Watched receives what backup.monitor saw; nil is nobody.
	Watched func(context.Context, health.Watched)
	// Working is called when a backup, a verification or a restore begins, and what it
	// returns when that ends; nil is nobody. They may be within each other.
	Working func() (done func())
	// Scheduled says whether the schedule enqueued a job of that UUID; nil says
	// that of none. Other jobs are held to Options.MinInterval.
	Scheduled func(ctx context.Context, uuid string) (bool, error)
	// ManifestCache is a folder for the last manifest of repositories whose age identity
	// is not here; "" where there is none.
	ManifestCache string
	// StageDir is where a restore keeps its private copy of the archive; "" is
	// the folder for temporary files.
	StageDir string
	// Breaker may be nil: then nothing is held back.
	Breaker Breaker
	// Orders keeps what restores are to do; nil where jobs are only listed.
	Orders jobs.OrderBook
	Now    func() time.Time
	Logger *slog.Logger
}

// Options are the operator's choices.
type Options struct {
	// Prefix of archives' keys, "" by default; a folder ends in "/".
	Prefix string
	// Form says where files, and the database beside them, are stored: InRepository
	// (default) or InArchive.
	Form Form
	// FullEvery is the time after which a scheduled backup has the files in its archive,
	// though Form is InRepository; 0 is never.
	FullEvery time.Duration
	// Compression is archive.TarZstd (default), TarGzip or Zip.
	Compression archive.Format
	// Recipients encrypt archives; Identities open them again to verify and to
	// restore. A service that only makes backups needs no identity.
	Recipients []age.Recipient
	Identities []age.Identity
	// Include and Exclude are patterns on LABEL/PATH: "*" stays in a folder,
	// "**" does not. No Include means everything.
	Include, Exclude []string
	// ExcludeTables are left out; EmptyTables are dumped without rows (default
	// cache, cache_locks, sessions). Names without the CMS's prefix; "*" allowed.
	ExcludeTables, EmptyTables []string
	// Tool that dumps MySQL: "own" (default) or "mysqldump".
	Tool string
	// Throttle limits reading, in bytes a second; 0 means no limit.
	Throttle int64
	// StallTimeout ends a backup in which nothing moves (default 10 min).
	StallTimeout time.Duration
	// Retention says which backups stay.
	Retention retention.Rules
	// MaxBytes is the space that the backups at one destination may take; 0 is no
	// limit. A backup that would not fit is refused: none goes to make space.
	MaxBytes int64
	// Places has the retention and the space of destinations that have their own, by
	// name.
	Places map[string]PlaceLimits
	// MinInterval is the least time between two backups that are neither
	// scheduled nor made from the command line (default 1 h; negative: none).
	MinInterval time.Duration
	// WithSecrets dumps the rows of tables that hold secrets of the service
	// (see SecretTables) too.
	WithSecrets bool
	// TrustedKeys are the public keys of other installations whose backups are
	// restored and pruned like our own.
	TrustedKeys []string
	// Verify says how each backup is verified right after it was made: LevelNone,
	// LevelBytes, LevelParsed or LevelRestored (default).
	Verify manifest.Level
	// VerifyBudget limits a verification (default 1 h, no limit of size).
	VerifyBudget   time.Duration
	VerifyMaxBytes int64
	// Log says whether the binary log is archived behind backups: LogAuto (default), LogOn
	// or LogOff.
	Log LogMode
	// LogEvery is how often what the server wrote is archived (default 1 min).
	LogEvery time.Duration
	// MinFree is the space that must stay on a local destination's disk (default 256 MiB).
	MinFree int64
	// Health says when to warn.
	Health health.Limits
	// NotifySuccess tells Finished about complete backups too, not only about others.
	NotifySuccess bool
}

// Handler makes, verifies, prunes and restores backups.
type Handler struct {
	*catalog.Catalog
	*temporary.Keeper
	*verify.Verifier
	*restore.Restorer
	*health.Checker
	*browse.Browser
	c     Config
	locks *lock.Table
}

// New checks the configuration.
func New(c Config) (*Handler, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Working == nil {
		c.Working = func() func() { return func() {} }
	}
	o := &c.Options
	o.setDefaults()
	locks := &lock.Table{DB: c.DB, Logger: c.Logger}
	known := catalog.New(catalog.Config{Running: locks.Busy, DB: c.DB, Destinations: c.Destinations, Prefix: o.Prefix,
		TrustedKeys: o.TrustedKeys, Recipients: o.Recipients, Identities: o.Identities,
		ManifestCache: c.ManifestCache,
		Unverified:    o.Verify == manifest.LevelNone, Now: c.Now, Logger: c.Logger})
	keeper := temporary.New(temporary.Config{DSN: c.DSN, ServerDSN: c.TempDBDSN, CopyDir: c.StageDir, Locks: locks,
		Logger: c.Logger})
	verifier := verify.New(verify.Config{Catalog: known, Temporary: keeper, Identities: o.Identities, Level: o.Verify,
		Budget: o.VerifyBudget, MaxBytes: o.VerifyMaxBytes, Working: c.Working, Now: c.Now})
	h := &Handler{Catalog: known, Keeper: keeper, Verifier: verifier, Browser: browse.New(known), c: c, locks: locks}
	h.Checker = health.New(health.Config{Catalog: known, Temporary: keeper, Limits: o.Health, Database: c.DSN != "",
		Files: len(c.Files) > 0, Now: c.Now})
	h.Restorer = restore.New(restore.Config{DSN: c.DSN, TablePrefix: c.Site.Prefix,
		JobsTable: c.Site.JobsTable(), DB: c.DB, Files: c.Files,
		Catalog: known, Temporary: keeper, Verifier: verifier,
		Locks: locks, Safety: h.safety, Working: c.Working, Logger: c.Logger})
	return h, nil
}

// check says what is missing or wrong.
func (c Config) check() error {
	switch {
	case c.Site == nil || c.DB == nil:
		return errors.New("backup: Site and DB are required")
	case len(c.Destinations) == 0:
		return errors.New("backup: no destination is configured: name a folder or a bucket")
	case c.Now == nil || c.Logger == nil:
		return errors.New("backup: Now and Logger are required")
	}
	labels := map[string]bool{}
	for _, f := range c.Files {
		if storage.CheckKey(f.Label) != nil || labels[f.Label] {
			return fmt.Errorf("backup: %q is no label of files, or is used twice", f.Label)
		}
		labels[f.Label] = true
	}
	for name, d := range c.Destinations {
		if _, plain := d.(*botble.Store); plain && len(c.Options.Recipients) > 0 {
			return fmt.Errorf("backup: the destination %s cannot be encrypted; leave it or the age recipients out",
				name)
		}
	}
	for _, key := range c.Options.TrustedKeys {
		if err := manifest.CheckKey(key); err != nil {
			return err
		}
	}
	return errors.Join(fileset.CheckPatterns(c.Options.Include, c.Options.Exclude),
		checkTool(cmp.Or(c.Options.Tool, ownTool)))
}

// ownTool dumps MySQL without the installed client.
const ownTool = "own"

func (o *Options) setDefaults() {
	o.Compression = cmp.Or(o.Compression, archive.TarZstd)
	o.Form = cmp.Or(o.Form, InRepository)
	if o.EmptyTables == nil {
		o.EmptyTables = []string{"cache", "cache_locks", "sessions"}
	}
	o.Tool = cmp.Or(o.Tool, ownTool)
	o.Log = cmp.Or(o.Log, LogAuto)
	o.LogEvery = cmp.Or(o.LogEvery, time.Minute)
	if o.StallTimeout <= 0 {
		o.StallTimeout = 10 * time.Minute
	}
	o.Verify = cmp.Or(o.Verify, manifest.LevelRestored)
	if o.VerifyBudget <= 0 {
		o.VerifyBudget = time.Hour
	}
	o.Health.MaxUnverified = cmp.Or(o.Health.MaxUnverified, 8*24*time.Hour)
	o.MinFree = cmp.Or(o.MinFree, 256<<20)
	o.MinInterval = cmp.Or(o.MinInterval, time.Hour)
	o.Retention = o.Retention.WithDefaults()
	o.Places = maps.Clone(o.Places)
	for name, p := range o.Places {
		p.Retention = p.Retention.WithDefaults()
		o.Places[name] = p
	}
}

// PlaceLimits are a destination's own.
type PlaceLimits struct {
	Retention retention.Rules
	MaxBytes  int64 // 0 is no limit
}

// limitsOf are those of a destination.
func (o Options) limitsOf(destination string) PlaceLimits {
	if own, has := o.Places[destination]; has {
		return own
	}
	return PlaceLimits{o.Retention, o.MaxBytes}
}

func checkTool(tool string) error {
	if tool != ownTool && tool != "mysqldump" {
		return fmt.Errorf("backup: %q is no tool to dump with: own or mysqldump", tool)
	}
	return nil
}
