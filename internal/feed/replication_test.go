package feed

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// replicating is a PostgreSQL server that replicates, with a site on it.
type replicating struct {
	*site
	server *jobstest.Server
	source *Replication
}

func newReplicating(t *testing.T) *replicating {
	t.Helper()
	server := jobstest.Own(t, jobstest.PostgreSQL, "-c", "wal_level=logical", "-c", "max_replication_slots=3", "-c",
		"fsync=off")
	open := func(name string) *sqlx.DB {
		db, err := sqlx.Open("pgx", jobstest.PostgresDSN(server.Port, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	open("postgres").MustExec("CREATE DATABASE site")
	dsn := jobstest.PostgresDSN(server.Port, "site")
	s := newSite(t, &jobstest.Database{DB: open("site"), Engine: jobstest.PostgreSQL, Driver: "pgx", DSN: dsn})
	s.Database.MustExec("CREATE TABLE posts (id BIGINT PRIMARY KEY, name TEXT)")
	s.Database.MustExec("CREATE TABLE posts_translations (lang TEXT, posts_id BIGINT, PRIMARY KEY (lang, posts_id))")
	s.Database.MustExec("CREATE TABLE other (id BIGINT PRIMARY KEY, name TEXT)")
	r := &replicating{s, server, &Replication{DSN: dsn, Table: s.Layout.Table().Name,
		Content: []string{"posts", "posts_translations", "pages", "settings"}}}
	return r
}

// publish makes the publications as a person does.
func (r *replicating) publish(t *testing.T) *Publication {
	t.Helper()
	p, err := Publications(t.Context(), r.Database.DB, r.source.Table, r.source.Content)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range p.Make {
		r.Database.MustExec(statement)
	}
	return p
}

func TestReplication(t *testing.T) {
	r := newReplicating(t)
	u := needs(t, Try(t.Context(), r.source, 20*time.Second), "in no publication")
	if u.Fix != "cmsjobs migrate feed --replication" {
		t.Errorf("the remedy is %q", u.Fix)
	}
	r.publish(t)
	r.publish(t) // twice is harmless
	t.Run("rows", r.rows)
	t.Run("rights", r.rights)
	t.Run("places", r.places)
	t.Run("open transaction", r.open)
	t.Run("position", r.position)
	t.Run("pooler", r.pooler)
	t.Run("without a primary key", r.keyless)
	t.Run("lost", r.lost)
}

// named are rows of the content as [table:id].
func named(rows []Row) string {
	names := []string{}
	for _, row := range rows {
		names = append(names, row.Table+":"+row.ID)
	}
	return fmt.Sprint(names)
}

// Inserts of jobs are seen when they are committed, and each change of content with its
// row; nothing of other tables is.
func (r *replicating) rows(t *testing.T) {
	type report struct {
		Report
		rows string
	}
	all := make(chan report, 10000)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- r.source.Run(ctx, func(what Report, rows ...Row) { all <- report{what, named(rows)} })
	}()
	defer func() {
		cancel()
		<-ended
	}()
	<-all
	if !r.source.SeesContent() {
		t.Error("it does not see the content")
	}
	says := func(want Report, rows, why string) {
		t.Helper()
		for late := time.After(20 * time.Second); ; {
			select {
			case got := <-all:
				if got == (report{want, rows}) {
					return
				}
				if got.Report != Alive {
					t.Fatalf("%s: report %d of %s", why, got.Report, got.rows)
				}
			case err := <-ended:
				ended <- err
				t.Fatalf("%s: it ended: %v", why, err)
			case <-late:
				t.Fatalf("%s: no report", why)
			}
		}
	}
	r.insert(t, "default", 0)
	says(Inserted, "[]", "a job")
	tx := r.Database.MustBegin()
	tx.MustExec("UPDATE jobs SET attempts = 1")
	tx.MustExec("INSERT INTO other VALUES (1, 'x')")
	tx.MustExec("INSERT INTO posts VALUES (7, repeat('x', 100000))")
	time.Sleep(50 * time.Millisecond)
	for len(all) > 0 {
		if got := <-all; got.Report != Alive {
			t.Errorf("report %d of %s before the commit", got.Report, got.rows)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	says(Edited, "[posts:7]", "a new post")
	r.Database.MustExec("UPDATE posts SET name = 'y'")
	says(Edited, "[posts:7]", "an edit")
	r.Database.MustExec("INSERT INTO posts_translations VALUES ('vi', 7)")
	says(Edited, "[]", "a table whose key is another")
	r.Database.MustExec("DELETE FROM posts")
	says(Edited, "[posts:7]", "a deletion")
	r.Database.MustExec("TRUNCATE posts")
	says(Edited, "[]", "all posts deleted")
	r.Database.MustExec("ALTER TABLE posts ADD COLUMN slug TEXT DEFAULT ''")
	r.Database.MustExec("INSERT INTO posts VALUES (8, '', '')")
	says(Edited, "[posts:8]", "a table that was changed")
}

// The error of an account without the right names the statement that gives it; a reader
// whose right is taken away is ended with its connection, and the log says so once.
func (r *replicating) rights(t *testing.T) {
	r.Database.MustExec(`CREATE ROLE "o'cms" LOGIN`)
	r.Database.MustExec(`GRANT ALL ON ALL TABLES IN SCHEMA public TO "o'cms"`)
	source := *r.account(`o'cms`)
	u := needs(t, Try(t.Context(), &source, 20*time.Second), "may not replicate")
	statement, _, _ := strings.Cut(u.Fix, ",")
	if !strings.HasPrefix(statement, "ALTER ROLE ") {
		t.Fatalf("the remedy is %q", u.Fix)
	}
	r.Database.MustExec(statement)
	var log safeLog
	o := r.options(t, &source)
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	_, stop := watch(t, o)
	r.woke(t, "") // at the start
	r.woke(t, "") // when it subscribed
	r.Database.MustExec(`ALTER ROLE "o'cms" NOREPLICATION`)
	r.endReaders(t)
	for end := time.Now().Add(20 * time.Second); log.count("feed.unavailable") == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("nobody says that the right is gone:\n%s", log.String())
		}
	}
	for range 3 {
		r.insert(t, "default", 0)
		r.woke(t, "default")
	}
	if log.count("feed.unavailable") != 1 || !strings.Contains(log.String(), "ALTER ROLE") {
		t.Errorf("the log says:\n%s", log.String())
	}
	stop()
}

// account is the source with another account.
func (r *replicating) account(name string) *Replication {
	dsn := strings.Replace(r.source.DSN, "postgres@", strings.ReplaceAll(name, "'", "%27")+"@", 1)
	return &Replication{DSN: dsn, Table: r.source.Table, Content: r.source.Content}
}

func (r *replicating) endReaders(t *testing.T) {
	t.Helper()
	var n int
	if err := r.Database.Get(&n, "SELECT COUNT(pg_terminate_backend(active_pid)) FROM pg_replication_slots"); err != nil ||
		n == 0 {
		t.Fatalf("%d readers, %v", n, err)
	}
}

// Several subscribe; one too many hears what to raise. A slot goes with its connection.
func (r *replicating) places(t *testing.T) {
	r.slots(t, 0)
	t.Run("three", func(t *testing.T) {
		for range 3 {
			listen(t, &Replication{DSN: r.source.DSN, Table: r.source.Table})
		}
		u := needs(t, Try(t.Context(), r.source, 20*time.Second), "no place")
		if !strings.Contains(u.Fix, "max_replication_slots") {
			t.Errorf("the remedy is %q", u.Fix)
		}
	})
	r.slots(t, 0)
}

// slots waits until the server has so many.
func (r *replicating) slots(t *testing.T, want int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var n int
		if err := r.Database.Get(&n, "SELECT COUNT(*) FROM pg_replication_slots"); err != nil {
			t.Fatal(err)
		}
		if n == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the server has %d slots, not %d", n, want)
		}
	}
}

