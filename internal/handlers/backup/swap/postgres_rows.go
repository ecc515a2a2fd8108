package swap

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// PostgresRows is a database of PostgreSQL with another beside it, into which a backup
// was loaded and of which single rows are taken.
type PostgresRows struct {
	live, staged *pgx.Conn
	schema       string
}

// OpenPostgresRows opens the database that the first DSN names, and the other one.
func OpenPostgresRows(ctx context.Context, dsn, stagedDSN string) (_ *PostgresRows, err error) {
	p := &PostgresRows{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close(ctx))
		}
	}()
	if p.live, err = database.ConnectPostgres(ctx, dsn); err != nil {
		return nil, err
	}
	if p.staged, err = database.ConnectPostgres(ctx, stagedDSN); err != nil {
		return nil, fmt.Errorf("opening the database of the backup: %w", err)
	}
	if err = p.live.QueryRow(ctx, "SELECT current_schema()").Scan(&p.schema); err != nil {
		return nil, fmt.Errorf("looking at the database to restore into: %w", err)
	}
	return p, nil
}

// Close disconnects.
func (p *PostgresRows) Close(ctx context.Context) (err error) {
	for _, c := range []*pgx.Conn{p.live, p.staged} {
		if c != nil {
			err = errors.Join(err, c.Close(context.WithoutCancel(ctx)))
		}
	}
	return err
}

func (p *PostgresRows) table(name string) string { return pgx.Identifier{p.schema, name}.Sanitize() }

// where is the condition of rows, with their number in it: COPY has no parameters.
func (r Rows) where() string { return strings.Replace(r.Where, "?", strconv.FormatInt(r.ID, 10), 1) }

// Text reads a column of the one row of the backup; sql.ErrNoRows when there is none.
func (p *PostgresRows) Text(ctx context.Context, _ *Set, r Rows, column string) (text string, err error) {
	is, err := p.has(ctx, p.staged, r.Table)
	if err == nil && !is {
		err = sql.ErrNoRows
	}
	if err != nil {
		return "", err
	}
	err = p.staged.QueryRow(ctx, "SELECT "+pgx.Identifier{column}.Sanitize()+"::text FROM "+p.table(r.Table)+
		" WHERE "+r.where()).Scan(&text)
	return text, err
}

func (p *PostgresRows) has(ctx context.Context, c *pgx.Conn, table string) (is bool, err error) {
	err = c.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", p.table(table)).Scan(&is)
	return is, err
}

// both are the rows whose table is in the backup and live.
func (p *PostgresRows) both(ctx context.Context, rows []Rows) (found []Rows, err error) {
	for _, r := range rows {
		live, err := p.has(ctx, p.live, r.Table)
		staged, alsoErr := p.has(ctx, p.staged, r.Table)
		if err := errors.Join(err, alsoErr); err != nil {
			return nil, fmt.Errorf("looking for the table %s: %w", r.Table, err)
		}
		if live && staged {
			found = append(found, r)
		}
	}
	return found, nil
}

