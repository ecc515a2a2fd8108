package dump

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// kinds are tables of one kind of column each. A text of theirs is in a dump as it is
// stored, or it is not.
func kinds(engine jobstest.Engine) map[string]string {
	tables := map[string]string{
		"stored_größe": "(`größe` VARCHAR(20), t TEXT CHARACTER SET utf8mb3, e ENUM('ä','b'), a CHAR(9) CHARACTER SET " +
			"ascii, b VARBINARY(20), c BLOB, d DATETIME(6), n DECIMAL(9,3), s SET('ö','y'), i INT, KEY (`größe`))",
		"stored_long":     "(t LONGTEXT, b LONGBLOB, e ENUM('" + strings.Repeat("ä", 200) + "'), n TEXT)",
		"converted_latin": "(t VARCHAR(20) CHARACTER SET latin1)",
		"converted_wide":  "(e ENUM('ä','b') CHARACTER SET utf16)",
	}
	if engine == jobstest.MySQL {
		tables["converted_json"] = "(j JSON)"
	} else {
		tables["converted_uuid"] = "(u UUID)"
		tables["converted_inet"] = "(i INET6)"
	}
	return tables
}

// valuesOfKinds fill them.
var valuesOfKinds = map[string]string{
	"stored_größe": "('Größe \\'😀\\\\', 'ü€', 'ä', 'abc', X'00FF27', X'F09F', '2024-02-03 04:05:06.789', -1.5, " +
		"'ö,y', 7), (NULL, '', 'b', '', '', 'x', NULL, NULL, '', NULL)",
	"stored_long":     `(REPEAT('ü€''"\\\\\n\0%_?', 3000), REPEAT(X'00FF27', 300000), 1, REPEAT('\Z,(?)', 99))`,
	"converted_latin": "('größer')",
	"converted_wide":  "('ä')",
	"converted_json":  `('{"a": "ü"}')`,
	"converted_uuid":  "('6ccd780c-baba-1026-9564-5b8c656024db')",
	"converted_inet":  "('::1'), ('2001:db8::ff00:42:8329')",
}

func TestTextsAreRestoredInEachKindOfColumn(t *testing.T) {
	jobstest.EachMySQL(t, testTextsAreRestoredInEachKindOfColumn)
}

func testTextsAreRestoredInEachKindOfColumn(t *testing.T, engine jobstest.Engine) {
	if engine == jobstest.MariaDB {
		jobstest.NeedVersion(t, engine, 10, 7, "a column of UUIDs")
	}
	from, to := jobstest.Open(t, engine), jobstest.Open(t, engine)
	for name, columns := range kinds(engine) {
		from.MustExec("CREATE TABLE " + quoteName(name) + " " + columns + " DEFAULT CHARSET=utf8mb4")
		from.MustExec("INSERT INTO " + quoteName(name) + " VALUES " + valuesOfKinds[name])
		var table, create string
		if err := from.QueryRow("SHOW CREATE TABLE "+quoteName(name)).Scan(&table, &create); err != nil {
			t.Fatal(err)
		}
		if raw := rawInserts([]byte(create)); (raw != nil) != strings.HasPrefix(name, "stored") {
			t.Errorf("%s: %q", create, raw)
		}
	}
	_, summary := dumped(t, from, Options{})
	reload(t, from, to, LoadOptions{})
	sameDatabase(t, from, to, summary)
}

func TestOnlyWhatAServerWroteIsTakenForStoredTexts(t *testing.T) {
	for create, want := range map[string]string{
		"CREATE TABLE `t` (\n  `a` text\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4":          "INSERT INTO `t` ",
		"CREATE TABLE `t``s` (\n  `a``b` int(11)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb3": "INSERT INTO `t``s` ",
		"CREATE TABLE `t` (\n  `a` text\n) ENGINE=InnoDB":                                  "",
		"CREATE TABLE `t` (\n  `a\nb` uuid\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4":       "",
		"CREATE TABLE `t` (\n  `a` uuid\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4":          "",
		"CREATE TABLE `t` (\n  `a` text\n) ENGINE=InnoDB DEFAULT CHARSET=sjis":             "",
		"CREATE TABLE t (a text) DEFAULT CHARSET=utf8mb4":                                  "",
		"": "",
	} {
		if got := string(rawInserts([]byte(create))); got != want {
			t.Errorf("%q: %q", create, got)
		}
	}
}

