package database

import (
	"context"
	"database/sql/driver"
	"errors"
)

// What a connection to SQLite keeps: so many statements that write, each of so many bytes at
// most.
const maxKept, maxKeptLength = 64, 2000

// keptConn keeps the statements that it wrote with more than once. For one row, preparing
// takes SQLite a good part of the statement's time. Texts with values in them do not come
// again.
type keptConn struct {
	pooledConn
	kept map[string]driver.Stmt // nil: it came once
}

// ExecContext implements driver.ExecerContext.
func (c keptConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if len(query) > maxKeptLength || !writes(query) {
		return c.pooledConn.ExecContext(ctx, query, args)
	}
	s, came := c.kept[query]
	if !came {
		if len(c.kept) >= maxKept {
			if err := c.forget(); err != nil {
				return nil, err
			}
		}
		c.kept[query] = nil
		return c.pooledConn.ExecContext(ctx, query, args)
	}
	if s == nil {
		var err error
		if s, err = c.PrepareContext(ctx, query); err != nil {
			return nil, err
		}
		c.kept[query] = s
	}
	with, ok := s.(driver.StmtExecContext)
	if !ok {
		return c.pooledConn.ExecContext(ctx, query, args)
	}
	return with.ExecContext(ctx, args)
}

// forget closes what is kept.
func (c keptConn) forget() error {
	var errs []error
	for _, s := range c.kept {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	clear(c.kept)
	return errors.Join(errs...)
}

func (c keptConn) Close() error { return errors.Join(c.forget(), c.pooledConn.Close()) }
