package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
)

// The databases of a CMS, as manifests name them.
const (
	mysqlEngine    = database.MySQL
	postgresEngine = database.PostgreSQL
	sqliteEngine   = database.SQLite
)

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
