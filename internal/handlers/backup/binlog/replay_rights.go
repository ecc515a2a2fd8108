package binlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
)

// MayReplay says why the account of a DSN may not replay a chain: a *MissingError where
// it lacks the right.
func (r *Reader) MayReplay(ctx context.Context, c Chain, dsn, version string) error {
	pool, _, err := dump.Connect(dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	p := &replayer{ctx: ctx, conn: conn, t: Target{Dump: dump.Summary{Server: version}}}
	return r.walk(ctx, c, func(e event) error {
		if _, is := e.Event.(*replication.FormatDescriptionEvent); is {
			if err := p.describe(e.RawData); err != nil {
				return err
			}
		}
		return errStop
	})
}

// RightToReplay says why the account of a DSN may not replay any log: a *MissingError where
// it lacks the right. It changes nothing.
func RightToReplay(ctx context.Context, dsn string) error {
	pool, _, err := dump.Connect(dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	var version string
	if err := pool.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return fmt.Errorf("asking the server for its version: %w", err)
	}
	_, err = pool.ExecContext(ctx, "BINLOG ''") // the right is asked for before the text is read
	var refused *mysql.MySQLError
	switch {
	case !errors.As(err, &refused):
		return fmt.Errorf("asking whether the account may replay the log: %w", err)
	case refused.Number == privilegeDenied:
		return NoRightToReplay(version)
	}
	return nil
}

// NoRightToReplay says which right the account lacks.
func NoRightToReplay(version string) error {
	right := "REPLICATION_APPLIER"
	if dump.IsMariaDB(version) {
		right = "BINLOG REPLAY"
	}
	return &MissingError{What: "the account may not replay the log: it lacks the right " + right, Right: true,
		Fix: "GRANT " + right + " ON *.* TO the account, as the server's administrator"}
}
