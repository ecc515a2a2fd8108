package main

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pingcap/tidb/pkg/parser"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver" // the parser's literals
)

// exception is a statement that the parser does not know, and why that is right.
type exception struct {
	statement *regexp.Regexp
	reason    string
	met       int
}

// TestEveryStatementParses reads the whole corpus with a parser of MySQL's
// grammar: a statement that it refuses is an exception with a reason, and an
// exception that nothing needs any more is a fault too.
func TestEveryStatementParses(t *testing.T) {
	exceptions := readExceptions(t)
	p := parser.New()
	read, refused := 0, 0
	for _, statement := range lines(t, "corpus.txt") {
		read++
		_, _, err := p.Parse(statement, "", "")
		if err == nil {
			continue
		}
		refused++
		i := slices.IndexFunc(exceptions, func(x exception) bool { return x.statement.MatchString(statement) })
		if i < 0 {
			t.Errorf("%.300s\n\t%v", statement, err)
			continue
		}
		exceptions[i].met++
	}
	if read < 500 {
		t.Errorf("the corpus has %d statements only: run make corpus", read)
	}
	for _, x := range exceptions {
		if x.met == 0 {
			t.Errorf("no statement needs the exception %s any more (%s)", x.statement, x.reason)
		}
	}
	t.Logf("%d statements, of them %d exceptions", read, refused)
}

// TestANewStatementIsRefused shows that the parser would find what old servers
// do not understand.
func TestANewStatementIsRefused(t *testing.T) {
	for _, statement := range []string{
		"MERGE INTO jobs USING x ON x.id = jobs.id WHEN MATCHED THEN DELETE",
		"DELETE FROM jobs WHERE id = 1 RETURNING id", // MariaDB's and PostgreSQL's
		"SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (j BIGINT PATH '$')) t QUALIFY 1",
	} {
		if _, _, err := parser.New().Parse(statement, "", ""); err == nil {
			t.Errorf("parsed: %s", statement)
		}
	}
}

func TestReadingAGeneralLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.log")
	text := "2026-11-21T20:00:00.000000Z\t  9 Connect\troot@localhost\n" +
		"2026-11-21T20:00:00.100000Z\t  9 Query\tSELECT 1,\n  'a''b', t_0123456789abcdef0123.x\n" +
		"2026-11-21T20:00:00.200000Z\t  9 Prepare\tSELECT ?\n" +
		"2026-11-21T20:00:00.300000Z\t  9 Execute\tINSERT INTO t VALUES (1,'x',NULL),(2,'y',NULL)\n" +
		"2026-11-21T20:00:00.350000Z\t  9 Query\tSELECT 2\n" +
		"2026-11-21T20:00:00.360000Z\t  9 Binlog Dump\tLog: 'log.000001'  Pos: 4\n" +
		"2026-11-21T20:00:00.370000Z\t  9 Query\tSELECT b\n" +
		"/usr/sbin/mysqld, Version: 9.7.4 (Test). started with:\nTcp port: 1  Unix socket: x\n" +
		"2026-11-21T20:00:00.400000Z\t  9 Quit\t\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := readLog(file, func(s string) { got = append(got, normalised(s)) }); err != nil {
		t.Fatal(err)
	}
	want := []string{"SELECT 1, 's', t_db.x", "INSERT INTO t VALUES (1)", "SELECT 1", "SELECT b"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestRecordingKeepsWhatOtherPackagesSent(t *testing.T) {
	dir := t.TempDir()
	to := filepath.Join(dir, "corpus.txt")
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(to, "SELECT 1\nSELECT a\n")
	write(filepath.Join(dir, "x.log"), "2026-11-21T20:00:00.100000Z\t  9 Query\tSELECT b\n")
	for _, c := range []struct {
		keep bool
		want string
	}{{true, "SELECT 1\nSELECT a\nSELECT b\n"}, {false, "SELECT b\n"}} {
		if err := record(dir, to, c.keep); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(to); err != nil || string(got) != c.want {
			t.Errorf("keep %t: %q (%v)", c.keep, got, err)
		}
	}
}

func readExceptions(t *testing.T) (list []exception) {
	for _, line := range lines(t, "exceptions.txt") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		pattern, reason, found := strings.Cut(line, "\t")
		if !found || strings.TrimSpace(reason) == "" {
			t.Fatalf("an exception without a reason: %s", line)
		}
		list = append(list, exception{statement: regexp.MustCompile(pattern), reason: strings.TrimSpace(reason)})
	}
	return list
}

func lines(t *testing.T, file string) (list []string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if s.Text() != "" {
			list = append(list, s.Text())
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}
