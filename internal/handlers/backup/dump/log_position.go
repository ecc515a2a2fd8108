package dump

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// LogPosition is where the binary log of a MySQL or MariaDB server stood when a dump's
// snapshot was taken: the dump holds every transaction of its database before it and
// none after it.
type LogPosition struct {
	File   string `json:"file"`
	Offset uint64 `json:"offset"`
	// GTID is the set of transactions before the position; "" where the server has none.
	GTID string `json:"gtid,omitempty"`
	// Server names the server by a hash: files of two servers may have one name.
	Server string `json:"server"`
}

func (p LogPosition) String() string { return fmt.Sprintf("%s:%d", p.File, p.Offset) }

// errNoLog says that the server writes no binary log, or that the account may not ask
// where it ends.
var errNoLog = errors.New("the position in the binary log is not known")

// snapshot begins the transaction that everything is read in. Where the position in the
// binary log is wanted, it is that of the snapshot.
func (d *dumper) snapshot(ctx context.Context) error {
	if _, err := d.conn.ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"); err != nil {
		return fmt.Errorf("setting the isolation level: %w", err)
	}
	if !d.options.LogPosition {
		return d.startTransaction(ctx)
	}
	position, err := d.positioned(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errNoLog): // who wants the log says what is missing
		return d.startTransaction(ctx)
	case err != nil:
		d.warn("this backup cannot be brought to a later moment: its position in the binary log is not known: %v", err)
		return d.startTransaction(ctx)
	}
	d.summary.Log = position
	return nil
}

func (d *dumper) startTransaction(ctx context.Context) error {
	if _, err := d.conn.ExecContext(ctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT"); err != nil {
		return fmt.Errorf("taking a snapshot: %w", err)
	}
	return nil
}

// positioned takes the snapshot and says where the log stood. MariaDB keeps the position
// with the snapshot. MySQL does not, and a transaction is in its log before others see
// it: no transaction on the tables may be open at that moment.
func (d *dumper) positioned(ctx context.Context) (*LogPosition, error) {
	p := &LogPosition{}
	var err error
	if p.Server, err = ServerOfLog(ctx, d.conn, d.mariaDB); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoLog, err)
	}
	if d.mariaDB {
		if err := d.startTransaction(ctx); err != nil {
			return nil, err
		}
		return p, d.snapshotOfMariaDB(ctx, p)
	}
	if _, err := LogEnd(ctx, d.conn, false); err != nil { // before anybody waits for it
		return nil, err
	}
	locks, err := d.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer locks.Close()
	if err := d.lockTables(ctx, locks); err != nil {
		return nil, err
	}
	err = d.startTransaction(ctx)
	if err == nil {
		var end LogPosition
		end, err = LogEnd(ctx, d.conn, false)
		p.File, p.Offset, p.GTID = end.File, end.Offset, end.GTID
	}
	_, unlockErr := locks.ExecContext(context.WithoutCancel(ctx), "UNLOCK TABLES")
	return p, errors.Join(err, unlockErr)
}

func (d *dumper) snapshotOfMariaDB(ctx context.Context, p *LogPosition) error {
	rows, err := d.texts(ctx, "SHOW STATUS LIKE 'Binlog_snapshot_%'")
	if err != nil {
		return err
	}
	for _, row := range rows {
		switch strings.ToLower(row[0]) {
		case "binlog_snapshot_file":
			p.File = row[1]
		case "binlog_snapshot_position":
			if p.Offset, err = strconv.ParseUint(row[1], 10, 64); err != nil {
				return fmt.Errorf("reading the position of the snapshot: %w", err)
			}
		}
	}
	if p.File == "" || p.Offset == 0 {
		return errNoLog
	}
	var gtid sql.NullString
	err = d.conn.QueryRowContext(ctx, "SELECT BINLOG_GTID_POS(?, ?)", p.File, p.Offset).Scan(&gtid)
	p.GTID = gtid.String
	return err
}

