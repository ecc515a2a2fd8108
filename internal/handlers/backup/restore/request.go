package restore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/fileset"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// Request says what is restored and where to.
type Request struct {
	Backup catalog.Stored
	// Database restores all tables, or only Tables (MySQL, own dumper).
	Database bool
	Tables   []string
	// Files restores all files, or only those that fit Paths (patterns on
	// LABEL/PATH). Files that the backup does not have stay.
	Files bool
	Paths []string
	// IntoDSN is another database; "" is the CMS's. Of a SQLite backup it is the path of
	// a new file.
	IntoDSN string
	// IntoFolder is another folder, in which LABEL/PATH are made; "" are the
	// CMS's own.
	IntoFolder string
	// Collations become others, where the server knows the dump's own or not.
	Collations map[string]string
	// Confirm is the plan's Token, typed by a person.
	Confirm string
	// TrustUnknown restores a backup that this installation never made, or that
	// was altered.
	TrustUnknown bool
	// AllowExecutable restores files that a web server could execute too.
	AllowExecutable bool
	// AllowFailed restores a backup whose newest verification failed, if its archive is
	// still the one that was made.
	AllowFailed bool
	// SkipSafety leaves out the backup that is made before.
	SkipSafety bool

	// contents are loaded instead of the backup's: those of a database that was brought to a
	// later moment.
	contents func(ctx context.Context, load dump.Sink) (dump.Summary, error)
	// Begin is called when nothing else restores or backs up, before anything
	// is done; its error ends the restore. nil is nothing to ask.
	Begin func(context.Context) error
}

// check refuses what cannot be restored.
func (r *Restorer) check(q Request) error {
	if err := errors.Join(q.checkContents(), fileset.CheckPatterns(q.Paths)); err != nil {
		return err
	}
	if err := q.checkStatus(); err != nil {
		return err
	}
	switch {
	case len(q.Tables) > 0 && q.Backup.Engine != database.MySQL:
		return fmt.Errorf("single tables can be restored from MySQL backups only; restore into another database " +
			"(IntoDSN) and copy from there")
	case slices.Contains(q.Tables, journalTable):
		return fmt.Errorf("the table %s says how far the restore itself came: it cannot be restored", journalTable)
	case q.Database && r.config.DSN == "" && q.IntoDSN == "":
		return errors.New("no DSN is configured to restore into")
	}
	return nil
}

// inPlaceDatabase says whether the site's own database is restored, and inPlaceFiles
// whether its own folders are.
func (q Request) inPlaceDatabase() bool { return q.Database && q.IntoDSN == "" }

func (q Request) inPlaceFiles() bool { return q.Files && q.IntoFolder == "" }

// checkContents refuses a request for what the backup does not hold.
func (q Request) checkContents() error {
	switch {
	case !q.Database && !q.Files:
		return errors.New("nothing to restore: name the database, tables or files")
	case q.Database && !q.Backup.Database:
		return errors.New("this backup holds no database")
	case q.Files && !q.Backup.Files:
		return errors.New("this backup holds no files")
	}
	return nil
}

// checkStatus refuses a backup that is not complete, or whose verification failed.
func (q Request) checkStatus() error {
	switch b := q.Backup; {
	case b.Status == manifest.Failed && b.Verification != nil && !q.AllowFailed:
		return fmt.Errorf("this backup is failed: %s. Take a complete one (cmsjobs backup list), or restore it all "+
			"the same with --allow-failed", b.Reason())
	case b.Status != manifest.Complete && !(b.Status == manifest.Failed && b.Made == manifest.Complete):
		return fmt.Errorf("this backup is %s: %s. Take a complete one, or download the archive and take from it what "+
			"you need", b.Status, b.Reason())
	}
	return nil
}

func (q Request) wants(name string) bool {
	return len(q.Paths) == 0 || fileset.MatchesAny(q.Paths, name)
}

func (r *Restorer) targetDSN(q Request) string {
	if q.IntoDSN != "" {
		return q.IntoDSN
	}
	return r.config.DSN
}

// targetName is the name of the database that would be written to.
func (r *Restorer) targetName(q Request) string {
	dsn := r.targetDSN(q)
	if c, err := mysql.ParseDSN(dsn); q.Backup.Engine == database.MySQL && err == nil {
		return c.DBName
	}
	if u, err := url.Parse(dsn); err == nil && u.Path != "" {
		if q.Backup.Engine == database.SQLite {
			return path.Base(u.Path)
		}
		return strings.TrimPrefix(u.Path, "/")
	}
	return q.Backup.Engine
}

// serviceTable says whether a table is this service's own: its queue, its
// history, what it knows of backups.
func (r *Restorer) serviceTable(table string) bool {
	return strings.HasPrefix(table, "cmsjobs_") || table == r.config.JobsTable
}

// replaces says whether a restore replaces a table. In the CMS's own database
// the service's tables stay as they are, unless they are named: it works with
// them at that moment, and work of then is not to be done again.
func (q Request) replaces(r *Restorer, table string) bool {
	if len(q.Tables) > 0 {
		return slices.Contains(q.Tables, table)
	}
	return q.IntoDSN != "" || !r.serviceTable(table)
}

// Token is short enough to be typed, and another for another target or choice.
func (r *Restorer) Token(q Request) string {
	name := "files"
	if q.Database {
		name = r.targetName(q)
	}
	// strings and bools always encode
	data, _ := json.Marshal([]any{q.Backup.ID, q.Backup.SHA256, q.Backup.Repository, q.Database, q.Tables, q.Files,
		q.Paths, q.IntoDSN,
		q.IntoFolder, q.TrustUnknown, q.AllowExecutable, q.AllowFailed, q.Collations})
	sum := sha256.Sum256(data)
	return name + "-" + hex.EncodeToString(sum[:3])
}
