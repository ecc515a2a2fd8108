package dump

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // the driver that DSNs name
)

// SQLite copies a SQLite database while it is in use (VACUUM INTO) and hands
// over the copy: its pieces, joined, are the file. The copy needs space in the
// folder for temporary files while the dump lasts.
func SQLite(ctx context.Context, dsn string, o Options, sink Sink) (Summary, error) {
	dir, err := os.MkdirTemp("", "cmsjobs-sqlite-") // made 0700
	if err != nil {
		return Summary{}, err
	}
	defer os.RemoveAll(dir)
	copied := filepath.Join(dir, "copy.sqlite")
	if err := sqliteCopy(ctx, dsn, copied, o); err != nil {
		return Summary{}, fmt.Errorf("copying the database: %w", err)
	}
	summary, err := SQLiteSummary(ctx, copied)
	if err != nil {
		return Summary{}, err
	}
	for i := range summary.Tables {
		t := &summary.Tables[i]
		t.Empty = o.Empty != nil && o.Empty(t.Name)
	}
	f, err := os.Open(copied)
	if err != nil {
		return Summary{}, err
	}
	defer f.Close()
	out := newWriter(ctx, o, sink)
	out.start(Main, "")
	out.rows = summary.Rows
	if o.CutByKey {
		err = out.writePages(f)
	} else {
		_, err = io.Copy(writerFunc(func(p []byte) (int, error) {
			out.write(p)
			return len(p), out.err()
		}), f)
	}
	if err = errors.Join(err, out.close()); err != nil {
		return Summary{}, fmt.Errorf("dumping the database: %w", err)
	}
	summary.Bytes = out.bytes
	return summary, nil
}

func sqliteCopy(ctx context.Context, dsn, to string, o Options) error {
	from, err := sql.Open("sqlite", dsn)
	if err != nil {
		return err
	}
	defer from.Close()
	if _, err := from.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return err
	}
	db, err := sqlx.Open("sqlite", "file:"+to)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	names, err := sqliteTables(ctx, db)
	if err != nil {
		return err
	}
	all := catalog{}
	for _, name := range names {
		all.tables = append(all.tables, tableInfo{name: name})
	}
	kept := map[string]bool{}
	for _, t := range all.only(o).tables {
		kept[t.name] = true
	}
	changed := false
	for _, name := range names {
		statement := ""
		switch {
		case !kept[name]:
			statement = "DROP TABLE " + quoteSQLite(name)
		case o.Empty != nil && o.Empty(name):
			statement = "DELETE FROM " + quoteSQLite(name)
		default:
			continue
		}
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
		changed = true
	}
	if changed { // what was left out must not stay in free pages
		_, err = db.ExecContext(ctx, "VACUUM")
	}
	return err
}

func quoteSQLite(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func sqliteTables(ctx context.Context, db *sqlx.DB) (names []string, err error) {
	err = db.SelectContext(ctx, &names, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE "+
		"'sqlite\\_%' ESCAPE '\\' ORDER BY name")
	return names, err
}

// SQLiteTables counts the rows of each table of the database that the DSN names.
func SQLiteTables(ctx context.Context, dsn string) (_ map[string]int64, err error) {
	db, err := sqlx.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	names, err := sqliteTables(ctx, db)
	if err != nil {
		return nil, err
	}
	tables := map[string]int64{}
	for _, name := range names {
		var rows int64
		if err := db.GetContext(ctx, &rows, "SELECT COUNT(*) FROM "+quoteSQLite(name)); err != nil {
			return nil, fmt.Errorf("counting the rows of %s: %w", name, err)
		}
		tables[name] = rows
	}
	return tables, nil
}

// SQLiteSummary checks a SQLite file and describes it.
func SQLiteSummary(ctx context.Context, file string) (Summary, error) {
	s := Summary{Database: "main", Charset: "UTF-8"}
	db, err := sqlx.Open("sqlite", "file:"+file+"?mode=ro")
	if err != nil {
		return s, err
	}
	defer db.Close()
	var answers []string
	if err := db.SelectContext(ctx, &answers, "PRAGMA integrity_check(5)"); err != nil {
		return s, fmt.Errorf("checking the database: %w", err)
	}
	if len(answers) != 1 || answers[0] != "ok" {
		return s, fmt.Errorf("the database is damaged: %s", strings.Join(answers, "; "))
	}
	if err := db.GetContext(ctx, &s.Server, "SELECT 'SQLite ' || sqlite_version()"); err != nil {
		return s, err
	}
	hash := sha256.New()
	var schema []string
	if err := db.SelectContext(ctx, &schema,
		"SELECT COALESCE(sql, '') FROM sqlite_schema ORDER BY type, name"); err != nil {
		return s, err
	}
	for _, create := range schema {
		fmt.Fprintf(hash, "%d:%s", len(create), create)
	}
	s.Schema = hex.EncodeToString(hash.Sum(nil))
	names, err := sqliteTables(ctx, db)
	if err != nil {
		return s, err
	}
	for _, name := range names {
		t := Table{Name: name, Engine: "sqlite"}
		if err := db.GetContext(ctx, &t.Rows, "SELECT COUNT(*) FROM "+quoteSQLite(name)); err != nil {
			return s, fmt.Errorf("counting the rows of %s: %w", name, err)
		}
		s.Rows += t.Rows
		s.Tables = append(s.Tables, t)
	}
	return s, nil
}
