package swap

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
)

// SQLite takes tables from another file into the database that the DSN names, in one
// transaction: processes that use the database meanwhile see all of it or nothing. with
// runs in that transaction, too. Tables that wanted refuses stay as they are.
func SQLite(ctx context.Context, dsn, file string, wanted func(table string) bool,
	with func(context.Context, sqlx.ExecerContext) error) (err error) {
	db, err := OpenSQLiteRows(ctx, dsn, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn := db.conn
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("waiting for the database: %w", err)
	}
	if err = takeAll(ctx, conn, wanted); err == nil {
		err = with(ctx, conn)
	}
	if err != nil {
		_, rollback := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return errors.Join(err, rollback)
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	return err
}

// sqliteObject is one row of sqlite_schema.
type sqliteObject struct {
	Type  string `db:"type"`
	Name  string `db:"name"`
	Table string `db:"tbl_name"`
	SQL   string `db:"sql"`
}

// takeAll takes tables with their rows, then what belongs to them, then views.
func takeAll(ctx context.Context, conn *sqlx.Conn, wanted func(string) bool) error {
	var all []sqliteObject
	if err := conn.SelectContext(ctx, &all,
		"SELECT type, name, tbl_name, sql FROM restored.sqlite_schema WHERE sql IS "+
			"NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY CASE type WHEN 'table' THEN 1 WHEN 'index' "+
			"THEN 2 "+
			"WHEN 'view' THEN 3 ELSE 4 END"); err != nil {
		return fmt.Errorf("reading the database of the backup: %w", err)
	}
	for _, o := range all {
		if o.Type == "view" || wanted(o.Table) {
			if err := take(ctx, conn, o); err != nil {
				return fmt.Errorf("restoring the %s %s: %w", o.Type, o.Name, err)
			}
		}
	}
	return nil
}

func take(ctx context.Context, conn *sqlx.Conn, o sqliteObject) error {
	if o.Type == "table" && strings.HasPrefix(strings.ToUpper(o.SQL), "CREATE VIRTUAL") {
		return errors.New("a virtual table is restored into a new file only (--into sqlite:NEWFILE)")
	}
	for _, statement := range []string{"DROP " + strings.ToUpper(o.Type) + " IF EXISTS main." + quotedSQLite(o.Name),
		o.SQL} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	if o.Type != "table" {
		return nil
	}
	var columns []string // without those that are computed
	if err := conn.SelectContext(ctx, &columns, "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0",
		o.Name); err != nil {
		return err
	}
	for i := range columns {
		columns[i] = quotedSQLite(columns[i])
	}
	list := strings.Join(columns, ", ")
	if _, err := conn.ExecContext(ctx, "INSERT INTO main."+quotedSQLite(o.Name)+" ("+list+") SELECT "+list+
		" FROM restored."+quotedSQLite(o.Name)); err != nil {
		return err
	}
	return takeSequence(ctx, conn, o.Name)
}

// takeSequence takes the last number of AUTOINCREMENT.
func takeSequence(ctx context.Context, conn *sqlx.Conn, table string) error {
	var n int
	if err := conn.GetContext(ctx, &n,
		"SELECT COUNT(*) FROM restored.sqlite_schema WHERE name = 'sqlite_sequence'"); err !=
		nil || n == 0 {
		return err
	}
	if err := conn.GetContext(ctx, &n, "SELECT COUNT(*) FROM main.sqlite_schema WHERE name = 'sqlite_sequence'"); err !=
		nil || n == 0 {
		return err
	}
	for _, statement := range []string{"DELETE FROM main.sqlite_sequence WHERE name = ?",
		"INSERT INTO main.sqlite_sequence (name, seq) SELECT name, seq FROM restored.sqlite_sequence WHERE name = ?"} {
		if _, err := conn.ExecContext(ctx, statement, table); err != nil {
			return err
		}
	}
	return nil
}

func quotedSQLite(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
