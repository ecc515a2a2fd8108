package database

import (
	"fmt"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// TestTheAbilitiesOfADialect asks each server whether it has what its dialect says.
func TestTheAbilitiesOfADialect(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			db := jobstest.Open(t, engine)
			d, err := DialectFor(db.DB)
			if err != nil {
				t.Fatal(err)
			}
			db.MustExec("CREATE TABLE k (id INT PRIMARY KEY, w VARCHAR(20), n SMALLINT)")
			db.MustExec("CREATE INDEX k_w ON k (w)")
			testSchemaQuestions(t, db.DB, d)
			if _, err := db.Exec("INSERT INTO k (id, w, n) VALUES (1, 'x', 100000)"); (err == nil) != d.LooseTypes {
				t.Errorf("a column holds any value: %v, %v", d.LooseTypes, err)
			}
			_, err = db.Exec(db.Rebind("INSERT INTO k (id, w) SELECT ?, ? FROM k WHERE id < 0"), 2, "y")
			if typed := err != nil; typed && !d.TypedSelect {
				t.Errorf("parameters of a SELECT list: %v", err)
			}
			db.MustExec(d.DropIndex(d.Ident("k_w"), d.Ident("k")))
			testMoments(t, db.DB, d)
		})
	}
}

// testSchemaQuestions asks for the server's version and what it says of the table k.
func testSchemaQuestions(t *testing.T, db *sqlx.DB, d Dialect) {
	t.Helper()
	var version string
	var packet int
	if err := db.QueryRowx(d.Version()).Scan(&version, &packet); err != nil || version == "" ||
		(packet > 0) != d.Engines {
		t.Errorf("the version %q, %d bytes, %v", version, packet, err)
	}
	var columns []struct{ Name, Type, Full string }
	rows, err := db.Queryx(db.Rebind(d.Columns()), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var c struct{ Name, Type, Full string }
		if err := rows.Scan(&c.Name, &c.Type, &c.Full); err != nil {
			t.Fatal(err)
		}
		columns = append(columns, c)
	}
	if err := rows.Err(); err != nil || len(columns) != 3 {
		t.Errorf("the columns %+v, %v", columns, err)
	}
	var column string
	found, err := db.Queryx(db.Rebind(d.Indexes()), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	for found.Next() {
		var index, name string
		if err := found.Scan(&index, &name); err != nil {
			t.Fatal(err)
		}
		if index == "k_w" {
			column += name
		}
	}
	if err := found.Err(); err != nil || column != "w" {
		t.Errorf("the index k_w is on %q, %v", column, err)
	}
}

// testMoments writes a moment and reads it back, as seconds and by its text.
func testMoments(t *testing.T, db *sqlx.DB, d Dialect) {
	t.Helper()
	const unix = 1767225600
	for zoned, columnType := range map[bool]string{
		false: d.Choose(Variants{MySQL: "DATETIME", PostgreSQL: "TIMESTAMP", SQLite: "DATETIME"}),
		true:  d.Choose(Variants{MySQL: "TIMESTAMP", PostgreSQL: "TIMESTAMPTZ", SQLite: "TEXT"}),
	} {
		table := fmt.Sprintf("m%t", zoned)
		db.MustExec("CREATE TABLE " + table + " (id INT PRIMARY KEY, at " + columnType + ")")
		db.MustExec("INSERT INTO " + table + " (id, at) VALUES (1, " + d.FromUnix(fmt.Sprint(unix), zoned) + ")")
		var seconds int64
		var text string
		if err := db.QueryRowx("SELECT "+d.Unix("at")+", "+d.Text("at")+" FROM "+table).Scan(&seconds,
			&text); err != nil || seconds != unix {
			t.Errorf("%s: %d, want %d; %v", columnType, seconds, unix, err)
		}
		var n int
		if err := db.Get(&n, db.Rebind("SELECT COUNT(*) FROM "+table+" WHERE at = "+d.MomentParam(zoned)),
			text); err != nil || n != 1 {
			t.Errorf("%s: %d rows at %q, %v", columnType, n, text, err)
		}
		if d.ConvertsTimestamps && zoned {
			back := d.ToServerZone(d.FromServerZone("at"))
			if err := db.Get(&n, "SELECT COUNT(*) FROM "+table+" WHERE at = "+back); err != nil || n != 1 {
				t.Errorf("to the server's zone and back: %d rows, %v", n, err)
			}
		}
	}
}

func TestCompoundOf(t *testing.T) {
	for driver, versions := range map[string]map[string]Compound{
		"mysql": {"9.7.0 MySQL Community Server": OnePacket, "11.8.3-MariaDB-0+deb13u1 Debian 13": Block,
			"8.0.11-TiDB-v8.5.0 TiDB Server": NoCompound},
		"pgx":    {"PostgreSQL 17.2": WritableCTE},
		"sqlite": {"SQLite 3.50": NoCompound},
	} {
		d, err := DialectOf(driver)
		if err != nil {
			t.Fatal(err)
		}
		for version, want := range versions {
			if got := d.CompoundOf(version); got != want {
				t.Errorf("%s, %s: %d, want %d", driver, version, got, want)
			}
		}
	}
}
