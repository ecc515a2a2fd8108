package restore

import (
	"context"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// place is the site's own database while it is restored. stop and what follows it work
// on the entry alone, so that another process can use them.
type place interface {
	// load opens what takes the dump beside the live tables.
	load(ctx context.Context, q Request) (dump.PieceLoader, error)
	// ready completes what was loaded and says how it differs from what was dumped.
	ready(ctx context.Context, m *manifest.Manifest) (problems []string, err error)
	// exchange puts it in the place of the live tables.
	exchange(ctx context.Context) error
	// abort ends a load.
	abort()
	// late says that another process could exchange what was loaded: ready holds no
	// transaction open, in which the journal itself would wait.
	late() bool

	// stop ends what a killed process left running at the server.
	stop(ctx context.Context) error
	exchanged(ctx context.Context) (bool, error)
	// finish does what follows the exchange, and undo removes what was loaded. Both may
	// be repeated.
	finish(ctx context.Context) (problems []string, err error)
	undo(ctx context.Context) error
}

// placeOf is the site's database for an entry; nil where it stays.
func (r *Restorer) placeOf(e *entry) (place, error) {
	switch e.detail.Engine {
	case "":
		return nil, nil
	case database.MySQL:
		return &mysqlPlace{r: r, e: e}, nil
	case database.PostgreSQL:
		return &postgresPlace{r: r, e: e}, nil
	case database.SQLite:
		return &sqlitePlace{r: r, e: e}, nil
	}
	return nil, fmt.Errorf("no way to restore a database of %s", e.detail.Engine)
}
