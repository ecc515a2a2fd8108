package jobs_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// site is a database with the queue's tables, and one of the CMS's own.
type site struct {
	*jobstest.Database
	kind jobs.Kind[struct{}]
	run  func(context.Context) error // what the handler does
}

func newSite(t *testing.T, engine jobstest.Engine) *site {
	t.Helper()
	s := &site{Database: jobstest.Migrated(t, engine), kind: jobs.Kind[struct{}]{
		Name: "test.sql", Policy: jobs.Policy{MaxAttempts: 2}}}
	if _, err := tables.CreateTables(t.Context(), s.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	s.MustExec("CREATE TABLE posts (id INTEGER PRIMARY KEY, slug VARCHAR(5) NOT NULL UNIQUE)")
	s.MustExec("INSERT INTO posts VALUES (1, 'one')")
	return s
}

func (s *site) store(t *testing.T, db *sqlx.DB) (*queue.Store, *jobs.Registry) {
	t.Helper()
	registry := jobs.NewRegistry()
	jobs.Handle(registry, s.kind, func(ctx context.Context, _ jobs.Job, _ struct{}) error { return s.run(ctx) })
	store, err := queue.Open(t.Context(), db, tables.Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	return store, registry
}

// runs lets a worker do what is due, once.
func (s *site) runs(t *testing.T) {
	t.Helper()
	store, registry := s.store(t, s.DB)
	w, err := jobs.NewWorker(jobs.Config{Source: store, Registry: registry, Now: time.Now, Once: true,
		PollMin: 10 * time.Millisecond, Lease: time.Hour, DatabaseTrouble: database.Outage})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// dialect is the engine whose statements an engine takes too.
func dialect(engine jobstest.Engine) jobstest.Engine {
	if engine.IsMySQL() {
		return jobstest.MySQL
	}
	return engine
}

// admin is a connection that may grant and revoke.
func (s *site) admin(t *testing.T) *sqlx.DB {
	t.Helper()
	if s.Engine.IsMySQL() {
		return s.Root(t)
	}
	return s.DB
}

// limited connects as a user who may read and write every table, until told
// otherwise.
func (s *site) limited(t *testing.T) (db *sqlx.DB, user string) {
	t.Helper()
	var name string
	var tables []string
	ask := map[jobstest.Engine][2]string{
		jobstest.MySQL: {"SELECT DATABASE()", "SELECT table_name FROM information_schema.tables WHERE " +
			"table_schema = DATABASE()"},
		jobstest.PostgreSQL: {"SELECT current_database()", "SELECT table_name FROM information_schema.tables WHERE " +
			"table_schema = 'public'"},
	}[dialect(s.Engine)]
	if err := s.Get(&name, ask[0]); err != nil {
		t.Fatal(err)
	}
	if err := s.Select(&tables, ask[1]); err != nil {
		t.Fatal(err)
	}
	user, dsn, admin := name, "", s.admin(t)
	if s.Engine.IsMySQL() {
		user = "'" + name[:12] + "'@'127.0.0.1'"
		admin.MustExec("CREATE USER " + user)
		dsn = s.DSNOf(t, name[:12], "")
	} else {
		s.MustExec("CREATE ROLE " + user + " LOGIN")
		s.MustExec("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO " + user)
		dsn = strings.Replace(s.DSN, "postgres@", user+"@", 1)
		t.Cleanup(func() { s.MustExec("DROP OWNED BY " + user); s.MustExec("DROP ROLE " + user) })
	}
	for _, table := range tables {
		admin.MustExec("GRANT SELECT, INSERT, UPDATE, DELETE ON " + table + " TO " + user)
	}
	db, err := database.Connect(t.Context(), database.ConnectOptions{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db, user
}

// What a handler's own statement is refused for is its job's fault: an attempt
// is charged, and after the last the job is in failed_jobs.
func TestAHandlersRefusedStatementIsItsJobsFault(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		for name, statement := range map[string]string{
			"table": "UPDATE nowhere SET x = 1", "column": "UPDATE posts SET absent = 1", "syntax": "UPDTE posts",
			"key":  "INSERT INTO posts VALUES (1, 'two')",
			"null": "INSERT INTO posts VALUES (2, NULL)", "right": "UPDATE posts SET slug = 'no'",
		} {
			if engine == jobstest.SQLite && name == "right" {
				continue // it has none
			}
			t.Run(fmt.Sprintf("%s/%s", engine, name), func(t *testing.T) {
				s := newSite(t, engine)
				db := s.DB
				if name == "right" {
					var user string
					db, user = s.limited(t)
					s.admin(t).MustExec("REVOKE UPDATE ON posts FROM " + user)
				}
				s.run = func(ctx context.Context) error {
					_, err := db.ExecContext(ctx, statement)
					if err == nil {
						t.Errorf("%s is not refused", statement)
					}
					return err
				}
				store, _ := s.store(t, s.DB)
				if _, err := store.Enqueue(t.Context(), s.kind.New(struct{}{})); err != nil {
					t.Fatal(err)
				}
				s.runs(t)
				s.charged(t, 1, 0, "retried")
				s.MustExec("UPDATE jobs SET available_at = 1")
				s.runs(t)
				s.charged(t, 0, 1, "retried failed")
			})
		}
	}
}

// charged compares attempts charged in jobs, rows in failed_jobs, and how the runs ended.
func (s *site) charged(t *testing.T, attempts, failed int, outcomes string) {
	t.Helper()
	var a, f int
	var list []string
	for into, query := range map[any]string{&a: "SELECT COALESCE(SUM(attempts), 0) FROM jobs",
		&f: "SELECT COUNT(*) FROM failed_jobs"} {
		if err := s.Get(into, query); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Select(&list, "SELECT outcome FROM cmsjobs_runs ORDER BY id"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(list, " "); a != attempts || f != failed || got != outcomes {
		t.Errorf("%d attempts are charged, %d jobs failed, the runs: %s; want %d, %d, %s", a, f, got, attempts, failed,
			outcomes)
	}
}

// Trouble of the server that a handler meets is not its job's fault: nothing is
// charged, and it runs again.
func TestTroubleOfTheServerIsNoJobsFault(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		for name, meet := range troubles(engine) {
			t.Run(fmt.Sprintf("%s/%s", engine, name), func(t *testing.T) {
				s := newSite(t, engine)
				s.run = func(ctx context.Context) error {
					conn, err := s.Connx(ctx)
					if err != nil {
						return err
					}
					defer conn.Close()
					for _, statement := range meet {
						if _, err = conn.ExecContext(ctx, statement); err != nil {
							break
						}
					}
					if err == nil {
						t.Errorf("%v: no trouble", meet)
					}
					_, _ = conn.ExecContext(ctx, "PRAGMA query_only = 0") // SQLite's only; the others refuse it
					_, _ = conn.ExecContext(ctx, "ROLLBACK")
					return err
				}
				if name == "nobody listens" {
					s.run = func(ctx context.Context) error {
						_, err := database.Connect(ctx, database.ConnectOptions{DSN: map[jobstest.Engine]string{
							jobstest.MySQL:      "mysql://root@127.0.0.1:1/x",
							jobstest.PostgreSQL: "postgres://x@127.0.0.1:1/x",
							jobstest.SQLite:     "sqlite:/nowhere/at/all"}[dialect(engine)]})
						return err
					}
				}
				store, _ := s.store(t, s.DB)
				if _, err := store.Enqueue(t.Context(), s.kind.New(struct{}{})); err != nil {
					t.Fatal(err)
				}
				s.runs(t)
				s.charged(t, 0, 0, "released")
			})
		}
	}
}

// troubles are statements, by what is wrong with the server.
func troubles(engine jobstest.Engine) map[string][]string {
	raise := func(code string) []string {
		return []string{"DO $$ BEGIN RAISE EXCEPTION 'trouble' USING ERRCODE = '" + code + "'; END $$"}
	}
	signal := func(number int) []string {
		return []string{fmt.Sprintf("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = %d, MESSAGE_TEXT = 'trouble'", number)}
	}
	return map[jobstest.Engine]map[string][]string{
		jobstest.SQLite: {"read-only": {"PRAGMA query_only = 1", "DELETE FROM posts"}, "nobody listens": nil},
		jobstest.MySQL: {"read-only": {"START TRANSACTION READ ONLY", "DELETE FROM posts"}, "cut off": {
			"KILL CONNECTION_ID()"}, "nobody listens": nil,
			"full": signal(1114), "no connection left": signal(1040), "failed over": signal(1836)},
		jobstest.PostgreSQL: {"read-only": {"BEGIN READ ONLY", "DELETE FROM posts"}, "cut off": {
			"SELECT pg_terminate_backend(pg_backend_pid())"}, "nobody listens": nil,
			"full": raise("53100"), "no connection left": raise("53300"), "shut down": raise("57P01")},
	}[dialect(engine)]
}

// A right, column or table that the queue itself needs and misses stops its
// claims, and is said; nothing is charged, and when it is back work goes on.
func TestTheQueuesOwnTablesAreNoJobsFault(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		for name, words := range map[string][2]string{
			"table": {"ALTER TABLE jobs RENAME TO jobs_away", "ALTER TABLE jobs_away RENAME TO jobs"},
			"column": {"ALTER TABLE jobs RENAME COLUMN reserved_at TO away", "ALTER TABLE jobs RENAME COLUMN away TO " +
				"reserved_at"},
			"right": {"REVOKE UPDATE ON jobs FROM ", "GRANT UPDATE ON jobs TO "},
		} {
			if engine == jobstest.SQLite && name == "right" {
				continue
			}
			if engine == jobstest.MySQL && name == "column" { // 5.7 has no RENAME COLUMN
				words = [2]string{"ALTER TABLE jobs CHANGE reserved_at away INT UNSIGNED NULL",
					"ALTER TABLE jobs CHANGE away reserved_at INT UNSIGNED NULL"}
			}
			t.Run(fmt.Sprintf("%s/%s", engine, name), func(t *testing.T) {
				s := newSite(t, engine)
				db, ran := s.DB, make(chan struct{}, 1)
				if name == "right" {
					var user string
					db, user = s.limited(t)
					words[0] += user
					words[1] += user
				}
				s.run = func(context.Context) error { ran <- struct{}{}; return nil }
				store, registry := s.store(t, db)
				if _, err := store.Enqueue(t.Context(), s.kind.New(struct{}{})); err != nil {
					t.Fatal(err)
				}
				s.admin(t).MustExec(words[0])
				log := new(jobstest.Log)
				w, err := jobs.NewWorker(jobs.Config{Source: store, Registry: registry, Now: time.Now,
					PollMin: 20 * time.Millisecond, PollMax: 50 * time.Millisecond, Lease: time.Hour,
					DatabaseTrouble: database.Outage, Logger: slog.New(slog.NewTextHandler(log, nil))})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- w.Run(ctx) }()
				waitFor(t, "a word about the missing "+name, func() bool {
					return strings.Contains(log.String(), "database statements fail; "+
						"trying again")
				})
				s.admin(t).MustExec(words[1])
				select {
				case <-ran:
				case <-time.After(30 * time.Second):
					t.Error("the job does not run though all is back")
				}
				waitFor(t, "the end of the run", func() bool {
					var n int
					return s.Get(&n, "SELECT COUNT(*) FROM cmsjobs_runs") == nil && n > 0
				})
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				s.charged(t, 0, 0, "completed")
			})
		}
	}
}

// waitFor asks until it is so.
func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s does not come", what)
		}
	}
}
