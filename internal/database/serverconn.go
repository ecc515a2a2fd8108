package database

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/jackc/pgx/v5/pgconn"
)

// errServerConn is in the errors of a lost connection to PostgreSQL, which the
// driver returns without a type of error that names it. (A statement without arguments,
// outside of a transaction, it calls fit to be repeated instead, and
// database/sql repeats it: such statements here do no harm twice.)
var errServerConn = errors.New("the connection to the database was lost")

// namedErrors dials as dial does; the connection's errors carry errServerConn,
// but for time-outs, which the caller set.
func namedErrors(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return serverConn{conn}, nil
	}
}

type serverConn struct{ net.Conn }

func (c serverConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, named(err)
}

func (c serverConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, named(err)
}

func named(err error) error {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", errServerConn, err)
}
