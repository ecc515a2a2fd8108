package binlog

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// dying is a place whose writer dies at a write: before it, after it, or within it.
type dying struct {
	storage.Store
	left int
	die  func()
	r    *rand.Rand
}

func (d *dying) Put(ctx context.Context, key string, r io.Reader, o storage.PutOptions) error {
	if d.left--; d.left > 0 {
		return d.Store.Put(ctx, key, r, o)
	}
	switch d.r.IntN(3) {
	case 0:
		d.die()
	case 1:
		r = &half{r, d.die}
	default:
		defer d.die()
	}
	return d.Store.Put(ctx, key, r, o)
}

// half dies after the first bytes.
type half struct {
	io.Reader
	die func()
}

func (h *half) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b[:min(len(b), 100)])
	h.die()
	return n, err
}

func TestAnArchiverThatDiesLosesAndRepeatsNothing(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		l := newLogged(t, engine)
		exec(t, l.db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT)")
		l.base(t)
		l.config.MostBytes = 2000
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 1))
		died := 0
		for range 30 {
			for range 20 {
				exec(t, l.db, "INSERT INTO t (v) VALUES (REPEAT('v', 200))")
			}
			if r.IntN(4) == 0 {
				l.rotate(t)
			}
			ctx, cancel := context.WithCancel(t.Context())
			c := l.config
			c.Places = map[string]storage.Store{"local": &dying{l.place, 1 + r.IntN(5), cancel, r}}
			report, err := NewArchiver(c).Pass(ctx)
			if err != nil || report.Places["local"].Err != nil {
				died++
			}
			cancel()
		}
		if died < 10 {
			t.Errorf("it died %d times only", died)
		}
		l.pass(t, NewArchiver(l.config))
		l.equal(t, 2) // each segment begins where the one before it ends
		if left, err := os.ReadDir(l.config.Dir); err != nil || len(left) > 0 {
			t.Errorf("temporary files are left: %v, %v", left, err)
		}
	})
}

// A dump among writers begins a chain that has every later change once.
func TestADumpAmongWritersKnowsItsPosition(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		l := newLogged(t, engine, "--log-bin-trust-function-creators=1", "--sync-binlog=1")
		exec(t, l.db, site...)
		for round := range 5 {
			stop := make(chan struct{})
			wrote := make(chan struct{})
			var writers sync.WaitGroup
			for w := range 4 {
				writers.Go(func() {
					for i := 0; ; i++ {
						_, err := l.db.ExecContext(t.Context(), fmt.Sprintf(
							"INSERT INTO posts (title) VALUES ('%d-%d-%d'), ('%[1]d-%d-%d second')", round, w, i, w, i))
						if err != nil {
							t.Error(err)
							return
						}
						select {
						case <-stop:
							return
						case wrote <- struct{}{}:
						default:
						}
					}
				})
			}
			await(t, wrote, 20)
			all, base := l.dumped(t)
			await(t, wrote, 10)
			close(stop)
			writers.Wait()
			l.pass(t, NewArchiver(l.config))
			result, got := l.replayTo(t, all, base, time.Now().Add(time.Hour))
			if d := differs(look(t, l.dsn), got); len(d) > 0 || result.Transactions == 0 {
				t.Fatalf("%q, %d transactions after %s", d, result.Transactions, base.Log)
			}
		}
	})
}

// await waits for n events.
func await(t *testing.T, events <-chan struct{}, n int) {
	t.Helper()
	late := time.After(30 * time.Second)
	for range n {
		select {
		case <-events:
		case <-late:
			t.Fatal("nothing is written")
		}
	}
}

func TestOnlyWhatWasSignedIsApplied(t *testing.T) {
	l := newLogged(t, jobstest.MariaDB)
	exec(t, l.db, "CREATE TABLE t (id INT PRIMARY KEY)")
	l.base(t)
	exec(t, l.db, "INSERT INTO t VALUES (1)")
	l.pass(t, NewArchiver(l.config))
	all, err := list(t.Context(), l.place)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d segments, %v", len(all), err)
	}
	s := all[len(all)-1]
	good := read(t, l.place, s.key())
	open := func(r *Reader) error {
		plain, closeIt, err := r.open(t.Context(), s)
		if err == nil {
			closeIt()
			_ = plain
		}
		return err
	}
	if err := open(l.reader()); err != nil {
		t.Fatal(err)
	}
	other := manifest.Signer{Private: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))}
	if err := open(&Reader{Store: l.place, Signer: other}); !errors.Is(err, ErrUntrusted) {
		t.Errorf("of an installation that is not trusted: %v", err)
	}
	other.Trusted = []string{signer.PublicKey()}
	if err := open(&Reader{Store: l.place, Signer: other}); err != nil {
		t.Errorf("of one that is trusted: %v", err)
	}
	// The content of another segment under this one's name, with its own signature.
	forged := l.config
	forged.Places = map[string]storage.Store{"local": storage.Under(l.place, "forged/")}
	forged.Signer = func(context.Context) (manifest.Signer, error) { return other, nil }
	if _, err := NewArchiver(forged).Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{"unsigned": good[:len(good)-trailerSize],
		"forged":  read(t, l.place, "forged/"+s.key()),
		"altered": append(bytes.Clone(good[:len(good)-1]), good[len(good)-1]^1),
		"damaged": append(append(bytes.Clone(good[:40]), good[40]^1), good[41:]...)} {
		if err := l.place.Put(t.Context(), s.key(), bytes.NewReader(bad), storage.PutOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := open(l.reader()); !errors.Is(err, ErrUntrusted) && !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := l.reader().Count(t.Context(), l.chain(t, l.bases[0]), Target{Schema: "site", DSN: l.dsn,
			At: time.Now().Add(time.Hour)}); err == nil {
			t.Errorf("%s: it is read all the same", name)
		}
	}
}

