package restore

import (
	"context"
	"errors"
	"net/url"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// ErrUntrusted says that this installation never made a backup.
var ErrUntrusted = errors.New("this installation never made this backup")

// carryKey puts the key into what a restore made of the site's own database:
// dumps do not hold it, and without it our own backups would be strangers.
func (r *Restorer) carryKey(ctx context.Context, q Request) error {
	switch {
	case q.Backup.Engine == database.SQLite && q.IntoDSN != "":
		db, err := sqlx.Open("sqlite", "file:"+(&url.URL{Path: q.IntoDSN}).EscapedPath())
		if err != nil {
			return err
		}
		defer db.Close()
		var n int
		if err := db.GetContext(ctx, &n,
			"SELECT COUNT(*) FROM sqlite_master WHERE name = 'cmsjobs_backup_keys'"); err != nil || n == 0 {
			return err
		}
		return r.config.Catalog.CarryKey(ctx, db)
	case q.Backup.Engine == database.PostgreSQL && q.IntoDSN == "":
		return r.config.Catalog.CarryKey(ctx, r.config.DB)
	}
	return nil
}
