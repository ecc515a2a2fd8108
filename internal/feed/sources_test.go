package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// heard is what a source says during a test.
type heard chan Report

// listen runs a source until the test ends; it works when listen returns.
func listen(t *testing.T, s Source) heard {
	t.Helper()
	h := make(heard, 10000)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, func(r Report, _ ...Row) { h <- r }) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case <-h:
	case err := <-ended:
		ended <- err
		t.Fatalf("%s: %v", s.Name(), err)
	case <-time.After(30 * time.Second):
		t.Fatalf("%s says nothing", s.Name())
	}
	return h
}

// says waits for a report.
func (h heard) says(t *testing.T, want Report, why string) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case r := <-h:
			if r == want {
				return
			}
		case <-late:
			t.Fatalf("no report %d: %s", want, why)
		}
	}
}

// silent fails if the source reports one of these within a time in which it would have.
func (h heard) silent(t *testing.T, why string, not ...Report) {
	t.Helper()
	late := time.After(2 * time.Second)
	for {
		select {
		case r := <-h:
			if slices.Contains(not, r) {
				t.Fatalf("report %d: %s", r, why)
			}
		case <-late:
			return
		}
	}
}

func needs(t *testing.T, err error, what string) *UnavailableError {
	t.Helper()
	u, ok := unavailable(err)
	if !ok || !strings.Contains(u.What, what) {
		t.Fatalf("error %v, want one about %q", err, what)
	}
	return u
}

// replicated is a server that writes a binary log, with a site on it.
type replicated struct {
	*site
	server *jobstest.Server
	root   *sqlx.DB
	log    *Binlog
	name   string
}

func newReplicated(t *testing.T, engine jobstest.Engine) *replicated {
	t.Helper()
	server := jobstest.Own(t, engine, "--log-bin=log", "--server-id=1", "--binlog-format=ROW", "--sync-binlog=0")
	root := sqlx.NewDb(server.RootMySQL(t), "mysql")
	root.MustExec("CREATE DATABASE site")
	dsn := server.MySQLDSN("site")
	db, err := sqlx.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s := newSite(t, &jobstest.Database{DB: db, Engine: engine, Driver: "mysql", DSN: dsn})
	return &replicated{s, server, root, &Binlog{DSN: dsn, Schema: "site", Table: "jobs",
		Content: []string{"posts"}}, string(engine)}
}

func TestBinlog(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		r := newReplicated(t, engine)
		t.Run("rows of jobs", r.jobs)
		t.Run("formats", r.formats)
		t.Run("rights", r.rights)
		t.Run("two readers", r.two)
		t.Run("revoked", r.revoked)
		t.Run("purged and restarted", r.purged)
	})
}

// A job that comes alone is named by its row, as the table has it; PHP's, delayed ones and
// many together are not.
func (r *replicated) jobs(t *testing.T) {
	sent := &recorded{r.log, make(chan Row, 10)}
	h := listen(t, sent)
	const insert = "INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES "
	now := time.Now().Unix()
	for _, payload := range []string{`{"type":"mail.send","data":{"to":"é\u00e9 <a@b.example>"}}`, "", "no JSON"} {
		r.Database.MustExec(insert+"('mail', ?, 0, ?, ?)", payload, now, now)
		h.says(t, Inserted, payload)
		r.hasRow(t, sent.rows, payload)
	}
	for why, row := range map[string]string{
		"a delayed one": fmt.Sprintf("('mail', '{}', 0, %d, %d)", now+60, now),
		"PHP's":         fmt.Sprintf(`('mail', '{"job":"Illuminate\\\\Queue"}', 0, %d, %d)`, now, now),
		"two":           fmt.Sprintf("('mail', '{}', 0, %[1]d, %[1]d), ('mail', '{}', 0, %[1]d, %[1]d)", now),
		"a long one":    fmt.Sprintf("('mail', '%s', 0, %[2]d, %[2]d)", strings.Repeat("x", 9000), now),
	} {
		r.Database.MustExec(insert + row)
		h.says(t, Inserted, why)
		if len(sent.rows) > 0 {
			t.Errorf("%s is named by its row: %.200s", why, <-sent.rows)
		}
	}
}

