package orders

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Book keeps orders in a database. It implements jobs.OrderBook and is safe for
// concurrent use.
type Book struct {
	// DB holds cmsjobs_internal_orders.
	DB  *sqlx.DB
	Now func() time.Time
}

var _ jobs.OrderBook = (*Book)(nil)

// Give writes an order for each job of a type that needs one, and returns the
// jobs with the orders' IDs as their data. Jobs of other types, and those that
// name an order already, stay as they are.
func (b *Book) Give(ctx context.Context, registry *jobs.Registry, list ...jobs.Spec) ([]jobs.Spec, error) {
	given := make([]jobs.Spec, len(list))
	for i, n := range list {
		given[i] = n
		entry, known := registry.Lookup(n.Type)
		if !known || entry.Maker == jobs.Anyone || jobs.OrderOf(n.Data) != "" {
			continue
		}
		if err := n.Check(); err != nil {
			return nil, err
		}
		if err := entry.Check(n.Data); err != nil {
			return nil, err
		}
		id, err := b.insert(ctx, entry.Type, n)
		if err != nil {
			return nil, fmt.Errorf("writing the order of a job of %s: %w", entry.Type, err)
		}
		given[i].Data = jobs.OrderData(id)
	}
	return given, nil
}

func (b *Book) insert(ctx context.Context, kind string, n jobs.Spec) (id string, err error) {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails (crypto/rand)
	id = hex.EncodeToString(random)
	payload := string(n.Data)
	if payload == "" {
		payload = "{}"
	}
	_, err = b.DB.ExecContext(ctx, b.DB.Rebind("INSERT INTO cmsjobs_internal_orders (id, type, payload, created_at, "+
		"used_at) VALUES (?, ?, ?, ?, 0)"),
		id, kind, payload, b.Now().UnixMilli())
	return id, err
}

// Order implements jobs.OrderBook.
func (b *Book) Order(ctx context.Context, id string) (jobs.Order, error) {
	var row struct {
		Type, Payload string
		Created       int64 `db:"created_at"`
		Used          int64 `db:"used_at"`
	}
	err := b.DB.GetContext(ctx, &row, b.DB.Rebind("SELECT type, payload, created_at, used_at FROM "+
		"cmsjobs_internal_orders WHERE id = ?"), id)
	if errors.Is(err, sql.ErrNoRows) {
		return jobs.Order{}, jobs.ErrNoOrder
	}
	if err != nil {
		return jobs.Order{}, err
	}
	o := jobs.Order{ID: id, Type: row.Type, Payload: []byte(row.Payload), Created: time.UnixMilli(row.Created).UTC()}
	if row.Used > 0 {
		o.Used = time.UnixMilli(row.Used).UTC()
	}
	return o, nil
}

// Use implements jobs.OrderBook.
func (b *Book) Use(ctx context.Context, id string) error {
	result, err := b.DB.ExecContext(ctx, b.DB.Rebind("UPDATE cmsjobs_internal_orders SET used_at = ? WHERE id = ? "+
		"AND used_at = 0"), b.Now().UnixMilli(), id)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err != nil {
		return err
	}
	if n == 0 {
		_, err := b.Order(ctx, id)
		return errors.Join(err, jobs.ErrOrderUsed)
	}
	return nil
}

// Prune removes orders that were given before a moment, in steps, and counts
// them. Jobs that still name one then fail and say so.
func (b *Book) Prune(ctx context.Context, before time.Time) (int64, error) {
	var total int64
	for {
		result, err := b.DB.ExecContext(ctx, b.DB.Rebind(`DELETE FROM cmsjobs_internal_orders WHERE id IN
			(SELECT k FROM (SELECT id AS k FROM cmsjobs_internal_orders WHERE created_at < ? ORDER BY created_at LIMIT
			1000) old)`), before.UnixMilli())
		if err != nil {
			return total, fmt.Errorf("pruning orders: %w", err)
		}
		n, err := result.RowsAffected()
		if total += n; err != nil || n == 0 {
			return total, err
		}
	}
}
