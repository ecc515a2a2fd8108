package dump

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// pieces is a Sink that keeps the pieces of tables, or all of them.
type pieces struct {
	all   bool
	texts [][]byte
	bytes int
}

func (p *pieces) sink(part Part, table string, sql []byte) error {
	if p.all || part == Main && table != "" {
		p.texts = append(p.texts, bytes.Clone(sql))
		p.bytes += len(sql)
	}
	return nil
}

// fresh is how many pieces, and bytes, are not among those of an earlier dump.
func (p *pieces) fresh(before *pieces) (n, size int) {
	known := map[[32]byte]bool{}
	for _, text := range before.texts {
		known[sha256.Sum256(text)] = true
	}
	for _, text := range p.texts {
		if !known[sha256.Sum256(text)] {
			n, size = n+1, size+len(text)
		}
	}
	return n, size
}

// A row that is added, changed or deleted changes its own piece, whatever its place.
func TestPiecesAreCutByKey(t *testing.T) { jobstest.EachMySQL(t, testPiecesAreCutByKey) }

func testPiecesAreCutByKey(t *testing.T, engine jobstest.Engine) {
	db := jobstest.Open(t, engine)
	makePosts(t, func(q string, a ...any) { db.MustExec(q, a...) }, "id INT AUTO_INCREMENT PRIMARY KEY", 20_000)
	// Here an index covers all columns, in another order than the key's.
	db.MustExec("CREATE TABLE flags (id INT PRIMARY KEY, flag TINYINT NOT NULL, KEY by_flag (flag))")
	db.MustExec("INSERT INTO flags SELECT id, id % 17 FROM posts")
	cut := func() *pieces {
		t.Helper()
		p := &pieces{}
		if _, err := MySQL(t.Context(), db.DSN, Options{CutByKey: true}, p.sink); err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := cut()
	if mean := first.bytes / len(first.texts); mean < cutSize/3 || mean > 2*cutSize {
		t.Errorf("%d pieces of %d bytes, about", len(first.texts), mean)
	}
	if n, _ := cut().fresh(first); n > 0 {
		t.Errorf("nothing changed, and %d pieces did", n)
	}
	for _, change := range []struct {
		sql  string
		most int
	}{
		{"DELETE FROM posts WHERE id = 3", 1},
		{"UPDATE posts SET title = CONCAT(title, ' and more') WHERE id = 9000", 1},
		{"INSERT INTO posts (title, body) VALUES ('new', 'text')", 2}, // and AUTO_INCREMENT of the table
		{"DELETE FROM flags WHERE id = 5", 1},
	} {
		before := cut()
		db.MustExec(change.sql)
		// A change may take away the row after which a piece ended, or bring one: then two are new.
		if n, _ := cut().fresh(before); n < 1 || n > change.most+1 {
			t.Errorf("%s: %d pieces are new", change.sql, n)
		}
	}
	sortsNothing(t, db)
	for _, p := range cut().texts {
		if bytes.Contains(p, []byte("INSERT")) && !bytes.HasSuffix(p, []byte(";\n")) {
			t.Error("a piece ends within an INSERT")
		}
	}
}

// sortsNothing: rows are read by the primary key, and the server sorts none.
func sortsNothing(t *testing.T, db *jobstest.Database) {
	t.Helper()
	s := &session{castDouble: true}
	table := tableInfo{name: "flags", key: []int{0}, byKey: true,
		columns: []column{{name: "id", form: number}, {name: "flag", form: number}}}
	for _, format := range []string{"EXPLAIN ", "EXPLAIN FORMAT=JSON "} {
		rows, err := db.QueryxContext(t.Context(), format+s.selectRows(table))
		if err != nil {
			t.Fatal(err)
		}
		var plan strings.Builder
		for rows.Next() {
			fields, err := rows.SliceScan()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range fields {
				fmt.Fprintf(&plan, "%s ", f)
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(plan.String(), "filesort") || strings.Contains(plan.String(), "by_flag") {
			t.Errorf("the plan is %s", plan.String())
		}
	}
	values, last := 0, -1
	rows, err := db.QueryxContext(t.Context(), s.selectRows(table))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, flag int
		if err := rows.Scan(&id, &flag); err != nil {
			t.Fatal(err)
		}
		if id <= last {
			t.Fatalf("the row %d comes after %d", id, last)
		}
		values, last = values+1, id
	}
	if values == 0 || rows.Err() != nil {
		t.Errorf("%d rows, %v", values, rows.Err())
	}
}

// What is cut by key restores as the rest does, and cuts the same again.
func TestADumpCutByKeyRestores(t *testing.T) { jobstest.EachMySQL(t, testADumpCutByKeyRestores) }

func testADumpCutByKeyRestores(t *testing.T, engine jobstest.Engine) {
	jobstest.AsRoot(t)
	from := load(t, engine, torture(engine))
	f, was := dumped(t, from, Options{CutByKey: true})
	to := jobstest.Open(t, engine)
	client(t, to, f.all())
	sameDatabase(t, from, to, was)
	again, _ := dumped(t, to, Options{CutByKey: true})
	second := jobstest.Open(t, engine)
	client(t, second, again.all())
	last, _ := dumped(t, second, Options{CutByKey: true})
	if afterHeader(again.all()) != afterHeader(last.all()) {
		t.Error("the dump of a restored dump, restored and dumped, became another")
	}
}

// A copy of SQLite is cut after pages: most of those of a table stay as they are.
func TestSQLiteIsCutByPages(t *testing.T) {
	name := filepath.Join(t.TempDir(), "site.sqlite")
	db, err := sql.Open("sqlite", name)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatal(err)
		}
	}
	makePosts(t, exec, "id INTEGER PRIMARY KEY AUTOINCREMENT", 20_000)
	cut := func(o Options) (*pieces, Summary) {
		t.Helper()
		p := &pieces{all: true}
		s, err := SQLite(t.Context(), "file:"+name, o, p.sink)
		if err != nil {
			t.Fatal(err)
		}
		return p, s
	}
	first, summary := cut(Options{CutByKey: true})
	whole, _ := cut(Options{})
	if !bytes.Equal(bytes.Join(first.texts, nil), bytes.Join(whole.texts, nil)) || summary.Bytes != int64(first.bytes) {
		t.Error("the pieces are not the file")
	}
	if mean := first.bytes / len(first.texts); mean < cutSize/3 || mean > 2*cutSize {
		t.Errorf("%d pieces of %d bytes, about", len(first.texts), mean)
	}
	exec("UPDATE posts SET title = title || '!' WHERE id = 19000")
	exec("INSERT INTO posts (title, body) VALUES ('new', 'text')")
	second, _ := cut(Options{CutByKey: true})
	n, size := second.fresh(first)
	t.Logf("%d of %d pieces are new, %d of %d bytes", n, len(second.texts), size, second.bytes)
	if size == 0 || size > second.bytes/4 {
		t.Errorf("%d of %d bytes are new", size, second.bytes)
	}
}

// makePosts fills a table with rows as a CMS has them; each is about 500 bytes.
func makePosts(t *testing.T, exec func(string, ...any), key string, rows int) {
	t.Helper()
	exec("CREATE TABLE posts (" + key + ", title VARCHAR(200), body TEXT, views INT)")
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the site has pages posts media tags and people who read what others wrote about them")
	for n := 0; n < rows; n += 500 {
		var q strings.Builder
		q.WriteString("INSERT INTO posts (title, body, views) VALUES ")
		for i := range 500 {
			var text strings.Builder
			for range 40 + r.IntN(80) {
				text.WriteString(words[r.IntN(len(words))])
				text.WriteByte(' ')
			}
			fmt.Fprintf(&q, "%s('Post %d','%s',%d)", strings.Repeat(",", min(i, 1)), n+i, text.String(), r.IntN(10_000))
		}
		exec(q.String())
	}
}
