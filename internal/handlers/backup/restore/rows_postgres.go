package restore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/swap"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/temporary"
)

// postgresRows is a database of PostgreSQL while single rows of it are restored. A dump
// of pg_dump names its schema in every statement, so the backup's tables are loaded into
// a temporary database, as for a verification.
type postgresRows struct {
	*postgresPlace
	tables []string
	dsn    string           // of the temporary database
	loader dump.PieceLoader // until it is closed
	remove func()
}

func (p *postgresRows) load(ctx context.Context, q Request) (_ dump.PieceLoader, err error) {
	keeper := p.r.config.Temporary
	item := keeper.NewDatabase(database.PostgreSQL)
	claimed, claim, err := keeper.Claim(ctx, item, "the restore of a post of "+q.Backup.ID)
	if err != nil {
		return nil, err
	}
	var made *temporary.Database
	if p.dsn, err = temporary.PostgresDSN(keeper.ServerDSN(), item.Name); err == nil {
		made, err = temporary.OpenPostgres(claimed, keeper.ServerDSN(), item.Name)
	}
	if err != nil {
		claim.Remove(ctx)
		return nil, fmt.Errorf("making a temporary database for the backup's tables: %w", err)
	}
	made.Claim = claim
	p.loader = dump.NewPostgresRows(made.PieceLoader, func(table string) bool {
		return slices.Contains(p.tables, table)
	})
	p.remove = func() {
		if p.loader != nil {
			_ = p.loader.Abort() // the database goes
		}
		if err := made.End(ctx); err != nil {
			p.r.config.Logger.WarnContext(ctx, "temporary database of a restore not dropped: a sweep finds it",
				"event", "backup.cleanup_failed", "error", err)
		}
	}
	return p.loader, nil
}

func (p *postgresRows) ready(context.Context, *manifest.Manifest) ([]string, error) {
	loader := p.loader
	p.loader = nil
	return nil, loader.Close()
}

func (p *postgresRows) abort() {
	if p.remove != nil {
		p.remove()
	}
}

func (p *postgresRows) rows(ctx context.Context, do func(rowTaker) error) error {
	db, err := swap.OpenPostgresRows(ctx, p.r.config.DSN, p.dsn)
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close(ctx))
}
