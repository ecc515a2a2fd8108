package cache

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

const (
	// batch is how many keys are read at once, chunk how many rows one
	// statement deletes. A statement of 250 rows holds its locks for a few
	// milliseconds.
	batch = 10_000
	chunk = 250
)

// pruning says which rows of a CMS's table go.
type pruning struct {
	table string // without the prefix
	key   string // primary key
	where string // with ?
	args  []any
}

func (h *Handler) quote(name string) string { return database.Of(h.site.DB).Ident(name) }

// prune deletes the rows that p names, or counts them. A CMS without the table
// has none. Keys are read without a lock, then deleted by primary key with the
// condition once more, so that a row that was renewed meanwhile stays.
func (h *Handler) prune(ctx context.Context, p pruning, r *Report) error {
	there, err := h.site.HasTable(ctx, p.table)
	if err != nil || !there {
		return err
	}
	table := h.quote(h.site.Table(p.table))
	if r.DryRun {
		var n int64
		err := h.site.DB.GetContext(ctx, &n,
			h.site.DB.Rebind(fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE %s", table, p.where)), p.args...)
		r.rows(p.table, n)
		return counting(p.table, err)
	}
	query := h.site.DB.Rebind(fmt.Sprintf("SELECT %s FROM %s WHERE %s LIMIT %d", h.quote(p.key), table, p.where, batch))
	for {
		var keys []string
		if err := h.site.DB.SelectContext(ctx, &keys, query, p.args...); err != nil {
			return fmt.Errorf("reading what to remove from %s: %w", p.table, err)
		}
		before := r.Rows[p.table]
		if err := h.deleteKeys(ctx, p, keys, r); err != nil {
			return err
		}
		if len(keys) < batch || r.Rows[p.table] == before {
			return nil
		}
		jobs.Report(ctx, r.Rows[p.table], 0, "rows removed from "+p.table)
	}
}

func counting(table string, err error) error {
	if err != nil {
		return fmt.Errorf("counting what to remove from %s: %w", table, err)
	}
	return nil
}

// deleteKeys deletes rows by their keys, a chunk a statement, or counts those
// that are there.
func (h *Handler) deleteKeys(ctx context.Context, p pruning, keys []string, r *Report) error {
	table := h.quote(h.site.Table(p.table))
	for len(keys) > 0 {
		part := keys[:min(chunk, len(keys))]
		keys = keys[len(part):]
		where, args, err := h.whereKeys(p, part)
		if err != nil {
			return err
		}
		var n int64
		if r.DryRun {
			err = h.site.DB.GetContext(ctx, &n, "SELECT COUNT(*) FROM "+table+where, args...)
		} else if n, err = h.exec(ctx, "DELETE FROM "+table+where, args); err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("removing rows of %s: %w", p.table, err)
		}
		r.rows(p.table, n)
	}
	return nil
}

func (h *Handler) whereKeys(p pruning, keys []string) (string, []any, error) {
	where, args, err := sqlx.In(" WHERE "+h.quote(p.key)+" IN (?)", keys)
	if err != nil {
		return "", nil, fmt.Errorf("naming rows of %s: %w", p.table, err)
	}
	if p.where != "" {
		where += " AND (" + p.where + ")"
		args = append(args, p.args...)
	}
	return h.site.DB.Rebind(where), args, nil
}

func (h *Handler) exec(ctx context.Context, statement string, args []any) (int64, error) {
	done, err := h.site.DB.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}