// The site waits with its writes while its tables are locked: the lock waits lockWait for
// transactions of the site at most, and is tried lockTries times.
const (
	lockWait   = 2 * time.Second
	lockTries  = 4
	noLockTime = 1205 // the server's code for a lock that was not had in time
)

// lockTables keeps all writers out of the database. Readers are not held up.
func (d *dumper) lockTables(ctx context.Context, locks *sql.Conn) error {
	wait := fmt.Sprintf("SET SESSION lock_wait_timeout = %d", int(lockWait.Seconds()))
	if _, err := locks.ExecContext(ctx, wait); err != nil {
		return err
	}
	for try := 1; ; try++ {
		before, err := tablesToLock(ctx, locks)
		if err != nil || len(before) == 0 {
			return err
		}
		_, err = locks.ExecContext(ctx, "LOCK TABLES "+strings.Join(before, " READ, ")+" READ")
		if err == nil {
			var after []string // under the lock: another may have made a table just before
			if after, err = tablesToLock(ctx, locks); err == nil && slices.Equal(before, after) {
				return nil
			}
			if _, unlockErr := locks.ExecContext(ctx, "UNLOCK TABLES"); unlockErr != nil {
				return errors.Join(err, unlockErr)
			}
		}
		var refused *mysql.MySQLError
		if err != nil && !(errors.As(err, &refused) && refused.Number == noLockTime) || try == lockTries {
			return fmt.Errorf("keeping writers out of the tables for a moment: %w", cmp.Or(err, errTablesChange))
		}
	}
}

var errTablesChange = errors.New("tables were made and dropped meanwhile")

func tablesToLock(ctx context.Context, locks *sql.Conn) (names []string, err error) {
	rows, err := locks.QueryContext(ctx, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+
		"DATABASE() AND TABLE_TYPE = 'BASE TABLE' ORDER BY TABLE_NAME")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, quoteName(name))
	}
	return names, rows.Err()
}

// Querier is a connection or a pool.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// ServerOfLog names the server whose log it is, by a hash.
func ServerOfLog(ctx context.Context, db Querier, mariaDB bool) (string, error) {
	query := "SELECT @@global.server_uuid"
	if mariaDB {
		query = "SELECT CONCAT_WS(' ', @@global.hostname, @@global.port, @@global.server_id, @@global.datadir)"
	}
	var name string
	if err := db.QueryRowContext(ctx, query).Scan(&name); err != nil {
		return "", fmt.Errorf("asking which server it is: %w", err)
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:4]), nil
}

const unknownStatement = 1064

// LogEnd is where the binary log of the server ends now, without Server. Its error is
// about a log that is off, or a right that is missing.
func LogEnd(ctx context.Context, db Querier, mariaDB bool) (LogPosition, error) {
	statement := "SHOW BINARY LOG STATUS"
	if mariaDB {
		statement = "SHOW MASTER STATUS"
	}
	p, err := logEnd(ctx, db, statement)
	var refused *mysql.MySQLError
	if errors.As(err, &refused) && refused.Number == unknownStatement && !mariaDB { // before 8.2
		p, err = logEnd(ctx, db, "SHOW MASTER STATUS")
	}
	if err != nil {
		return p, fmt.Errorf("%w: %w", errNoLog, err)
	}
	return p, nil
}

func logEnd(ctx context.Context, db Querier, statement string) (p LogPosition, err error) {
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		return p, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return p, err
	}
	if !rows.Next() {
		return p, errors.Join(rows.Err(), errors.New("the server writes no binary log"))
	}
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		return p, err
	}
	for i, column := range columns {
		switch column {
		case "File":
			p.File = values[i].String
		case "Position":
			p.Offset, err = strconv.ParseUint(values[i].String, 10, 64)
		case "Executed_Gtid_Set":
			p.GTID = strings.ReplaceAll(values[i].String, "\n", "")
		}
	}
	return p, errors.Join(err, rows.Err())
}
