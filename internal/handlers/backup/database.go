package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
)

// The databases of a CMS.
const (
	mysqlEngine    = "mysql"
	postgresEngine = "postgres"
	sqliteEngine   = "sqlite"
)

func engine(driver string) string {
	switch driver {
	case "pgx", "postgres":
		return postgresEngine
	case "sqlite", "sqlite3":
		return sqliteEngine
	}
	return driver
}

// dump reads the CMS's database with the tool that fits it.
func (r *run) dump(ctx context.Context, o dump.Options, sink dump.Sink) (dump.Summary, error) {
	if r.c.DSN == "" {
		return dump.Summary{}, errors.New("no DSN is configured for dumps")
	}
	switch e := r.manifest.Engine; {
	case e == mysqlEngine && cmp.Or(r.request.Tool, r.c.Options.Tool) == "mysqldump":
		return dump.Mysqldump(ctx, r.c.DSN, o, sink)
	case e == mysqlEngine:
		return dump.MySQL(ctx, r.c.DSN, o, sink)
	case e == postgresEngine:
		return dump.Postgres(ctx, r.c.DSN, o, sink)
	case e == sqliteEngine:
		return dump.SQLite(ctx, r.c.DSN, o, sink)
	default:
		return dump.Summary{}, fmt.Errorf("no way to dump a database of %s", e)
	}
}
