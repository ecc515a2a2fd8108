package restore

import (
	"context"
	"log/slog"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/fileset"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/lock"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/temporary"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/verify"
)

// Config is what a Restorer needs. All but DSN and Files is required.
type Config struct {
	// DSN opens the CMS's database; "" where nobody may restore into it.
	DSN string
	// TablePrefix begins the names of the CMS's tables.
	TablePrefix string
	// JobsTable is the full name of the CMS's jobs table.
	JobsTable string
	// DB holds cmsjobs_backup*.
	DB *sqlx.DB
	// Files are the CMS's own folders.
	Files     []fileset.Set
	Catalog   *catalog.Catalog
	Temporary *temporary.Keeper
	Verifier  *verify.Verifier
	Locks     *lock.Table
	// Safety makes a backup of what is there, while the exclusive lock is held.
	Safety func(ctx context.Context, name string, database, files bool, progress func(catalog.Step)) (catalog.Report,
		error)
	// Working is called when a plan or a restore begins, and what it returns when it ends.
	Working func() (done func())
	Logger  *slog.Logger
}

// Restorer brings back what backups hold.
type Restorer struct{ config Config }

// New makes a Restorer.
func New(config Config) *Restorer { return &Restorer{config} }