func read(t *testing.T, place storage.Store, key string) []byte {
	t.Helper()
	body, _, err := place.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	b, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNamesOfTheDatabaseAreRewritten(t *testing.T) {
	r := rewriter{from: "site", to: "scratch", others: func(name string) bool { return name == "other" }}
	for _, c := range []struct {
		mode           uint64
		query, want    string
		other, refused bool
	}{
		{query: "DROP TABLE site.posts, `site` . `a`", want: "DROP TABLE `scratch`.posts, `scratch` . `a`"},
		{query: "CREATE TABLE site (site INT, site2 INT)", want: "CREATE TABLE site (site INT, site2 INT)"},
		{query: "INSERT INTO t VALUES ('site.posts', \"site.x\", 'it''s site.a', 'b\\'site.c')",
			want: "INSERT INTO t VALUES ('site.posts', \"site.x\", 'it''s site.a', 'b\\'site.c')"},
		{query: "DROP TABLE /* site.a */ site/**/.posts -- site.b\n, SITE.c # site.d",
			want: "DROP TABLE /* site.a */ `scratch`/**/.posts -- site.b\n, `scratch`.c # site.d"},
		{query: "/*!50003 CREATE TRIGGER site.x BEFORE INSERT ON site.t FOR EACH ROW SET @a = site.f(NEW.site) */",
			want: "/*!50003 CREATE TRIGGER `scratch`.x BEFORE INSERT ON `scratch`.t FOR EACH ROW SET @a = `scratch`.f(NEW.site) */"},
		{query: "SELECT a.site.b, 1.5, .5 FROM site.t", want: "SELECT a.site.b, 1.5, .5 FROM `scratch`.t",
			refused: true},
		{query: "ALTER DATABASE site CHARACTER SET utf8mb4", want: "ALTER DATABASE `scratch` CHARACTER SET utf8mb4"},
		{query: "DROP DATABASE IF EXISTS `site`", want: "DROP DATABASE IF EXISTS `scratch`", refused: true},
		{mode: ansiQuotes, query: `DROP TABLE "site"."posts"`, want: "DROP TABLE `scratch`.\"posts\""},
		{mode: noBackslashEscapes, query: `INSERT INTO t SELECT '\', a FROM site.t`,
			want: `INSERT INTO t SELECT '\', a FROM ` + "`scratch`.t"},
		{query: "INSERT INTO t SELECT * FROM other.t", want: "INSERT INTO t SELECT * FROM other.t", other: true},
		{query: "LOAD DATA INFILE 'x' INTO TABLE site.t", want: "LOAD DATA INFILE 'x' INTO TABLE `scratch`.t",
			refused: true},
		{query: "CALL something()", want: "CALL something()", refused: true},
	} {
		s, err := r.rewrite([]byte(c.query), c.mode)
		if err != nil || string(s.text) != c.want || (s.other != "") != c.other || (s.judge() == refuse) != c.refused {
			t.Errorf("%s\nbecomes %s\nnot %s\n(%+v, %v)", c.query, s.text, c.want, s, err)
		}
	}
	for _, torn := range []string{"INSERT INTO t VALUES ('a", "DROP TABLE `a", "DROP /* TABLE"} {
		if _, err := r.rewrite([]byte(torn), 0); !errors.Is(err, errTorn) {
			t.Errorf("%s: %v", torn, err)
		}
	}
}

// What stands in an error about a DSN is not its password.
func TestNoPasswordInErrors(t *testing.T) {
	_, err := Look(t.Context(), "root:geheim@tcp(127.0.0.1:1)/site")
	if err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("%v", err)
	}
	if err := fetch(t.Context(), "root:geheim@nonsense", &Server{}, "log.000001", 4, nil); err == nil ||
		strings.Contains(err.Error(), "geheim") {
		t.Errorf("%v", err)
	}
}