// While a large table still has rows to insert, the next one is filled.
func TestTheNextTableIsFilledBesideALargeOne(t *testing.T) {
	jobstest.EachMySQL(t, testTheNextTableIsFilledBesideALargeOne)
}

func testTheNextTableIsFilledBesideALargeOne(t *testing.T, engine jobstest.Engine) {
	const inserts = 20
	db := jobstest.Open(t, engine)
	l, err := NewLoader(t.Context(), db.DSN, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	load := func(table, sql string) {
		t.Helper()
		if err := l.Load(Main, table, []byte(sql)); err != nil {
			t.Fatal(err)
		}
	}
	load("large", "CREATE TABLE `large` (id INT PRIMARY KEY);\nSELECT 1;\n")
	holder := db.MustBegin()
	holder.MustExec("INSERT INTO `large` VALUES (0)")
	// The first of them waits for the holder's row.
	var rows []string
	for id := range inserts {
		rows = append(rows, fmt.Sprintf("INSERT INTO `large` VALUES (%d);\n", id))
	}
	load("large", strings.Join(rows, ""))
	load("small", "CREATE TABLE small (id INT PRIMARY KEY);\nINSERT INTO small VALUES (1);\nSELECT 1;\n")
	deadline, n := time.Now().Add(20*time.Second), 0
	for tick := time.NewTicker(5 * time.Millisecond); n == 0; <-tick.C {
		if err := db.Get(&n, "SELECT COUNT(*) FROM small"); err != nil || time.Now().After(deadline) {
			t.Fatalf("the small table has %d rows, %v", n, err)
		}
	}
	if err := holder.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var ids []int
	if err := db.Select(&ids, "SELECT id FROM `large` ORDER BY id"); err != nil || len(ids) != inserts ||
		!slices.IsSorted(ids) {
		t.Errorf("%v, %v", ids, err)
	}
}

// However slow the server is, only so many bytes of rows wait for it.
func TestRowsThatWaitAreBounded(t *testing.T) { jobstest.EachMySQL(t, testRowsThatWaitAreBounded) }

func testRowsThatWaitAreBounded(t *testing.T, engine jobstest.Engine) {
	const inserts, size = 3 * waiting >> 20, 1 << 20
	db := jobstest.Open(t, engine)
	l, err := NewLoader(t.Context(), db.DSN, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	create := "CREATE TABLE held (id INT PRIMARY KEY, v LONGTEXT);\nSELECT 1;\n"
	if err := l.Load(Main, "held", []byte(create)); err != nil {
		t.Fatal(err)
	}
	holder := db.MustBegin()
	holder.MustExec("INSERT INTO held VALUES (0, '')")
	var loaded atomic.Int64
	failed := make(chan error, 1)
	go func() {
		var err error
		for id := 0; id < inserts && err == nil; id++ {
			err = l.Load(Main, "held", fmt.Appendf(nil, "INSERT INTO held VALUES (%d, '%s');\n", id,
				strings.Repeat("x", size)))
			loaded.Add(1)
		}
		failed <- err
	}()
	full := func() bool {
		free := l.memory.TryAcquire(size)
		if free {
			l.memory.Release(size)
		}
		return !free
	}
	for tick := time.NewTicker(time.Millisecond); !full() && loaded.Load() < inserts; {
		<-tick.C
	}
	if n := loaded.Load(); n > waiting/size {
		t.Errorf("%d MiB were taken while the first row waited", n)
	}
	if err := errors.Join(holder.Rollback(), <-failed, l.Close()); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := db.Get(&rows, "SELECT COUNT(*) FROM held"); err != nil || rows != inserts {
		t.Errorf("%d rows, %v", rows, err)
	}
}