// Inserts are seen in every format of the log, those into other tables are not.
func (r *replicated) formats(t *testing.T) {
	r.Database.MustExec("CREATE TABLE posts (id INT PRIMARY KEY, name VARCHAR(6000))")
	h := listen(t, r.log)
	for _, set := range []string{"SET binlog_format='ROW'", "SET binlog_format='STATEMENT'",
		"SET binlog_format='MIXED'",
		"SET binlog_row_image='MINIMAL'", "SET binlog_transaction_compression=ON", "SET GLOBAL log_bin_compress=ON"} {
		c, err := r.Database.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.ExecContext(t.Context(), set); err != nil {
			t.Logf("%s: %v", set, err)
			continue
		}
		payload := strings.Repeat("x", 5000) // worth compressing
		if _, err := c.ExecContext(t.Context(), "INSERT INTO jobs (queue, payload, attempts, available_at, "+
			"created_at) VALUES ('default', ?, 0, 0, 0)", payload); err != nil {
			t.Fatal(err)
		}
		h.says(t, Inserted, set)
		for _, statement := range []string{"INSERT INTO posts VALUES (1, REPEAT('x', 5000))",
			"UPDATE posts SET name = CONCAT(name, 'y') WHERE id = 1", "DELETE FROM posts WHERE id = 1"} {
			if _, err := c.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
			h.says(t, Edited, set+": "+statement)
		}
	}
	for len(h) > 0 {
		<-h
	}
	r.Database.MustExec("CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT, n INT)")
	r.Database.MustExec("INSERT INTO other (n) VALUES (1)")
	r.Database.MustExec("UPDATE jobs SET attempts = 1")
	r.Database.MustExec("DELETE FROM jobs WHERE queue = 'default'")
	r.root.MustExec("CREATE DATABASE elsewhere")
	r.root.MustExec("CREATE TABLE elsewhere.jobs (id INT PRIMARY KEY)")
	r.root.MustExec("INSERT INTO elsewhere.jobs VALUES (1)")
	r.root.MustExec("CREATE TABLE elsewhere.posts (id INT PRIMARY KEY)")
	r.root.MustExec("INSERT INTO elsewhere.posts VALUES (1)")
	h.silent(t, "another table, or no insert", Inserted, Edited)
}

// The error of an account without rights names the statement that gives them.
func (r *replicated) rights(t *testing.T) {
	r.root.MustExec("CREATE USER 'o''cms'@'127.0.0.1' IDENTIFIED BY 'secret'")
	r.root.MustExec("GRANT ALL ON site.* TO 'o''cms'@'127.0.0.1'")
	log := *r.log
	log.DSN = r.Database.DSNOf(t, "o'cms", "secret")
	u := needs(t, Try(t.Context(), &log, 20*time.Second), "may not read")
	grant, _, _ := strings.Cut(u.Fix, ";")
	if !strings.HasPrefix(grant, "GRANT ") {
		t.Fatalf("the remedy is %q", u.Fix)
	}
	r.root.MustExec("GRANT REPLICATION CLIENT ON *.* TO 'o''cms'@'127.0.0.1'") // half of it
	needs(t, Try(t.Context(), &log, 20*time.Second), "may not read")
	r.root.MustExec(grant)
	if err := Try(t.Context(), &log, 20*time.Second); err != nil {
		t.Errorf("after %s: %v", grant, err)
	}
}

// Two readers do not end each other.
func (r *replicated) two(t *testing.T) {
	first, second := listen(t, r.log), listen(t, r.log)
	for range 3 {
		r.insert(t, "default", 0)
		first.says(t, Inserted, "the first reader")
		second.says(t, Inserted, "the second reader")
	}
}

// A reader whose rights are taken away is ended with its connection. The log says so
// once, with the remedy, and rows are looked for from then on.
func (r *replicated) revoked(t *testing.T) {
	r.root.MustExec("CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'secret'")
	r.root.MustExec("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO reader@'127.0.0.1'")
	source := *r.log
	source.DSN = strings.Replace(r.Database.DSNOf(t, "reader", "secret"), "/site", "/", 1) // it has no right there
	var log safeLog
	edits := make(chan struct{}, 1000)
	o := r.options(t, &source)
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	o.Content = func(changed bool, _ []Row) {
		if changed {
			edits <- struct{}{}
		}
	}
	watch(t, o)
	r.woke(t, "") // at the start
	r.woke(t, "") // when the log is read
	<-edits       // what was changed before it began
	r.root.MustExec("INSERT INTO site.posts VALUES (2, '')")
	select {
	case <-edits:
	case <-time.After(20 * time.Second):
		t.Error("the edit is not reported")
	}
	r.root.MustExec("REVOKE ALL PRIVILEGES, GRANT OPTION FROM reader@'127.0.0.1'")
	r.endReaders(t, "reader")
	for end := time.Now().Add(20 * time.Second); log.count("feed.unavailable") == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("nobody says that the rights are gone:\n%s", log.String())
		}
	}
	for range 3 {
		r.insert(t, "default", 0)
		r.woke(t, "default")
	}
	if log.count("feed.unavailable") != 1 || !strings.Contains(log.String(), "GRANT REPLICATION SLAVE") {
		t.Errorf("the log says:\n%s", log.String())
	}
}

