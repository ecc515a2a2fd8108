package restore

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/swap"
)

// sqlitePlace is a SQLite file: the backup's tables are taken from a file beside it, in
// one transaction, in which a table is made that says so.
type sqlitePlace struct {
	r      *Restorer
	e      *entry
	q      Request
	file   string
	loader dump.PieceLoader // until it is closed
	remove func()
}

func (p *sqlitePlace) load(ctx context.Context, q Request) (dump.PieceLoader, error) {
	p.q = q
	item, dir := p.r.config.Temporary.NewFolder()
	_, claim, err := p.r.config.Temporary.Claim(ctx, item, "the restore of "+q.Backup.ID)
	if err != nil {
		return nil, err
	}
	p.remove = func() {
		if err := os.RemoveAll(dir); err != nil {
			claim.Release(ctx) // a sweep finds it
			return
		}
		claim.Remove(ctx)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	p.file = filepath.Join(dir, "database")
	p.loader, err = dump.NewFileLoader(p.file)
	return p.loader, err
}

func (p *sqlitePlace) ready(ctx context.Context, _ *manifest.Manifest) ([]string, error) {
	loader := p.loader
	p.loader = nil
	if err := loader.Close(); err != nil {
		return nil, err
	}
	_, err := dump.SQLiteSummary(ctx, p.file)
	return nil, err
}

func (p *sqlitePlace) exchange(ctx context.Context) error {
	err := swap.SQLite(ctx, p.r.config.DSN, p.file, func(table string) bool { return p.q.replaces(p.r, table) },
		func(ctx context.Context, tx sqlx.ExecerContext) error {
			_, err := tx.ExecContext(ctx, "CREATE TABLE "+p.e.detail.Set.Mark()+" (id INTEGER)")
			return err
		})
	if err == nil { // else it is aborted
		p.remove()
		p.remove = nil
	}
	return err
}

func (p *sqlitePlace) abort() {
	if p.loader != nil {
		_ = p.loader.Abort() // the file goes
		p.loader = nil
	}
	if p.remove != nil {
		p.remove()
	}
}

func (p *sqlitePlace) late() bool { return false }

func (p *sqlitePlace) stop(context.Context) error { return nil }

func (p *sqlitePlace) with(do func(*sqlx.DB) error) error {
	db, err := sqlx.Open("sqlite", p.r.config.DSN)
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}

func (p *sqlitePlace) exchanged(ctx context.Context) (is bool, err error) {
	err = p.with(func(db *sqlx.DB) error {
		return db.GetContext(ctx, &is, "SELECT COUNT(*) > 0 FROM sqlite_schema WHERE name = ?", p.e.detail.Set.Mark())
	})
	return is, err
}

func (p *sqlitePlace) finish(ctx context.Context) ([]string, error) { return nil, p.undo(ctx) }

func (p *sqlitePlace) undo(ctx context.Context) error {
	return p.with(func(db *sqlx.DB) error {
		_, err := db.ExecContext(ctx, "DROP TABLE IF EXISTS "+p.e.detail.Set.Mark())
		return err
	})
}

func (p *sqlitePlace) rows(ctx context.Context, do func(rowTaker) error) error {
	db, err := swap.OpenSQLiteRows(ctx, p.r.config.DSN, p.file)
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}
