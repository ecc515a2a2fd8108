package backup

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/swap"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// The tables of a SQLite site are exchanged in one transaction, the service's own stay.
func TestASQLiteSiteIsRestoredInPlace(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := newSite(t, jobstest.SQLite)
	s.MustExec("CREATE TABLE notes (id INTEGER PRIMARY KEY AUTOINCREMENT, post INTEGER REFERENCES posts (id), title " +
		"TEXT, " +
		"upper_title TEXT AS (UPPER(title)) STORED)")
	s.MustExec("CREATE INDEX notes_title ON notes (title)")
	s.MustExec("CREATE VIEW loud AS SELECT upper_title FROM notes")
	s.MustExec("CREATE TRIGGER cleans AFTER DELETE ON posts BEGIN DELETE FROM notes WHERE post = OLD.id; END")
	s.MustExec("INSERT INTO notes (id, post, title) VALUES (41, 1, 'first')")
	h := s.handler(t)
	_, b := s.backup(t, h)
	s.MustExec("DELETE FROM posts")
	s.MustExec("DROP VIEW loud")
	s.MustExec("DROP INDEX notes_title")
	s.write(t, "a.txt", "changed")
	q := restore.Request{Backup: b, Database: true, Files: true, SkipSafety: true}
	plan, err := h.Plan(t.Context(), q, nil)
	if err != nil || !slices.Contains(plan.Kept, "cmsjobs_backups") || !slices.Contains(plan.Tables,
		restore.TableChange{Name: "posts", RowsNow: 0, RowsBackup: 300}) {
		t.Errorf("%+v, %v", plan, err)
	}
	q.Confirm = plan.Token
	done, err := h.Restore(t.Context(), q, nil)
	if err != nil || len(done.Problems) > 0 {
		t.Fatalf("%+v, %v", done.Problems, err)
	}
	var posts, known, objects, left int
	var loud string
	if err := s.QueryRow(`SELECT (SELECT COUNT(*) FROM posts), (SELECT COUNT(*) FROM cmsjobs_backups),
		(SELECT COUNT(*) FROM sqlite_schema WHERE name IN ('notes_title', 'loud', 'cleans')),
		(SELECT COUNT(*) FROM sqlite_schema WHERE name LIKE 'cmsjobs_swap%'), (SELECT upper_title FROM loud)`).Scan(
		&posts,
		&known, &objects, &left, &loud); err != nil || posts != 300 || known != 1 || objects != 3 || left != 0 ||
		loud != "FIRST" {
		t.Errorf("%d posts, %d backups, %d objects, %d left over, %q, %v", posts, known, objects, left, loud, err)
	}
	if id, err := s.MustExec("INSERT INTO notes (title) VALUES ('next')").LastInsertId(); id != 42 || err != nil {
		t.Errorf("the next note is %d, %v", id, err)
	}
	if data, err := os.ReadFile(filepath.Join(s.files, "a.txt")); string(data) != "hello" || err != nil {
		t.Errorf("a.txt holds %q, %v", data, err)
	}
	if left := temporaries(t, s); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// A PostgreSQL restore whose input ends early, as when its process is killed, changes nothing.
func TestATornRestoreOfPostgreSQLChangesNothing(t *testing.T) {
	s := newSite(t, jobstest.PostgreSQL)
	for name, torn := range map[string]string{"between statements": "DROP TABLE posts;\n",
		"within rows": "DROP TABLE posts;\nCREATE TABLE posts (id INTEGER);\nCOPY posts FROM stdin;\n1\n2\n"} {
		l, err := dump.NewPostgresLoader(t.Context(), s.DSN, "")
		if err == nil {
			err = errors.Join(l.Load(dump.Main, "", []byte(torn)), l.Abort())
		}
		if err != nil {
			t.Fatal(err)
		}
		var posts int
		if err := s.Get(&posts, "SELECT COUNT(*) FROM posts"); err != nil || posts != 300 {
			t.Errorf("%s: %d posts, %v", name, posts, err)
		}
	}
	l, err := dump.NewPostgresLoader(t.Context(), s.DSN, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Load(dump.Main, "", []byte("COPY posts FROM stdin;\n")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err == nil {
		t.Error("a commit that was read as a row counts as one")
	}
}

// A site's PostgreSQL database is replaced in one transaction, the journal with it.
func TestAPostgreSQLSiteIsRestoredInPlace(t *testing.T) {
	s := newSite(t, jobstest.PostgreSQL)
	h := s.handler(t)
	_, b := s.backup(t, h)
	s.MustExec("DELETE FROM posts")
	s.write(t, "a.txt", "changed")
	q := restore.Request{Backup: b, Database: true, Files: true, SkipSafety: true}
	q.Confirm = h.Token(q)
	if done, err := h.Restore(t.Context(), q, nil); err != nil || len(done.Problems) > 0 {
		t.Fatalf("%+v, %v", done.Problems, err)
	}
	var posts, journal int
	if err := s.QueryRow("SELECT (SELECT COUNT(*) FROM posts), (SELECT COUNT(*) FROM cmsjobs_backup_restores)").Scan(
		&posts, &journal); err != nil || posts != 300 || journal != 0 {
		t.Errorf("%d posts, %d restores that did not finish, %v", posts, journal, err)
	}
	if data, err := os.ReadFile(filepath.Join(s.files, "a.txt")); string(data) != "hello" || err != nil {
		t.Errorf("a.txt holds %q, %v", data, err)
	}
}

// A transaction of the site that holds a table makes the exchange wait, and in the end
// the restore gives up with nothing changed.
func TestAnExchangeThatCannotBeginChangesNothing(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		s := newSite(t, engine)
		db, err := swap.OpenMySQL(t.Context(), s.DSN)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		s.MustExec("CREATE TABLE cmsjobs_swap_x_1 (id INT)")
		tx, err := s.BeginTx(t.Context(), &sql.TxOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(t.Context(), "UPDATE posts SET title = 'busy' WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		set := swap.Set{ID: "x", Tables: []string{"posts"}}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := db.Exchange(ctx, &set); err == nil {
			t.Fatal("the table of an open transaction was exchanged")
		}
		other, err := swap.OpenMySQL(t.Context(), s.DSN) // the first connection may be gone with its statement
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if err := other.Stop(t.Context(), &set); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if is, err := other.Exchanged(t.Context(), &set); is || err != nil {
			t.Errorf("the tables are exchanged: %v, %v", is, err)
		}
		var title string
		if err := s.Get(&title, "SELECT title FROM posts WHERE id = 1"); err != nil || title != "busy" {
			t.Errorf("%q, %v", title, err)
		}
	})
}

// Rows that are not those of the backup are seen before the exchange.
func TestALoadThatDiffersIsNotExchanged(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		s := newSite(t, engine)
		s.c.Options.Verify = manifest.LevelNone
		h := s.handler(t)
		_, b := s.backup(t, h)
		rewrite(t, s, &b, func(name string, data []byte) []byte {
			if !strings.HasSuffix(name, "-posts.sql") {
				return data
			}
			return []byte(strings.Replace(string(data), "'title; ", "'other; ", 1))
		})
		s.MustExec(s.Rebind("UPDATE cmsjobs_backups SET archive_sha256 = ? WHERE id = ?"), b.SHA256, b.ID)
		q := restore.Request{Backup: b, Database: true, SkipSafety: true, TrustUnknown: true, AllowFailed: true}
		q.Confirm = h.Token(q)
		s.MustExec("DELETE FROM posts")
		done, err := h.Restore(t.Context(), q, nil) // allowed: then it is a problem
		if err != nil || !strings.Contains(strings.Join(done.Problems, "\n"), "the table posts has 300 rows") {
			t.Errorf("%q, %v", done.Problems, err)
		}
	})
}

