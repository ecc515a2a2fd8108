package dump

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func split(sql string, step int) (statements []string, err error) {
	s := NewSplitter(1<<30, func(b []byte) error { statements = append(statements, string(b)); return nil })
	for len(sql) > 0 {
		n := min(step, len(sql))
		if _, err := s.Write([]byte(sql[:n])); err != nil {
			return statements, err
		}
		sql = sql[n:]
	}
	return statements, s.Close()
}

func TestStatementsAreParted(t *testing.T) {
	const sql = "-- a ; comment\n# another;\n/* block ; */ SELECT 1;\n;;\nSELECT ';', \"a\\\";\", `x;y`, 'it''s; " +
		"\\\\';/*!40101 SET @a = ';' */;\n" +
		"DELIMITER ;;\nCREATE FUNCTION f() BEGIN -- ; x\n RETURN 1; END;;\ndelimiter ;\n--\nSELECT 2-- not\n;SELECT " +
		"5--1;\nSELECT /* in; */ 3; /* end */ -- z"
	want := []string{"SELECT 1", "SELECT ';', \"a\\\";\", `x;y`, 'it''s; \\\\'", "/*!40101 SET @a = ';' */",
		"CREATE FUNCTION f() BEGIN -- ; x\n RETURN 1; END", "SELECT 2-- not", "SELECT 5--1", "SELECT /* in; */ 3"}
	for step := 1; step < 40; step++ {
		if got, err := split(sql, step); err != nil || !slices.Equal(got, want) {
			t.Fatalf("by %d: %q, %v", step, got, err)
		}
	}
}

func TestATornStatementIsNamed(t *testing.T) {
	for _, sql := range []string{"SELECT 1", "SELECT 'a;", "SELECT 1; INSERT", "SELECT `;"} {
		if _, err := split(sql, 5); !errors.Is(err, ErrTorn) {
			t.Errorf("%q: %v", sql, err)
		}
	}
}

func TestRowsAreCounted(t *testing.T) {
	for sql, want := range map[string]int64{
		"INSERT INTO `VALUES (` (`a`,`b)`) VALUES\n(1,'),(')": 1,
		"INSERT INTO t (a) VALUES\n(1),\n('\\'),(\"'),(NULL)": 3,
		"INSERT INTO t () VALUES ()":                          1,
		"CREATE TABLE t (a INT)":                              0,
	} {
		if got := CountRows([]byte(sql)); got != want {
			t.Errorf("%q has %d rows, want %d", sql, got, want)
		}
	}
}

// Our parser must agree with the server about a real CMS's dump.
func TestARealDumpIsPartedAsTheServerDoes(t *testing.T) {
	jobstest.EachMySQL(t, testARealDumpIsPartedAsTheServerDoes)
}

func testARealDumpIsPartedAsTheServerDoes(t *testing.T, engine jobstest.Engine) {
	sql, err := os.ReadFile(jobstest.Fixture(t, "database.sql"))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := split(string(sql), len(sql))
	if err != nil {
		t.Fatal(err)
	}
	pieces, err := split(string(sql), 777)
	if err != nil || !slices.Equal(whole, pieces) {
		t.Errorf("%d statements in one piece, %d in many, %v", len(whole), len(pieces), err)
	}
	db := jobstest.Open(t, engine)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range whole {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%.80s: %v", statement, err)
		}
	}
}

func FuzzSplitter(f *testing.F) {
	f.Add("SELECT 1; DELIMITER ;;\n a;; ", 3)
	f.Add("/*!; */ '\\", 1)
	f.Fuzz(func(t *testing.T, sql string, step int) {
		step = max(step, 1)
		got, err := split(sql, step)
		want, wantErr := split(sql, len(sql)+1)
		if !slices.Equal(got, want) || (err == nil) != (wantErr == nil) {
			t.Errorf("%q by %d is %q, %v; whole it is %q, %v", sql, step, got, err, want, wantErr)
		}
		for _, s := range got {
			if strings.TrimSpace(s) == "" {
				t.Error("an empty statement")
			}
			CountRows([]byte(s))
		}
	})
}
