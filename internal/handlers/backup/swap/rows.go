package swap

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// Rows are the rows of a table that belong to one thing: Where has one mark, for ID.
type Rows struct {
	Table, Where string
	ID           int64
}

// RowCount is how many of such rows there are.
type RowCount struct {
	Table        string
	Live, Staged int64
}

// Text reads a column of the one loaded row; sql.ErrNoRows when there is none.
func (m *MySQL) Text(ctx context.Context, s *Set, r Rows, column string) (text string, err error) {
	staged, loaded := s.Staged()[r.Table]
	if !loaded {
		return "", sql.ErrNoRows
	}
	err = m.conn.QueryRowContext(ctx, "SELECT "+quoted(column)+" FROM "+quoted(staged)+" WHERE "+r.Where, r.ID).Scan(
		&text)
	return text, err
}

// both are the rows whose table is loaded and live.
func (m *MySQL) both(ctx context.Context, s *Set, rows []Rows) ([]Rows, error) {
	live, err := m.relations(ctx, "%")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r Rows) bool {
		_, there := live[r.Table]
		return !there || !slices.Contains(s.Tables, r.Table)
	}), nil
}

// CountRows counts the live and the loaded rows of each table that is both.
func (m *MySQL) CountRows(ctx context.Context, s *Set, rows []Rows) ([]RowCount, error) {
	rows, err := m.both(ctx, s, rows)
	if err != nil {
		return nil, err
	}
	var all []RowCount
	for _, r := range rows {
		c := RowCount{Table: r.Table}
		for table, n := range map[string]*int64{r.Table: &c.Live, s.Staged()[r.Table]: &c.Staged} {
			if err := m.conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+quoted(table)+" WHERE "+r.Where, r.ID).Scan(
				n); err != nil {
				return nil, fmt.Errorf("counting the rows of %s: %w", r.Table, err)
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// TakeRows puts the loaded rows in the place of the live ones, in one transaction.
func (m *MySQL) TakeRows(ctx context.Context, s *Set, rows []Rows) (err error) {
	rows, err = m.both(ctx, s, rows)
	if err != nil {
		return err
	}
	tx, err := m.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, r := range rows {
		columns, err := m.shared(ctx, tx, r.Table, s.Staged()[r.Table])
		if err != nil {
			return err
		}
		list := strings.Join(columns, ", ")
		for _, statement := range []string{"DELETE FROM " + quoted(r.Table) + " WHERE " + r.Where,
			"INSERT INTO " + quoted(r.Table) + " (" + list + ") SELECT " + list + " FROM " +
				quoted(s.Staged()[r.Table]) +
				" WHERE " + r.Where} {
			if _, err := tx.ExecContext(ctx, statement, r.ID); err != nil {
				return fmt.Errorf("restoring rows of %s: %w", r.Table, err)
			}
		}
	}
	return tx.Commit()
}

// shared are the columns that two tables have and that are not computed.
func (m *MySQL) shared(ctx context.Context, tx *sql.Tx, a, b string) (columns []string, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = "+
		"DATABASE() AND TABLE_NAME IN (?, ?) AND COALESCE(GENERATION_EXPRESSION, '') = '' GROUP BY COLUMN_NAME HAVING "+
		"COUNT(*) = 2 ORDER BY COLUMN_NAME", a, b)
	if err != nil {
		return nil, fmt.Errorf("listing the columns of %s: %w", a, err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		columns = append(columns, quoted(name))
	}
	return columns, rows.Err()
}
