package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
)

// dump reads the CMS's database with the tool that fits it.
func (r *run) dump(ctx context.Context, o dump.Options, sink dump.Sink) (dump.Summary, error) {
	if r.c.DSN == "" {
		return dump.Summary{}, errors.New("no DSN is configured for dumps")
	}
	switch e := r.manifest.Engine; {
	case e == database.MySQL && cmp.Or(r.request.Tool, r.c.Options.Tool) == "mysqldump":
		return dump.Mysqldump(ctx, r.c.DSN, o, sink)
	case e == database.MySQL:
		return dump.MySQL(ctx, r.c.DSN, o, sink)
	case e == database.PostgreSQL:
		return dump.Postgres(ctx, r.c.DSN, o, sink)
	case e == database.SQLite:
		return dump.SQLite(ctx, r.c.DSN, o, sink)
	default:
		return dump.Summary{}, fmt.Errorf("no way to dump a database of %s", e)
	}
}
