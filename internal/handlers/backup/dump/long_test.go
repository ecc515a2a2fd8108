package dump

import (
	"bytes"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// longDatabase has values of 9 MiB under a key of two columns, and one in a
// table without a key, which can only be read whole.
func longDatabase(t *testing.T, engine jobstest.Engine) *jobstest.Database {
	t.Helper()
	db := jobstest.Open(t, engine)
	db.MustExec("CREATE TABLE long_ (a VARBINARY(8), b VARCHAR(20), v LONGBLOB, w LONGTEXT, x LONGTEXT CHARACTER SET " +
		"latin1, f FLOAT, PRIMARY KEY (a, b))")
	db.MustExec("CREATE TABLE keyless (v LONGTEXT)")
	noise := make([]byte, 9<<20)
	rand.Read(noise)
	pool, _, err := Connect(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, row := range []struct {
		a, b string
		v, w any
	}{
		{"\x00\xff'", "it's", noise, nil},
		{"2", `b\s`, []byte{}, ""},
		{"3", "ü", nil, strings.Repeat("😀'\\\n", 1<<20)},
		{"4", "short", []byte("x"), "y"},
	} {
		if _, err := pool.Exec("INSERT INTO long_ VALUES (?, ?, ?, ?, REPEAT('é', ?), 0.1)", []byte(row.a), row.b,
			row.v, row.w, len(row.b)<<20); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec("INSERT INTO keyless VALUES (REPEAT('x', ?))", 5<<20); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestLongValuesAreWrittenInParts(t *testing.T) {
	jobstest.EachMySQL(t, testLongValuesAreWrittenInParts)
}

func testLongValuesAreWrittenInParts(t *testing.T, engine jobstest.Engine) {
	from := longDatabase(t, engine)
	f, summary := dumped(t, from, Options{})
	longest, rows := 0, int64(0)
	split := NewSplitter(maxStatement, func(statement []byte) error {
		if !bytes.Contains(statement, []byte("`keyless`")) {
			longest = max(longest, len(statement))
		}
		rows += CountRows(statement)
		return nil
	})
	if _, err := split.Write(f.main.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := split.Close(); err != nil || rows != 5 || summary.Rows != 5 {
		t.Errorf("%d rows are counted, %d were dumped, %v", rows, summary.Rows, err)
	}
	if most := 4*longPart + 1<<20; longest > most { // of four bytes a character
		t.Errorf("a statement has %d bytes, at most %d are needed", longest, most)
	}
	to := jobstest.Open(t, engine)
	client(t, to, f.main.Bytes())
	sameDatabase(t, from, to, summary)
	// What mode a server has by default is nothing to a dump, which sets its own.
	strict := jobstest.Open(t, engine)
	client(t, strict,
		append([]byte("SET sql_mode = 'TRADITIONAL,ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH';\n"),
			f.main.Bytes()...))
	sameDatabase(t, from, strict, summary)
	again := jobstest.Open(t, engine)
	reload(t, from, again, LoadOptions{})
	sameDatabase(t, from, again, summary)
}

// A server that cannot hold a value must not put NULL in its place.
func TestALongValueThatDoesNotFitIsAnError(t *testing.T) {
	jobstest.EachMySQL(t, testALongValueThatDoesNotFitIsAnError)
}

func testALongValueThatDoesNotFitIsAnError(t *testing.T, engine jobstest.Engine) {
	from := longDatabase(t, engine)
	f, _ := dumped(t, from, Options{Tables: []string{"long_"}})
	cut := bytes.Replace(f.main.Bytes(), []byte("CONCAT(@cmsjobs_0,"), []byte("CONCAT("), 1)
	if bytes.Equal(cut, f.main.Bytes()) {
		t.Fatal("no value is put together")
	}
	to := jobstest.Open(t, engine)
	if out, err := tryClient(t, to, cut); err == nil || !strings.Contains(out, "out of range") {
		t.Errorf("%v: %.300s", err, out)
	}
}