// The server begins when the transactions that are open have ended: until then, the
// source does not say that it works.
func (r *replicating) open(t *testing.T) {
	tx := r.Database.MustBegin()
	defer tx.Rollback()
	tx.MustExec("INSERT INTO other VALUES (2, 'x')")
	err := Try(t.Context(), r.source, 2*time.Second)
	if err == nil || !strings.Contains(err.Error(), "transactions that are open") {
		t.Errorf("beside an open transaction: %v", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := Try(t.Context(), r.source, 20*time.Second); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// What the reader has seen, the server need not keep: also what is of other tables.
func (r *replicating) position(t *testing.T) {
	r.slots(t, 0)
	listen(t, r.source)
	r.Database.MustExec("INSERT INTO other SELECT n, repeat('x', 1000) FROM generate_series(100, 2000) n")
	var end string
	if err := r.Database.Get(&end, "SELECT pg_current_wal_lsn()::text"); err != nil {
		t.Fatal(err)
	}
	for late := time.Now().Add(40 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var behind bool
		if err := r.Database.Get(&behind, "SELECT bool_or(confirmed_flush_lsn < $1::pg_lsn) FROM pg_replication_slots",
			end); err != nil {
			t.Fatal(err)
		}
		if !behind {
			return
		}
		if time.Now().After(late) {
			t.Fatal("the server keeps what was read")
		}
	}
}

// A pooler knows no replication, and the source says so.
func (r *replicating) pooler(t *testing.T) {
	pooler := jobstest.PgBouncer(t, r.server.Port)
	dsn := strings.Replace(r.source.DSN, fmt.Sprint(":", r.server.Port, "/"), fmt.Sprint(":", pooler.Port, "/"), 1)
	source := &Replication{DSN: dsn, Table: r.source.Table}
	u := needs(t, Try(t.Context(), source, 30*time.Second), "pooler")
	if !strings.Contains(u.Fix, "feed.dsn") {
		t.Errorf("the remedy is %q", u.Fix)
	}
}

// A table without a primary key is left out: published, it would take no UPDATE.
func (r *replicating) keyless(t *testing.T) {
	r.Database.MustExec("CREATE TABLE settings (name TEXT, value TEXT)")
	r.Database.MustExec("INSERT INTO settings VALUES ('theme', 'a')")
	p := r.publish(t)
	if len(p.Without) != 1 || p.Without[0] != `"settings"` {
		t.Errorf("left out: %v", p.Without)
	}
	r.Database.MustExec("UPDATE settings SET value = 'b'")
	r.Database.MustExec("UPDATE posts SET name = 'z'")
	t.Run("seen", func(t *testing.T) {
		listen(t, r.source)
		if r.source.SeesContent() {
			t.Error("it claims to see a table that is not published")
		}
	})
	r.Database.MustExec("ALTER TABLE settings ADD PRIMARY KEY (name)")
	if p := r.publish(t); len(p.Without) != 0 {
		t.Errorf("left out: %v", p.Without)
	}
}

// A subscriber whose slot is lost, whose server was killed, or whose tables are published
// no more, begins again, and everybody is woken for what came in the meantime.
func (r *replicating) lost(t *testing.T) {
	r.slots(t, 0)
	o := r.options(t, r.source)
	o.Busy, o.Idle = time.Hour, time.Hour // looks only by hints
	watch(t, o)
	r.woke(t, "") // at the start
	r.woke(t, "") // when it subscribed
	r.insert(t, "default", 0)
	r.woke(t, "default")

	r.endReaders(t)
	r.woke(t, "")
	r.insert(t, "lost", 0)
	r.woke(t, "lost")

	if err := r.server.Kill(); err != nil {
		t.Logf("killing the server: %v", err)
	}
	if err := r.server.Start(); err != nil {
		t.Fatal(err)
	}
	r.woke(t, "")
	for end := time.Now().Add(20 * time.Second); ; { // the connections of the test are gone with the server
		if _, err := r.Database.Exec("SELECT 1"); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the server does not come back")
		}
	}
	r.insert(t, "restarted", 0)
	for { // the look after the trouble and the source's own both wake
		select {
		case queue := <-r.woken:
			if queue == "restarted" {
				return
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the row after the restart was not seen")
		}
	}
}

// A server whose log does not say enough is named, with the setting.
func TestReplicationNeedsALogicalLog(t *testing.T) {
	s := newSite(t, jobstest.Open(t, jobstest.PostgreSQL))
	table := s.Layout.Table().Name
	p, err := Publications(t.Context(), s.Database.DB, table, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range p.Make {
		s.Database.MustExec(statement)
	}
	source := &Replication{DSN: s.Database.DSN, Table: table}
	u := needs(t, Try(t.Context(), source, 20*time.Second), "wal_level is replica")
	if !strings.Contains(u.Fix, "wal_level = 'logical'") {
		t.Errorf("the remedy is %q", u.Fix)
	}
	if trigger, publication, err := Prepared(t.Context(), s.Database.DB, table); trigger || !publication || err != nil {
		t.Errorf("prepared: trigger %t, publication %t, %v", trigger, publication, err)
	}
	for _, statement := range append(p.Drop, Trigger(table)...) {
		s.Database.MustExec(statement)
	}
	if trigger, publication, err := Prepared(t.Context(), s.Database.DB, table); !trigger || publication || err != nil {
		t.Errorf("prepared: trigger %t, publication %t, %v", trigger, publication, err)
	}
}

// Beside a source that works, the hints of the next cause no looks; when it is lost, they
// do.
func TestOneOfTwoSourcesIsEnough(t *testing.T) {
	w := New(Options{Logger: slog.New(slog.DiscardHandler), Now: time.Now, Sources: []Source{&bell{}, &bell{}}})
	first, second := w.sources[0], w.sources[1]
	hints := func() (n int) {
		for ; len(w.hints) > 0; n++ {
			<-w.hints
		}
		return n
	}
	second.report(Alive)
	second.report(Inserted)
	if n := hints(); n != 2 {
		t.Errorf("%d hints of the second before the first works", n)
	}
	first.report(Alive)
	hints()
	second.report(Inserted)
	if n := hints(); n != 0 {
		t.Errorf("%d hints of the second beside the first", n)
	}
	first.report(Inserted)
	if n := hints(); n != 1 {
		t.Errorf("%d hints of the first", n)
	}
	first.missed.Store(true)
	second.report(Inserted)
	if n := hints(); n != 1 {
		t.Errorf("%d hints of the second beside one that misses rows", n)
	}
}
