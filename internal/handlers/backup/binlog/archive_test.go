package binlog

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// logged is a server that writes a binary log, with an archive of it.
type logged struct {
	server *jobstest.Server
	engine jobstest.Engine
	dsn    string // of the database site
	db     *sql.DB
	place  storage.Store
	bases  []Base
	config Config
}

func newLogged(t *testing.T, engine jobstest.Engine, options ...string) *logged {
	t.Helper()
	server := jobstest.Own(t, engine, append([]string{"--log-bin=log", "--server-id=1", "--binlog-format=ROW",
		"--sync-binlog=0"}, options...)...)
	root := server.RootMySQL(t)
	exec(t, root, "CREATE DATABASE site")
	l := &logged{server: server, engine: engine, dsn: driverDSN(t, server.MySQLDSN("site"))}
	var err error
	if l.db, _, err = dump.Connect(l.dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.db.Close() })
	place, err := storage.NewLocal(t.TempDir(), storage.LocalOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { place.Close() })
	l.place = place
	l.config = Config{DSN: l.dsn, Places: map[string]storage.Store{"local": place}, MostBytes: 20_000, Dir: t.TempDir(),
		Bases:  func(context.Context, string) ([]Base, error) { return l.bases, nil },
		Signer: func(context.Context) (manifest.Signer, error) { return signer, nil }, Logger: slog.New(slog.DiscardHandler)}
	return l
}

var signer = manifest.Signer{Private: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))}

func driverDSN(t *testing.T, dsn string) string {
	t.Helper()
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return c.FormatDSN()
}

func exec(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%.100s: %v", statement, err)
		}
	}
}

// rotate begins the next file of the log. MariaDB writes to it in the background that
// the files before it are no longer needed: what is compared or purged waits for that.
func (l *logged) rotate(t *testing.T) {
	t.Helper()
	exec(t, l.db, "FLUSH BINARY LOGS")
	if l.engine != jobstest.MariaDB {
		return
	}
	server, err := Look(t.Context(), l.dsn)
	if err != nil {
		t.Fatal(err)
	}
	newest := server.Files[len(server.Files)-1].Name
	for late := time.Now().Add(30 * time.Second); !l.noted(t, newest); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%s names no checkpoint in itself", newest)
		}
	}
}

// noted says whether a file has the event that no file before it is needed.
func (l *logged) noted(t *testing.T, name string) bool {
	t.Helper()
	rows, err := l.db.QueryContext(t.Context(), "SHOW BINLOG EVENTS IN '"+name+"'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := false
	for rows.Next() {
		var file, kind, info string
		var position, server, end int64
		if err := rows.Scan(&file, &position, &kind, &server, &end, &info); err != nil {
			t.Fatal(err)
		}
		found = found || kind == "Binlog_checkpoint" && info == name
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// base dumps the database into nothing and makes its position one to archive for.
func (l *logged) base(t *testing.T) dump.Summary {
	t.Helper()
	summary, err := dump.MySQL(t.Context(), l.dsn, dump.Options{LogPosition: true},
		func(dump.Part, string, []byte) error { return nil })
	if err != nil || summary.Log == nil {
		t.Fatalf("%v, position %v, warnings %q", err, summary.Log, summary.Warnings)
	}
	l.bases = append(l.bases, Base{*summary.Log, summary.Snapshot})
	return summary
}

func (l *logged) pass(t *testing.T, a *Archiver) PlaceReport {
	t.Helper()
	report, err := a.Pass(t.Context())
	p := report.Places["local"]
	if err = errors.Join(err, p.Err); err != nil {
		t.Fatal(err)
	}
	return p
}

func (l *logged) reader(identities ...age.Identity) *Reader {
	return &Reader{Store: l.place, Identities: identities, Signer: signer}
}

// joined are the archived bytes of each file.
func (l *logged) joined(t *testing.T, identities ...age.Identity) map[string][]byte {
	t.Helper()
	all, err := list(t.Context(), l.place)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, s := range all {
		if int64(len(files[s.Name])) != s.Start {
			t.Fatalf("%s has %d bytes, the next segment begins at %d", s.Name, len(files[s.Name]), s.Start)
		}
		plain, closeIt, err := l.reader(identities...).open(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(plain)
		closeIt()
		if err != nil {
			t.Fatal(err)
		}
		files[s.Name] = append(files[s.Name], b...)
	}
	return files
}

// equal compares the archive with the server's files.
func (l *logged) equal(t *testing.T, atLeast int, identities ...age.Identity) {
	t.Helper()
	files := l.joined(t, identities...)
	names, err := filepath.Glob(filepath.Join(l.server.Dir, "data", "log.0*"))
	if err != nil || len(names) < atLeast {
		t.Fatalf("the server has the files %q, %v", names, err)
	}
	for _, name := range names {
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if i := inUse; len(want) > i { // the server sets it while the file is open
			want[i] &^= 1
		}
		if got := files[filepath.Base(name)]; !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes, archived are %d, different at %d", name, len(want), len(got), firstDifference(got,
				want))
		}
	}
}

// inUse is the offset of the flags in the description that a file begins with.
const inUse = len(magic) + 17

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func TestTheArchiveIsTheServersLogByteForByte(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		identity, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		l := newLogged(t, engine)
		l.config.Recipients = []age.Recipient{identity.Recipient()}
		exec(t, l.db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT)")
		l.base(t)
		a := NewArchiver(l.config)
		stored := 0
		for i := range 6 {
			for n := range 40 {
				exec(t, l.db, fmt.Sprintf("INSERT INTO t (v) VALUES (REPEAT('%d', %d))", i, 1+n*n*i))
			}
			switch i {
			case 1:
				l.rotate(t)
			case 2:
				exec(t, l.db, "SET SESSION binlog_format = 'STATEMENT'", "UPDATE t SET v = CONCAT(v, 'x')")
			case 3:
				exec(t, l.db, "INSERT INTO t (v) VALUES (REPEAT('long', 5000000))") // longer than a packet
			case 4:
				l.server.Kill()
				if err := l.server.Start(); err != nil {
					t.Fatal(err)
				}
			}
			if i%2 == 0 {
				a = NewArchiver(l.config) // as after a restart
			}
			stored += l.pass(t, a).Segments
		}
		if p := l.pass(t, a); p.Segments != 0 || p.Reach.Missing != "" || len(p.Reach.Windows) != 1 {
			t.Errorf("a pass with nothing new: %+v", p)
		}
		if all, err := list(t.Context(), l.place); err != nil || len(all) != stored || stored < 12 {
			t.Errorf("%d segments, %d were stored, %v", len(all), stored, err)
		}
		l.equal(t, 3, identity)
		c := l.chain(t, l.bases[0])
		if c.Missing != "" || c.End.Name != "log.000003" && c.End.Name != "log.000004" {
			t.Errorf("the chain ends at %+v: %q", c.End, c.Missing)
		}
	})
}

