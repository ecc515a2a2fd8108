package restore

import (
	"context"
	"errors"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/portable"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/swap"
)

// mysqlPlace is a database of MySQL or MariaDB: tables are loaded under other names.
type mysqlPlace struct {
	r       *Restorer
	e       *entry
	q       Request
	staging *swap.Staging
	loader  dump.PieceLoader // until it is closed
}

func (p *mysqlPlace) load(ctx context.Context, q Request) (dump.PieceLoader, error) {
	target, err := portable.LookAt(ctx, p.r.config.DSN)
	if err != nil {
		return nil, err
	}
	p.q = q
	p.staging = swap.NewStaging(p.e.ID, dump.IsMariaDB(target.Server))
	p.loader, err = p.r.mysqlLoader(ctx, q, dump.LoadOptions{DropDefiners: !target.SetsDefiners(),
		Adapt: target.Adapt(q.Backup.Needs, q.Collations), Stage: p.staging.Rewrite})
	return p.loader, err
}

func (p *mysqlPlace) ready(ctx context.Context, m *manifest.Manifest) (problems []string, err error) {
	loader := p.loader
	p.loader = nil
	if err := loader.Close(); err != nil {
		return nil, err
	}
	p.staging.Close()
	p.e.detail.Set = p.staging.Set
	err = p.with(ctx, func(db *swap.MySQL) error { return db.KeepKeys(ctx, &p.e.detail.Set) })
	if err != nil {
		return nil, err
	}
	return p.r.compareRestored(ctx, p.q, m, p.e.detail.Set.Staged())
}

func (p *mysqlPlace) with(ctx context.Context, do func(*swap.MySQL) error) error {
	db, err := swap.OpenMySQL(ctx, p.r.config.DSN)
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}

func (p *mysqlPlace) exchange(ctx context.Context) error {
	return p.with(ctx, func(db *swap.MySQL) error { return db.Exchange(ctx, &p.e.detail.Set) })
}

func (p *mysqlPlace) abort() {
	if p.loader != nil {
		_ = p.loader.Abort() // undo removes what it loaded
		p.loader = nil
	}
}

func (p *mysqlPlace) late() bool { return true }

func (p *mysqlPlace) stop(ctx context.Context) error {
	return p.with(ctx, func(db *swap.MySQL) error { return db.Stop(ctx, &p.e.detail.Set) })
}

func (p *mysqlPlace) exchanged(ctx context.Context) (is bool, err error) {
	err = p.with(ctx, func(db *swap.MySQL) (err error) {
		is, err = db.Exchanged(ctx, &p.e.detail.Set)
		return err
	})
	return is, err
}

func (p *mysqlPlace) finish(ctx context.Context) (problems []string, err error) {
	err = p.with(ctx, func(db *swap.MySQL) (err error) {
		problems, err = db.Finish(ctx, &p.e.detail.Set)
		return err
	})
	return problems, err
}

func (p *mysqlPlace) undo(ctx context.Context) error {
	return p.with(ctx, func(db *swap.MySQL) error { return db.Drop(ctx, &p.e.detail.Set) })
}

func (p *mysqlPlace) rows(ctx context.Context, do func(rowTaker) error) error {
	return p.with(ctx, func(db *swap.MySQL) error { return do(db) })
}
