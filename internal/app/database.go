package app

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/wake"
	"github.com/cmsjobs/cmsjobs/migrations"
)

func (r *Services) OpenDatabases(ctx context.Context) (err error) {
	d := r.Config.Database
	if d.DSN == "" {
		return Usagef("no database is configured: name the CMS's folder (--cms /var/www/site), or set database.dsn " +
			"(--dsn, CMSJOBS_DATABASE_DSN).\nTo look around without one: cmsjobs demo")
	}
	options := database.ConnectOptions{MaxConnections: d.MaxOpen, KeepJournal: r.looking}
	if r.DB, err = openDatabase(ctx, d.DSN, options); err != nil {
		return err
	}
	r.OwnDB = r.DB
	if d.OwnDSN != "" {
		r.OwnDB, err = openDatabase(ctx, d.OwnDSN, options)
	}
	r.WakeDir = wake.Dir(identity(d.DSN))
	return err
}

func openDatabase(ctx context.Context, dsn config.DSN, o database.ConnectOptions) (*sqlx.DB, error) {
	if err := sqliteFileThere(dsn); err != nil {
		return nil, DatabaseError{Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	o.DSN = dsn.Reveal()
	db, err := database.Connect(ctx, o)
	if err != nil {
		return nil, DatabaseError{Err: err}
	}
	return db, nil
}

// sqliteFileThere refuses a path without a file: SQLite would make an empty
// database and everything would look lost.
func sqliteFileThere(dsn config.DSN) error {
	if path, ok := dsn.SQLiteFile(); ok {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("there is no SQLite database: %w", err)
		}
		return nil
	}
	_, err := dsn.Driver()
	return err
}

// identity names a database for wake-ups: where it is, without a password and
// options, so that all processes of a host that use it meet.
func identity(dsn config.DSN) string {
	driver, err := dsn.Driver()
	if err != nil {
		return "unknown"
	}
	if path, ok := dsn.SQLiteFile(); ok {
		if absolute, err := filepath.Abs(path); err == nil {
			path = absolute
		}
		return driver + " " + path
	}
	text, _, _ := strings.Cut(dsn.Reveal(), "?")
	return driver + " " + text[strings.LastIndex(text, "@")+1:]
}

// Owned is something that one site has for itself: two sites with the same would run
// each other's jobs or delete each other's files.
type Owned struct {
	Key  string // the setting that names it: database, backup.dir
	What string // which one it is, without secrets
}

// OwnedBy lists what a site has for itself.
func OwnedBy(l *config.Loaded) []Owned {
	d, bucket := l.Database, l.Storage.S3
	var list []Owned
	if d.DSN != "" {
		list = append(list, Owned{"database", "jobs " + identity(d.DSN) + " " + d.Prefix + d.JobsTable},
			Owned{"database", "own " + identity(cmp.Or(d.OwnDSN, d.DSN))})
	}
	for key, dir := range map[string]string{"cms.dir": l.CMS.Dir, "backup.dir": l.Backup.Dir,
		"sitemap.dir": l.Sitemap.Dir} {
		if dir == "" {
			continue
		}
		if absolute, err := filepath.Abs(dir); err == nil {
			dir = absolute
		}
		list = append(list, Owned{key, key + " " + dir})
	}
	if slices.Contains(l.Backup.To, "s3") && bucket.Bucket != "" {
		list = append(list, Owned{"storage.s3.prefix", strings.Join([]string{"bucket", bucket.Endpoint, bucket.Bucket,
			strings.Trim(bucket.Prefix, "/")}, " ")})
	}
	return list
}

// migrate makes our own tables where the configuration lets us.
func (r *Services) migrate(ctx context.Context) error {
	if !r.Config.Database.Migrate {
		return nil
	}
	if err := r.MakeTables(ctx); err != nil {
		return DatabaseError{Err: fmt.Errorf("%w\nWithout the right to make tables: set database.own_dsn to a "+
			"separate database, or database.migrate to false and run \"cmsjobs migrate up\" as its owner", err)}
	}
	return nil
}

// HasPriorities says whether the jobs table has a column for priorities.
func (r *Services) HasPriorities() bool { return r.tables.Layout.Name() == tables.Extended }

// MakeTables makes what is missing of our tables. Processes that start at the same
// moment on a fresh database may get into each other's way (PostgreSQL refuses the later
// one's transaction): the later one looks again.
func (r *Services) MakeTables(ctx context.Context) error {
	for try := 1; ; try++ {
		err := migrations.Up(ctx, r.OwnDB)
		if err == nil || try == 8 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Duration(try)*100*time.Millisecond + rand.N(100*time.Millisecond)):
		}
	}
}