// endReaders ends the connections that an account reads the log by.
func (r *replicated) endReaders(t *testing.T, account string) {
	t.Helper()
	var ids []int64
	err := r.root.Select(&ids, "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%' AND "+
		"user LIKE ?", account)
	if err != nil || len(ids) == 0 {
		t.Fatalf("readers %v, %v", ids, err)
	}
	for _, id := range ids {
		r.root.Exec(fmt.Sprintf("KILL %d", id)) // one of an earlier reader may be gone
	}
}

// safeLog is a log whose events are counted.
type safeLog struct{ jobstest.Log }

func (l *safeLog) count(event string) int { return strings.Count(l.String(), "event="+event) }

// A reader whose log was purged, or whose server was killed, reads on from the
// log's end, and everybody is woken for what came in the meantime.
func (r *replicated) purged(t *testing.T) {
	o := r.options(t, r.log)
	o.Busy, o.Idle = time.Hour, time.Hour // looks only by hints
	watch(t, o)
	r.woke(t, "") // at the start
	r.woke(t, "") // when the log is read
	r.insert(t, "default", 0)
	r.woke(t, "default")
	r.woke(t, "default") // by the look, as nobody has claimed it

	r.root.MustExec("FLUSH BINARY LOGS")
	r.root.MustExec("FLUSH BINARY LOGS")
	r.endReaders(t, "%")
	r.root.MustExec("PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
	r.woke(t, "")
	r.insert(t, "purged", 0)
	r.woke(t, "purged")
	r.woke(t, "purged") // by the look, as nobody has claimed it

	if err := r.server.Kill(); err != nil {
		t.Logf("killing the server: %v", err)
	}
	if err := r.server.Start(); err != nil {
		t.Fatal(err)
	}
	r.woke(t, "")
	r.insert(t, "restarted", 0)
	for { // the look after the trouble and the source's own both wake
		select {
		case queue := <-r.woken:
			if strings.HasPrefix(queue, "restarted") {
				return
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the row after the restart was not seen")
		}
	}
}

// A server that writes no log, and one that leaves the database out, say so.
func TestNoBinlog(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		if jobstest.WritesBinaryLog(t, engine) {
			t.Skipf("this %s writes a binary log", engine)
		}
		db := jobstest.Open(t, engine)
		needs(t, Try(t.Context(), &Binlog{DSN: db.DSN, Schema: "x", Table: "jobs"}, 20*time.Second),
			"writes no binary log")
	})
	b := &Binlog{Schema: "Site"}
	for _, c := range []struct {
		only, never string
		logged      bool
	}{{"", "", true}, {"a,site", "", true}, {"a,b", "", false}, {"", "a", true}, {"", "a,site", false}} {
		err := b.logged(map[string]any{"Binlog_Do_DB": []byte(c.only), "Binlog_Ignore_DB": []byte(c.never)})
		if (err == nil) != c.logged {
			t.Errorf("only %q, never %q: %v", c.only, c.never, err)
		}
	}
}

