package swap

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
)

// MySQL exchanges tables of a database of MySQL or MariaDB.
type MySQL struct {
	pool *sql.DB
	conn *sql.Conn
}

// OpenMySQL connects to the database that the DSN names.
func OpenMySQL(ctx context.Context, dsn string) (*MySQL, error) {
	pool, _, err := dump.Connect(dsn)
	if err != nil {
		return nil, err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connecting to the database to restore into: %w", err), pool.Close())
	}
	m := &MySQL{pool, conn}
	// A table that another connection uses must not hold up the whole site behind the exchange.
	for _, statement := range []string{"SET SESSION sql_mode = ''", "SET SESSION foreign_key_checks = 0",
		fmt.Sprintf("SET SESSION lock_wait_timeout = %d", int(lockWait.Seconds()))} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return nil, errors.Join(err, m.Close())
		}
	}
	return m, nil
}

// lockWait is how long the exchange waits for transactions of the site, each time, and
// lockTries how often it tries.
const (
	lockWait  = 5 * time.Second
	lockTries = 6
)

// Close disconnects.
func (m *MySQL) Close() error { return errors.Join(m.conn.Close(), m.pool.Close()) }

// relations are the names of tables and views that fit a LIKE pattern, and their types.
func (m *MySQL) relations(ctx context.Context, like string) (map[string]string, error) {
	rows, err := m.conn.QueryContext(ctx, "SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE "+
		"TABLE_SCHEMA = DATABASE() AND TABLE_NAME LIKE ?", like)
	if err != nil {
		return nil, fmt.Errorf("listing the tables: %w", err)
	}
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			return nil, err
		}
		all[name] = kind
	}
	return all, rows.Err()
}

// ours are the tables of a set that are there.
func (m *MySQL) ours(ctx context.Context, s *Set) (map[string]string, error) {
	return m.relations(ctx, strings.ReplaceAll(Prefix+s.ID, "_", `\_`)+`\_%`)
}

// Exchanged says whether the set's tables are live. It is asked when no connection
// works on the set any more (Stop).
func (m *MySQL) Exchanged(ctx context.Context, s *Set) (bool, error) {
	if len(s.Tables) == 0 {
		return false, nil
	}
	there, err := m.ours(ctx, s)
	if err != nil {
		return false, err
	}
	for i := range s.Tables {
		if _, staged := there[s.staged(i+1)]; staged {
			return false, nil
		}
	}
	return true, nil
}

// Exchange puts the set's tables in the place of the live ones, all at once.
func (m *MySQL) Exchange(ctx context.Context, s *Set) error {
	if len(s.Tables) == 0 {
		return nil
	}
	live, err := m.relations(ctx, "%")
	if err != nil {
		return err
	}
	fold := func(name string) string { return name }
	var folds int
	if err := m.conn.QueryRowContext(ctx, "SELECT @@lower_case_table_names").Scan(&folds); err != nil {
		return err
	}
	if folds > 0 {
		fold = strings.ToLower
	}
	present := map[string]bool{}
	for name := range live {
		present[fold(name)] = true
	}
	var moves []string
	for i, name := range s.Tables {
		if present[fold(name)] {
			moves = append(moves, quoted(name)+" TO "+quoted(s.former(i+1)))
		}
		moves = append(moves, quoted(s.staged(i+1))+" TO "+quoted(name))
	}
	for try := 1; ; try++ {
		_, err = m.conn.ExecContext(ctx, "RENAME TABLE "+strings.Join(moves, ", "))
		if !isError(err, lockWaitTimeout) || try == lockTries {
			break
		}
	}
	if isError(err, lockWaitTimeout) {
		return fmt.Errorf("a transaction of another connection kept a table busy, for %d times %v: end it and repeat "+
			"the restore: %w", lockTries, lockWait, err)
	}
	if err != nil {
		return fmt.Errorf("exchanging the tables: %w", err)
	}
	return nil
}

// The server's errors.
const (
	lockWaitTimeout = 1205
	noSuchThread    = 1094
)

func isError(err error, number uint16) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == number
}

// Stop ends the statements that a killed process left running at the server on tables
// of the set, and waits until they ended.
func (m *MySQL) Stop(ctx context.Context, s *Set) error {
	for {
		ids, err := m.running(ctx, s)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			_, err := m.conn.ExecContext(ctx, fmt.Sprintf("KILL %d", id))
			if err != nil && !isError(err, noSuchThread) {
				return fmt.Errorf("ending a statement of the restore that was killed: %w", err)
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(stopPoll):
		}
	}
}

const stopPoll = 50 * time.Millisecond

// running are the connections that work on tables of the set. The view in
// information_schema fails on MySQL where a statement holds a character of four bytes.
func (m *MySQL) running(ctx context.Context, s *Set) (ids []int64, err error) {
	rows, err := sqlx.NewDb(m.pool, "mysql").QueryxContext(ctx, "SHOW FULL PROCESSLIST")
	if err != nil {
		return nil, fmt.Errorf("looking for statements of the restore that was killed: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		thread := map[string]any{}
		if err := rows.MapScan(thread); err != nil {
			return nil, err
		}
		info, _ := thread["Info"].([]byte)
		if !bytes.Contains(info, []byte(Prefix+s.ID+"_")) {
			continue
		}
		switch id := thread["Id"].(type) {
		case int64:
			ids = append(ids, id)
		case uint64:
			ids = append(ids, int64(id))
		default:
			return nil, fmt.Errorf("the list of connections has an id of the type %T", id)
		}
	}
	return ids, rows.Err()
}

// Drop removes the set's tables that are not live: before the exchange the loaded
// ones, after it those that were replaced.
func (m *MySQL) Drop(ctx context.Context, s *Set) error {
	there, err := m.ours(ctx, s)
	if err != nil {
		return err
	}
	for name, kind := range there {
		what := "TABLE"
		if strings.HasSuffix(kind, "VIEW") {
			what = "VIEW"
		}
		if _, err := m.conn.ExecContext(ctx, "DROP "+what+" IF EXISTS "+quoted(name)); err != nil {
			return fmt.Errorf("removing %s: %w", name, err)
		}
	}
	return nil
}

// Finish does what follows the exchange. It may be repeated. The problems are what of
// the tables that stayed no longer fits.
func (m *MySQL) Finish(ctx context.Context, s *Set) (problems []string, err error) {
	if err := m.freeKept(ctx, s); err != nil {
		return nil, err
	}
	if err := m.Drop(ctx, s); err != nil {
		return nil, err
	}
	if problems, err = m.addKeys(ctx, s); err != nil {
		return problems, err
	}
	if err := m.nameChecks(ctx, s); err != nil {
		return problems, err
	}
	for _, statement := range s.Later {
		if _, err := m.conn.ExecContext(ctx, statement); err != nil {
			return problems, fmt.Errorf("restoring %.80q: %w", statement, err)
		}
	}
	return problems, nil
}
