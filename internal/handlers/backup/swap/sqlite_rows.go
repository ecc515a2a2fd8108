package swap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
)

// SQLiteRows is a SQLite database with the file of a backup beside it, of which single
// rows are taken.
type SQLiteRows struct {
	db   *sqlx.DB
	conn *sqlx.Conn
}

// OpenSQLiteRows opens the database that the DSN names, and the file beside it.
func OpenSQLiteRows(ctx context.Context, dsn, file string) (_ *SQLiteRows, err error) {
	db, err := sqlx.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	s := &SQLiteRows{db: db}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.conn, err = db.Connx(ctx); err != nil {
		return nil, err
	}
	for _, statement := range []string{"PRAGMA foreign_keys = OFF", "PRAGMA busy_timeout = 30000"} {
		if _, err := s.conn.ExecContext(ctx, statement); err != nil {
			return nil, err
		}
	}
	if _, err := s.conn.ExecContext(ctx, "ATTACH DATABASE ? AS restored", file); err != nil {
		return nil, fmt.Errorf("opening the database of the backup: %w", err)
	}
	return s, nil
}

// Close ends the connection.
func (s *SQLiteRows) Close() error {
	var err error
	if s.conn != nil {
		err = s.conn.Close()
	}
	return errors.Join(err, s.db.Close())
}

// Text reads a column of the one row of the backup; sql.ErrNoRows when there is none.
func (s *SQLiteRows) Text(ctx context.Context, _ *Set, r Rows, column string) (text string, err error) {
	err = s.conn.GetContext(ctx, &text, "SELECT "+quotedSQLite(column)+" FROM restored."+quotedSQLite(r.Table)+
		" WHERE "+r.Where, r.ID)
	return text, err
}

// both are the rows whose table is in the backup and live.
func (s *SQLiteRows) both(ctx context.Context, rows []Rows) ([]Rows, error) {
	var tables []string
	if err := s.conn.SelectContext(ctx, &tables, "SELECT m.name FROM main.sqlite_schema m JOIN restored.sqlite_schema "+
		"r ON r.name = m.name AND r.type = m.type WHERE m.type = 'table'"); err != nil {
		return nil, fmt.Errorf("listing the tables: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r Rows) bool { return !slices.Contains(tables, r.Table) }), nil
}

// CountRows counts the rows, now and in the backup, of each table that is both.
func (s *SQLiteRows) CountRows(ctx context.Context, _ *Set, rows []Rows) ([]RowCount, error) {
	rows, err := s.both(ctx, rows)
	if err != nil {
		return nil, err
	}
	var all []RowCount
	for _, r := range rows {
		c, table := RowCount{Table: r.Table}, quotedSQLite(r.Table)
		if err := s.conn.QueryRowxContext(ctx, "SELECT (SELECT COUNT(*) FROM main."+table+" WHERE "+r.Where+
			"), (SELECT COUNT(*) FROM restored."+table+" WHERE "+r.Where+")", r.ID, r.ID).Scan(&c.Live,
			&c.Staged); err != nil {
			return nil, fmt.Errorf("counting the rows of %s: %w", r.Table, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// TakeRows puts the rows of the backup in the place of the live ones, in one transaction.
func (s *SQLiteRows) TakeRows(ctx context.Context, _ *Set, rows []Rows) error {
	rows, err := s.both(ctx, rows)
	if err != nil {
		return err
	}
	if _, err := s.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("waiting for the database: %w", err)
	}
	for _, r := range rows {
		if err := s.take(ctx, r); err != nil {
			_, rollback := s.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
			return errors.Join(fmt.Errorf("restoring rows of %s: %w", r.Table, err), rollback)
		}
	}
	_, err = s.conn.ExecContext(ctx, "COMMIT")
	return err
}

// take takes the columns that both tables have and that are not computed.
func (s *SQLiteRows) take(ctx context.Context, r Rows) error {
	var columns []string
	if err := s.conn.SelectContext(ctx, &columns, "SELECT m.name FROM pragma_table_xinfo(?, 'main') m JOIN "+
		"pragma_table_xinfo(?, 'restored') r ON r.name = m.name WHERE m.hidden = 0 AND r.hidden = 0", r.Table,
		r.Table); err != nil {
		return err
	}
	for i := range columns {
		columns[i] = quotedSQLite(columns[i])
	}
	table, list := quotedSQLite(r.Table), strings.Join(columns, ", ")
	for _, statement := range []string{"DELETE FROM main." + table + " WHERE " + r.Where,
		"INSERT INTO main." + table + " (" + list + ") SELECT " + list + " FROM restored." + table + " WHERE " +
			r.Where} {
		if _, err := s.conn.ExecContext(ctx, statement, r.ID); err != nil {
			return err
		}
	}
	return nil
}