// Whatever a server can hold comes back as it was when it is restored in place: keys,
// checks, sequences, partitions, views, programs.
func TestATortureDatabaseIsRestoredInPlace(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		jobstest.AsRoot(t)
		s := newSite(t, engine)
		s.loadTorture(t)
		s.MustExec("CREATE TABLE checked (a INT, b INT, CONSTRAINT positive CHECK (a > 0), CHECK (b > 0), CONSTRAINT " +
			"checked_chk_7 CHECK (a + b > 0))")
		s.c.Options.Verify = manifest.LevelNone
		h := s.handler(t)
		_, b := s.backup(t, h)
		described := func() dump.Summary {
			t.Helper()
			d, err := dump.MySQL(t.Context(), s.DSN, dump.Options{Exclude: func(table string) bool {
				return strings.HasPrefix(table, "cmsjobs_")
			}}, func(dump.Part, string, []byte) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		was := described()
		s.MustExec("DROP TABLE posts")
		q := restore.Request{Backup: b, Database: true, SkipSafety: true}
		q.Confirm = h.Token(q)
		for range 2 { // into a database that lacks something, and into a whole one
			done, err := h.Restore(t.Context(), q, nil)
			if err != nil || len(done.Problems) > 0 {
				t.Fatalf("%q, %v", done.Problems, err)
			}
			is := described()
			for _, difference := range dump.Differences(was, is) {
				t.Error(difference)
			}
			for i, table := range was.Tables {
				if table.Name != "cache" &&
					(is.Tables[i].Rows != table.Rows || is.Tables[i].Checksum != table.Checksum) {
					t.Errorf("the table %s has other rows: %d, had %d", table.Name, is.Tables[i].Rows, table.Rows)
				}
			}
		}
	})
}