func (l *logged) chain(t *testing.T, b Base) Chain {
	t.Helper()
	all, err := list(t.Context(), l.place)
	if err != nil {
		t.Fatal(err)
	}
	return chainFrom(all, b.Position, b.Snapshot)
}

func TestAPurgedLogIsAGap(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		l := newLogged(t, engine)
		exec(t, l.db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT)")
		l.base(t)
		a := NewArchiver(l.config)
		l.pass(t, a)
		for range 2 {
			exec(t, l.db, "INSERT INTO t VALUES ()")
			l.rotate(t)
		}
		exec(t, l.db, "INSERT INTO t VALUES ()")
		server, err := Look(t.Context(), l.dsn)
		if err != nil {
			t.Fatal(err)
		}
		newest := server.Files[len(server.Files)-1].Name
		exec(t, l.db, "PURGE BINARY LOGS TO '"+newest+"'")
		p := l.pass(t, a)
		if !strings.Contains(p.Gap, newest) || !strings.Contains(p.Reach.Missing, "missing") {
			t.Errorf("gap %q, missing %q", p.Gap, p.Reach.Missing)
		}
		before := l.chain(t, l.bases[0])
		if before.Missing == "" || before.End.Name == newest {
			t.Errorf("a chain leads over the gap: %+v", before)
		}
		l.base(t) // what is asked for
		exec(t, l.db, "INSERT INTO t VALUES ()")
		if p := l.pass(t, a); p.Gap != "" || p.Reach.Missing != "" || len(p.Reach.Windows) == 0 {
			t.Errorf("after a new base: %+v", p)
		}
		testANewLog(t, l, a)
	})
}

// A server that begins its log again uses the same names.
func testANewLog(t *testing.T, l *logged, a *Archiver) {
	reset := "RESET BINARY LOGS AND GTIDS"
	if l.engine == jobstest.MariaDB {
		reset = "RESET MASTER"
	}
	l.second(t) // the server's clock of files has seconds
	exec(t, l.db, reset)
	for range 300 { // so that the file is longer than where the archive ends
		exec(t, l.db, "INSERT INTO t VALUES ()")
	}
	if p := l.pass(t, a); p.Gap == "" || p.Reach.Missing == "" {
		t.Errorf("a log that was begun again: %+v", p)
	}
	l.base(t)
	exec(t, l.db, "INSERT INTO t VALUES ()")
	if p := l.pass(t, a); p.Gap != "" || p.Reach.Missing != "" {
		t.Errorf("after a new base: %+v", p)
	}
}
