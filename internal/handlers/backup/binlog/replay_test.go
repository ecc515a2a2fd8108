package binlog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// moment is a second, and what the database held at its end.
type moment struct {
	at   time.Time
	held dump.Summary
}

// pieces is a dump in memory.
type pieces []struct {
	part  dump.Part
	table string
	sql   []byte
}

func (l *logged) dumped(t *testing.T) (all pieces, summary dump.Summary) {
	t.Helper()
	summary, err := dump.MySQL(t.Context(), l.dsn, dump.Options{LogPosition: true}, func(p dump.Part, table string,
		b []byte) error {
		all = append(all, struct {
			part  dump.Part
			table string
			sql   []byte
		}{p, table, append([]byte(nil), b...)})
		return nil
	})
	if err != nil || summary.Log == nil {
		t.Fatalf("%v, position %v, warnings %q", err, summary.Log, summary.Warnings)
	}
	l.bases = append(l.bases, Base{*summary.Log, summary.Snapshot})
	return all, summary
}

// scratch loads a dump into a new database.
func (l *logged) scratch(t *testing.T, all pieces, name string) string {
	t.Helper()
	exec(t, l.db, "DROP DATABASE IF EXISTS "+name, "CREATE DATABASE "+name)
	c, err := mysql.ParseDSN(l.dsn)
	if err != nil {
		t.Fatal(err)
	}
	c.DBName = name
	loader, err := dump.NewLoader(t.Context(), c.FormatDSN(), dump.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if err := loader.Load(p.part, p.table, p.sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := loader.Close(); err != nil {
		t.Fatal(err)
	}
	return c.FormatDSN()
}

func look(t *testing.T, dsn string) dump.Summary {
	t.Helper()
	s, err := dump.MySQL(t.Context(), dsn, dump.Options{}, func(dump.Part, string, []byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mark waits for the end of the server's second and notes what the database holds.
func (l *logged) mark(t *testing.T) moment {
	t.Helper()
	held := look(t, l.dsn)
	return moment{l.second(t), held}
}

// second waits for the end of the server's second and says which it was.
func (l *logged) second(t *testing.T) time.Time {
	t.Helper()
	var second, now int64
	scan := func(into *int64) {
		if err := l.db.QueryRowContext(t.Context(), "SELECT UNIX_TIMESTAMP()").Scan(into); err != nil {
			t.Fatal(err)
		}
	}
	scan(&second)
	for now = second; now == second; time.Sleep(5 * time.Millisecond) { // each turn asks the server
		scan(&now)
	}
	return time.Unix(second, 0).UTC()
}

func (l *logged) replayTo(t *testing.T, all pieces, base dump.Summary, at time.Time) (Result, dump.Summary) {
	t.Helper()
	dsn := l.scratch(t, all, "scratch")
	c := l.chain(t, Base{*base.Log, base.Snapshot})
	result, err := l.reader().Replay(t.Context(), c, Target{DSN: dsn, Schema: "site", Dump: base, At: at})
	if err != nil {
		t.Fatalf("to %s: %v (%+v)", at, err, result)
	}
	return result, look(t, dsn)
}

// differs says how two databases differ in tables, rows and structure.
func differs(want, got dump.Summary) (found []string) {
	there := map[string]dump.Table{}
	for _, g := range got.Tables {
		there[g.Name] = g
	}
	for _, w := range want.Tables {
		g, is := there[w.Name]
		delete(there, w.Name)
		if !is || g.Rows != w.Rows || g.Checksum != w.Checksum {
			found = append(found, fmt.Sprintf("%s: %d rows %s, want %d rows %s", w.Name, g.Rows, g.Checksum, w.Rows,
				w.Checksum))
		}
	}
	for name := range there {
		found = append(found, name+" should not be there")
	}
	if len(found) == 0 && want.Schema != got.Schema {
		found = append(found, "the structure is another one")
	}
	return found
}

// types make a table of each kind of value.
const types = `CREATE TABLE types (id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT,
	tiny TINYINT UNSIGNED, big BIGINT UNSIGNED, dec_ DECIMAL(30,10), f FLOAT, d DOUBLE, b BIT(17),
	e ENUM('a','ü','c d') CHARACTER SET utf8mb4, s SET('x','y','z'), j JSON, g GEOMETRY, da DATE, dt DATETIME(6), ts TIMESTAMP(3) NULL,
	ti TIME(2), y YEAR, c CHAR(5) CHARACTER SET latin1, v VARCHAR(300) CHARACTER SET utf8mb4, bin_ VARBINARY(50),
	lt LONGTEXT, lb LONGBLOB, gen INT GENERATED ALWAYS AS (tiny + 1) STORED,
	virt VARCHAR(310) GENERATED ALWAYS AS (CONCAT(v, '!')) VIRTUAL)`

// site makes tables with foreign keys that cascade and a trigger that writes.
var site = []string{
	types,
	"CREATE TABLE posts (id INT PRIMARY KEY AUTO_INCREMENT, title VARCHAR(200) NOT NULL, views INT DEFAULT 0, " +
		"changed TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), UNIQUE KEY (title))",
	"CREATE TABLE comments (id INT PRIMARY KEY AUTO_INCREMENT, post INT NOT NULL, body TEXT, " +
		"FOREIGN KEY (post) REFERENCES posts (id) ON DELETE CASCADE ON UPDATE CASCADE)",
	"CREATE TABLE audit (id INT PRIMARY KEY AUTO_INCREMENT, what VARCHAR(250))",
	"CREATE TABLE plain (a INT, b VARCHAR(50))", // without a key
	"CREATE TRIGGER posts_audit AFTER INSERT ON posts FOR EACH ROW INSERT INTO audit (what) VALUES (NEW.title)",
	"CREATE VIEW newest AS SELECT id, title FROM posts ORDER BY id DESC",
}

// random changes the site by one statement.
func random(r *rand.Rand, n int) string {
	text := func() string {
		return []string{"ü😀", "it''s", `back\\slash`, "", "NULL", "a;b -- c", "`site`.posts"}[r.IntN(7)] + strconv.Itoa(n)
	}
	post := "(SELECT id FROM (SELECT id FROM posts ORDER BY RAND() LIMIT 1) AS one)"
	switch r.IntN(17) {
	case 0, 1, 2:
		return fmt.Sprintf(`INSERT INTO types (tiny, big, dec_, f, d, b, e, s, j, g, da, dt, ts, ti, y, c, v, bin_, lt, lb)
			VALUES (%d, 18446744073709551615 - %d, %d.0000000001, %g, %g, b'%b', '%s', '%s', '{"k": [%d, "ü", 1.5, null]}',
			ST_GeomFromText('POINT(%d 2)'), '2026-02-28', '2026-03-01 12:34:56.%06d', '2026-05-05 01:02:03.5', '-12:00:00.25',
			%d, 'é', '%s', X'00ff%02x', REPEAT('long ', %d), REPEAT(X'00', %d))`, r.IntN(200), n, r.IntN(1e9), r.Float32(),
			r.NormFloat64(), r.IntN(1<<17), []string{"a", "ü", "c d"}[r.IntN(3)], []string{"", "x", "x,z"}[r.IntN(3)], n,
			n, r.IntN(1e6), 1950+r.IntN(150), text(), r.IntN(256), r.IntN(5000), r.IntN(9000))
	case 3, 4, 5, 6:
		return fmt.Sprintf("INSERT INTO posts (title) VALUES ('%s'), ('second %d')", text(), n)
	case 7:
		return "UPDATE posts SET views = views + 1, title = CONCAT(title, '.') WHERE id % 3 = " + strconv.Itoa(r.IntN(3))
	case 8, 9:
		return "INSERT INTO comments (post, body) SELECT id, REPEAT(title, 3) FROM posts WHERE id % 5 = " +
			strconv.Itoa(r.IntN(5))
	case 10:
		return "DELETE FROM posts WHERE id = " + post // its comments go with it
	case 11:
		return fmt.Sprintf("UPDATE posts SET id = id + 100000 WHERE id = %s", post)
	case 12:
		return fmt.Sprintf("INSERT INTO plain VALUES (%d, '%s'), (NULL, NULL), (%[1]d, '%[2]s')", r.IntN(9), text())
	case 13:
		return fmt.Sprintf("DELETE FROM plain WHERE a = %d LIMIT 1", r.IntN(9))
	case 14:
		return fmt.Sprintf("UPDATE types SET j = JSON_SET(j, '$.n', %d), v = UPPER(v), tiny = NULL, s = 'y' WHERE id %% 4 = %d",
			n, r.IntN(4))
	case 15:
		return "DELETE FROM types WHERE id % 7 = " + strconv.Itoa(r.IntN(7))
	}
	return fmt.Sprintf("REPLACE INTO posts (id, title) VALUES (%d, 'replaced %d')", 1+r.IntN(20), n)
}

// definitions change the structure, one after the other.
var definitions = []string{
	"CREATE TABLE site.later (id INT PRIMARY KEY, v VARCHAR(20)) ENGINE=InnoDB",
	"INSERT INTO site.later VALUES (1, 'x')",
	"ALTER TABLE posts ADD COLUMN subtitle VARCHAR(50) NOT NULL DEFAULT 'none', ADD INDEX (views)",
	"CREATE TABLE copied AS SELECT id, title FROM posts",
	"RENAME TABLE site.later TO site.renamed",
	"CREATE TRIGGER later_one BEFORE UPDATE ON posts FOR EACH ROW SET NEW.subtitle = CONCAT('was ', OLD.views)",
	"TRUNCATE TABLE plain",
	"CREATE OR REPLACE VIEW newest AS SELECT site.posts.id FROM site.posts",
	"DROP TABLE copied",
	"CREATE TABLE `site`.`again` LIKE `site`.`posts`",
	"DROP TRIGGER later_one",
}

// secondsOfWrites is the variable with the number of seconds for which the site is written to.
const secondsOfWrites = "CMSJOBS_TEST_SECONDS"

// Somebody writes for some seconds (ten minutes under make heavy; an hour is 3600), and
// random ones of them (50 under make heavy) are restored as they were.
func TestAnyMomentIsRestored(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		l := newLogged(t, engine, "--log-bin-trust-function-creators=1")
		l.config.MostBytes = 200_000
		exec(t, l.db, site...)
		exec(t, l.db, "CREATE DATABASE other", "CREATE TABLE other.posts (id INT PRIMARY KEY AUTO_INCREMENT)")
		seed := uint64(time.Now().UnixNano())
		r := rand.New(rand.NewPCG(seed, 1))
		n := 0
		l.write(t, r, &n, 40)
		all, base := l.dumped(t)
		a := NewArchiver(l.config)
		wanted := jobstest.Size(t, "CMSJOBS_TEST_MOMENTS", 10, 50)
		seconds := max(jobstest.Size(t, secondsOfWrites, wanted, 600), wanted)
		part := seconds / wanted // the structure is changed, and the log rotated, as often in a longer run
		var moments []moment
		for i := range seconds {
			l.write(t, r, &n, 1+30/part)
			if i%part == 0 && i/part < len(definitions) {
				exec(t, l.db, definitions[i/part])
				l.write(t, r, &n, 10)
			}
			if i%(3*part) == part {
				l.rotate(t)
				l.pass(t, a)
			}
			if r.IntN(seconds-i) < wanted-len(moments) {
				moments = append(moments, l.mark(t))
			} else {
				l.second(t)
			}
		}
		l.write(t, r, &n, 10)
		l.pass(t, a)
		before := look(t, l.dsn)
		t.Logf("seed %d, %d changes in %d seconds, %d of them restored", seed, n, seconds, len(moments))
		for _, m := range moments {
			result, got := l.replayTo(t, all, base, m.at)
			for _, d := range differs(m.held, got) {
				t.Errorf("%s: %s", m.at.Format(time.TimeOnly), d)
			}
			if len(result.Skipped) > 0 || result.Next.IsZero() {
				t.Errorf("%+v", result)
			}
		}
		if d := differs(before, look(t, l.dsn)); len(d) > 0 {
			t.Errorf("the site itself was changed: %q", d)
		}
	})
}

// write makes n random changes in transactions of one to four statements, one in six of
// which is rolled back. Half of the sessions log texts, where the server can.
func (l *logged) write(t *testing.T, r *rand.Rand, n *int, changes int) {
	t.Helper()
	conn, err := l.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	format := []string{"ROW", "MIXED"}[r.IntN(2)]
	do := func(statement string) {
		_, err := conn.ExecContext(t.Context(), statement)
		var refused *mysql.MySQLError
		if errors.As(err, &refused) && refused.Number == 1062 { // a title that is there
			err = nil
		}
		if err != nil {
			t.Fatalf("%.200s: %v", statement, err)
		}
	}
	do("SET SESSION sql_mode = '', binlog_format = " + format)
	if r.IntN(2) == 0 {
		do("SET SESSION time_zone = '+05:30', character_set_client = latin1, foreign_key_checks = 1")
		do("SET NAMES utf8mb4")
	}
	for changes > 0 {
		do("BEGIN")
		for range 1 + r.IntN(4) {
			*n++
			changes--
			do(random(r, *n))
		}
		if r.IntN(5) == 0 {
			do("INSERT INTO other.posts VALUES ()")
		}
		do([]string{"COMMIT", "COMMIT", "COMMIT", "COMMIT", "COMMIT", "ROLLBACK"}[r.IntN(6)])
	}
	do("SET @v = 'from a variable', @n = 5")
	do("INSERT INTO plain VALUES (@n, @v), (FLOOR(RAND() * 10), UUID())")
}

func TestADroppedTableComesBack(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		l := newLogged(t, engine, "--log-bin-trust-function-creators=1")
		exec(t, l.db, site...)
		all, base := l.dumped(t)
		exec(t, l.db, "INSERT INTO posts (title) VALUES ('one'), ('two')", "INSERT INTO comments (post) VALUES (1)")
		m := l.mark(t)
		exec(t, l.db, "DROP TABLE comments", "DROP TABLE site.posts")
		l.pass(t, NewArchiver(l.config))
		result, got := l.replayTo(t, all, base, m.at)
		if d := differs(m.held, got); len(d) > 0 || result.Next.IsZero() || result.Transactions != 2 {
			t.Errorf("%q, %+v", d, result)
		}
		// The DROP names the site: applied to the copy it must not reach the site.
		exec(t, l.db, "CREATE TABLE posts (id INT)", "INSERT INTO posts VALUES (7)")
		l.pass(t, NewArchiver(l.config))
		_, got = l.replayTo(t, all, base, time.Now().Add(time.Hour))
		for _, table := range got.Tables {
			if table.Name == "comments" {
				t.Error("the table that was dropped is there")
			}
		}
		var n int
		if err := l.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM posts").Scan(&n); err != nil || n != 1 {
			t.Errorf("the site has %d rows, %v", n, err)
		}
	})
}

