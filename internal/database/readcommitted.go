package database

import (
	"context"
	"database/sql/driver"
	"fmt"
)

// readCommitted sets the isolation of each new MySQL session by the statement
// that all versions know; the variable's name differs between them.
type readCommitted struct{ driver.Connector }

func (c readCommitted) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errConnect, err)
	}
	if _, err := conn.(driver.ExecerContext).ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
		nil); err != nil {
		_ = conn.Close() // the error above says why
		return nil, err
	}
	if full, ok := conn.(fullConn); ok {
		return mysqlConn{full}, nil
	}
	return conn, nil
}