// CountRows counts the rows, now and in the backup, of each table that is both.
func (p *PostgresRows) CountRows(ctx context.Context, _ *Set, rows []Rows) ([]RowCount, error) {
	rows, err := p.both(ctx, rows)
	if err != nil {
		return nil, err
	}
	var all []RowCount
	for _, r := range rows {
		c := RowCount{Table: r.Table}
		count := "SELECT COUNT(*) FROM " + p.table(r.Table) + " WHERE " + r.where()
		if err := errors.Join(p.live.QueryRow(ctx, count).Scan(&c.Live),
			p.staged.QueryRow(ctx, count).Scan(&c.Staged)); err != nil {
			return nil, fmt.Errorf("counting the rows of %s: %w", r.Table, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// TakeRows puts the rows of the backup in the place of the live ones, in one
// transaction. The first is the thing itself: where it is still there it is changed and
// not deleted, as its deletion would delete what other tables have of it.
func (p *PostgresRows) TakeRows(ctx context.Context, _ *Set, rows []Rows) error {
	rows, err := p.both(ctx, rows)
	if err != nil || len(rows) == 0 {
		return err
	}
	tx, err := p.live.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	for _, r := range slices.Backward(rows[1:]) {
		if _, err := tx.Exec(ctx, "DELETE FROM "+p.table(r.Table)+" WHERE "+r.where()); err != nil {
			return fmt.Errorf("removing rows of %s: %w", r.Table, err)
		}
	}
	for i, r := range rows {
		if err := p.take(ctx, tx, r, fmt.Sprintf("%srows_%d", Prefix, i+1), i == 0); err != nil {
			return fmt.Errorf("restoring rows of %s: %w", r.Table, err)
		}
	}
	return tx.Commit(ctx)
}

// take copies rows into a temporary table of the transaction, and from there.
func (p *PostgresRows) take(ctx context.Context, tx pgx.Tx, r Rows, temporary string, itself bool) error {
	columns, changed, err := p.shared(ctx, tx, r.Table)
	if err != nil {
		return err
	}
	table, list := p.table(r.Table), strings.Join(columns, ", ")
	if _, err := tx.Exec(ctx, "CREATE TEMPORARY TABLE "+temporary+" ON COMMIT DROP AS SELECT "+list+" FROM "+table+
		" WITH NO DATA"); err != nil {
		return err
	}
	if err := p.copy(ctx, tx.Conn().PgConn(), "COPY (SELECT "+list+" FROM "+table+" WHERE "+r.where()+") TO STDOUT",
		"COPY "+temporary+" ("+list+") FROM STDIN"); err != nil {
		return err
	}
	if itself {
		set := strings.Join(changed, ", ")
		done, err := tx.Exec(ctx, "UPDATE "+table+" SET ("+set+") = (SELECT "+set+" FROM "+temporary+") WHERE "+
			r.where())
		if err != nil || done.RowsAffected() > 0 {
			return err
		}
	}
	_, err = tx.Exec(ctx, "INSERT INTO "+table+" ("+list+") OVERRIDING SYSTEM VALUE SELECT "+list+" FROM "+temporary)
	return err
}

// copy sends what one server gives out to the other, as text.
func (p *PostgresRows) copy(ctx context.Context, to *pgconn.PgConn, read, write string) error {
	from, into := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := p.staged.PgConn().CopyTo(ctx, into, read)
		ended <- err
		into.CloseWithError(err)
	}()
	_, err := to.CopyFrom(ctx, from, write)
	from.Close() // a reader that stopped early must not hold up the writer
	if failed := <-ended; failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		return failed
	}
	return err
}

// shared are the columns that both tables have and that are not computed; changed are
// those of them that an UPDATE may set.
func (p *PostgresRows) shared(ctx context.Context, tx pgx.Tx, table string) (columns, changed []string, err error) {
	type column struct {
		Name   string
		Always bool
	}
	query := "SELECT attname, attidentity = 'a' FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND " +
		"NOT attisdropped AND attgenerated = '' ORDER BY attnum"
	list := func(rows pgx.Rows, err error) ([]column, error) {
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	}
	live, err := list(tx.Query(ctx, query, p.table(table)))
	if err != nil {
		return nil, nil, fmt.Errorf("listing the columns of %s: %w", table, err)
	}
	staged, err := list(p.staged.Query(ctx, query, p.table(table)))
	if err != nil {
		return nil, nil, fmt.Errorf("listing the columns of %s in the backup: %w", table, err)
	}
	for _, c := range live {
		if !slices.ContainsFunc(staged, func(s column) bool { return s.Name == c.Name }) {
			continue
		}
		name := pgx.Identifier{c.Name}.Sanitize()
		columns = append(columns, name)
		if !c.Always {
			changed = append(changed, name)
		}
	}
	return columns, changed, nil
}