func TestWhatCannotBeReplayedIsRefused(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		l := newLogged(t, engine)
		exec(t, l.db, "CREATE TABLE posts (id INT PRIMARY KEY AUTO_INCREMENT)", "CREATE DATABASE other",
			"CREATE TABLE other.o (id INT)")
		for _, c := range []struct{ statement, want string }{
			{"SET SESSION binlog_format = STATEMENT; INSERT INTO posts SELECT id FROM other.o", "names the database other"},
			{"XA START 'a'; INSERT INTO posts VALUES (50); XA END 'a'; XA PREPARE 'a'; XA COMMIT 'a'", "XA transaction"},
			{"DROP DATABASE site; CREATE DATABASE site", "cannot be applied to a copy"},
		} {
			all, base := l.dumped(t)
			do(t, l.db, c.statement)
			l.pass(t, NewArchiver(l.config))
			dsn := l.scratch(t, all, "scratch")
			_, err := l.reader().Replay(t.Context(), l.chain(t, Base{*base.Log, base.Snapshot}),
				Target{DSN: dsn, Schema: "site", Dump: base, At: time.Now().Add(time.Hour)})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.statement, err)
			}
		}
	})
}

// do runs statements on one connection.
func do(t *testing.T, db *sql.DB, statements string) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	defer func() { _, _ = conn.ExecContext(context.Background(), "SET SESSION binlog_format = ROW") }()
	for statement := range strings.SplitSeq(statements, "; ") {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
