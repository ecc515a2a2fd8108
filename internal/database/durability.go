package database

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// Durability is what becomes of a commit that the server has confirmed.
type Durability struct {
	// Setting names what decides it, with its value.
	Setting string
	// Loss is what a crash costs, and Remedy what to do; both are empty where
	// confirmed commits stay.
	Loss, Remedy string
}

// AskDurability asks a server whether it writes commits to its disk before it
// confirms them.
func AskDurability(ctx context.Context, db *sqlx.DB) (d Durability, err error) {
	switch Of(db).Name {
	case MySQL:
		var flush int
		if err = db.GetContext(ctx, &flush, "SELECT @@innodb_flush_log_at_trx_commit"); err == nil && flush != 1 {
			d.Loss, d.Remedy = "a power cut loses up to a second of jobs, and runs others twice",
				"set innodb_flush_log_at_trx_commit = 1 in the server's configuration"
		}
		d.Setting = fmt.Sprintf("innodb_flush_log_at_trx_commit = %d", flush)
	case PostgreSQL:
		var sync, commit string
		err = db.QueryRowxContext(ctx, "SELECT current_setting('fsync'), current_setting('synchronous_commit')").Scan(
			&sync, &commit)
		if err == nil && (sync != "on" || commit == "off") {
			d.Loss, d.Remedy = "a crash loses jobs", "set fsync and synchronous_commit to on"
		}
		d.Setting = fmt.Sprintf("fsync = %s, synchronous_commit = %s", sync, commit)
	default:
		var level int
		if err = db.GetContext(ctx, &level, "PRAGMA synchronous"); err == nil && level < 2 {
			d.Loss, d.Remedy = "a power cut loses the last jobs", "open it without a pragma of your own"
		}
		d.Setting = fmt.Sprintf("SQLite's synchronous = %d", level)
	}
	return d, err
}