// The statements that make the trigger are those that a person runs.
func TestNotify(t *testing.T) {
	s := newSite(t, jobstest.Open(t, jobstest.PostgreSQL))
	table := s.Layout.Table().Name
	source := &Notify{DSN: s.Database.DSN, Table: table}
	u := needs(t, Try(t.Context(), source, 20*time.Second), "no trigger")
	if u.Fix != "cmsjobs migrate feed" {
		t.Errorf("the remedy is %q", u.Fix)
	}
	for _, statement := range append(Trigger(table), Trigger(table)...) { // twice is harmless
		s.Database.MustExec(statement)
	}
	h := listen(t, source)
	s.insert(t, "default", 0)
	h.says(t, Inserted, "a row")
	tx := s.Database.MustBegin()
	tx.MustExec("INSERT INTO jobs (queue, payload, attempts, available_at, created_at) SELECT 'default', '{}', 0, 0, " +
		"0 FROM generate_series(1, 1000)")
	for len(h) > 0 {
		<-h
	}
	h.silent(t, "before the commit", Inserted)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	h.says(t, Inserted, "a thousand rows")
	for n := len(h); n > 0; n-- {
		if <-h == Inserted {
			t.Error("a statement notified more than once")
		}
	}
	for _, statement := range DropTrigger(table) {
		s.Database.MustExec(statement)
	}
	needs(t, Try(t.Context(), source, 20*time.Second), "no trigger")
}

// When its connection is ended, the source says so instead of waiting for ever.
func TestNotifyOnALostConnection(t *testing.T) {
	s := newSite(t, jobstest.Open(t, jobstest.PostgreSQL))
	table := s.Layout.Table().Name
	for _, statement := range Trigger(table) {
		s.Database.MustExec(statement)
	}
	o := s.options(t, &Notify{DSN: s.Database.DSN, Table: table})
	o.Busy, o.Idle = time.Hour, time.Hour
	watch(t, o)
	s.woke(t, "")
	s.woke(t, "")
	s.Database.MustExec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cmsjobs " +
		"feed' AND datname = current_database()")
	s.woke(t, "")
	s.insert(t, "default", 0)
	s.woke(t, "default")
}

// A pooler in transaction mode delivers no notifications: the source says so, instead of
// being relied on.
func TestNotifyBehindAPooler(t *testing.T) {
	s := newSite(t, jobstest.Open(t, jobstest.PostgreSQL))
	table := s.Layout.Table().Name
	for _, statement := range Trigger(table) {
		s.Database.MustExec(statement)
	}
	server := jobstest.Shared(t, jobstest.PostgreSQL)
	pooler := jobstest.PgBouncer(t, server.Port)
	dsn := strings.Replace(s.Database.DSN, fmt.Sprint(":", server.Port, "/"), fmt.Sprint(":", pooler.Port, "/"), 1)
	if dsn == s.Database.DSN {
		t.Fatalf("%s has no port %d", dsn, server.Port)
	}
	u := needs(t, Try(t.Context(), &Notify{DSN: dsn, Table: table}, 30*time.Second), "pooler")
	if !strings.Contains(u.Fix, "feed.dsn") {
		t.Errorf("the remedy is %q", u.Fix)
	}
}

// SQLite's files are seen to change, also after the write-ahead log went with its
// last connection.
func TestFiles(t *testing.T) {
	db := jobstest.Open(t, jobstest.SQLite)
	s := newSite(t, db)
	path, _, _ := strings.Cut(strings.TrimPrefix(db.DSN, "file:"), "?")
	source := &Files{Path: path}
	o := s.options(t, source)
	o.Busy, o.Idle = time.Hour, time.Hour
	watch(t, o)
	s.woke(t, "")
	s.woke(t, "")
	s.insert(t, "default", 0)
	s.woke(t, "default")

	h := listen(t, &Files{Path: filepath.Join(filepath.Dir(path), ".", filepath.Base(path))})
	s.Database.Close()
	s.Tables.DB.Close() // the last: -wal is gone
	for len(h) > 0 {
		<-h
	}
	again, err := sqlx.Open("sqlite", db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	again.MustExec(`INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES ('default', '{}', 0,
		0, 0)`)
	h.says(t, Written, "a new write-ahead log")

	missing := Try(t.Context(), &Files{Path: filepath.Join(t.TempDir(), "no", "such")}, time.Second)
	if missing == nil {
		t.Error("a folder that is not there is watched")
	}
}

// Try ends at its limit.
func TestTry(t *testing.T) {
	err := Try(t.Context(), &bell{}, 10*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "said nothing") {
		t.Errorf("a source that says nothing: %v", err)
	}
	broken := errors.New("broken")
	b := &bell{fail: make(chan error, 1)}
	b.fail <- broken
	if err := Try(t.Context(), b, time.Minute); !errors.Is(err, broken) {
		t.Errorf("a source that breaks: %v", err)
	}
}
