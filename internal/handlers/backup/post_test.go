package backup

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/swap"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// A post that was deleted by mistake comes back with what belongs to it; nothing else changes.
func TestADeletedPostIsBroughtBack(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) { testADeletedPostIsBroughtBack(t, engine) })
	}
}

func testADeletedPostIsBroughtBack(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine)
	s.c.Options.Verify = manifest.LevelNone
	s.postTables()
	h := s.handler(t)
	_, b := s.backup(t, h)
	s.loseThePost()
	q := restore.PostRequest{Backup: b, ID: 12}
	post, err := h.Post(t.Context(), q, nil)
	if err != nil || post.Restored || post.Title != "title; '11'" || len(post.Tables) != 3 ||
		post.Tables[0] != (restore.TableChange{Name: "posts", RowsNow: 0, RowsBackup: 1}) {
		t.Fatalf("%+v, %v", post, err)
	}
	q.Confirm = "post-12-wrong"
	if _, err := h.Post(t.Context(), q, nil); !errors.Is(err, restore.ErrUnconfirmed) {
		t.Errorf("with another word: %v", err)
	}
	q.Confirm = post.Token
	if post, err := h.Post(t.Context(), q, nil); err != nil || !post.Restored {
		t.Fatalf("%+v, %v", post, err)
	}
	s.thePostIsBack(t)
	if _, err := h.Post(t.Context(), restore.PostRequest{Backup: b, ID: 999}, nil); !errors.Is(err,
		restore.ErrNoPost) {
		t.Errorf("a post that is not there: %v", err)
	}
}

// postTables are those of the CMS's posts.
func (s *site) postTables() {
	rename := "ALTER TABLE posts RENAME COLUMN title TO name"
	if s.Engine == jobstest.MySQL { // 5.7 has no RENAME COLUMN
		rename = "ALTER TABLE posts CHANGE title name VARCHAR(100)"
	}
	for _, statement := range []string{
		rename,
		"CREATE TABLE slugs (id INT PRIMARY KEY, `key` VARCHAR(99), reference_id INT, reference_type VARCHAR(99))",
		"CREATE TABLE post_tags (tag_id INT, post_id INT, CONSTRAINT tags_post FOREIGN KEY (post_id) REFERENCES " +
			"posts (id))",
		"INSERT INTO post_tags VALUES (1, 12), (2, 12), (1, 13)",
	} {
		s.MustExec(s.quoted(statement))
	}
	for id, slug := range []struct {
		key, content string
		of           int
	}{{"twelve", `Botble\Blog\Models\Post`, 12}, {"page", `Botble\Page\Models\Page`, 12},
		{"thirteen", `Botble\Blog\Models\Post`, 13}} {
		s.MustExec(s.Rebind("INSERT INTO slugs VALUES (?, ?, ?, ?)"), id+1, slug.key, slug.of, slug.content)
	}
}

// quoted writes the names of a statement as the engine quotes them.
func (s *site) quoted(statement string) string {
	if s.Engine == jobstest.PostgreSQL {
		return strings.ReplaceAll(statement, "`", `"`)
	}
	return statement
}

// loseThePost deletes the post 12 and changes what is not to be restored.
func (s *site) loseThePost() {
	for _, statement := range []string{"DELETE FROM post_tags WHERE post_id = 12", "DELETE FROM posts WHERE id = 12",
		"DELETE FROM slugs WHERE id = 1", "UPDATE slugs SET `key` = 'today' WHERE id = 2",
		"UPDATE posts SET name = 'today' WHERE id = 13", "ALTER TABLE posts ADD added_later INT DEFAULT 7"} {
		s.MustExec(s.quoted(statement))
	}
}

func (s *site) thePostIsBack(t *testing.T) {
	t.Helper()
	var name, slug, page, other string
	var tags, added, left, journal int
	if err := s.QueryRow(s.quoted("SELECT (SELECT name FROM posts WHERE id = 12), (SELECT `key` FROM slugs WHERE id = 1), "+
		"(SELECT `key` FROM slugs WHERE id = 2), (SELECT name FROM posts WHERE id = 13), (SELECT COUNT(*) FROM "+
		"post_tags), (SELECT added_later FROM posts WHERE id = 12), (SELECT COUNT(*) FROM "+
		"cmsjobs_backup_restores)")).Scan(&name, &slug, &page, &other, &tags, &added, &journal); err != nil ||
		name != "title; '11'" || slug != "twelve" || page != "today" || other != "today" || tags != 3 || added != 7 ||
		journal != 0 {
		t.Errorf("%q %q %q %q, %d tags, %d, %d entries left over, %v", name, slug, page, other, tags, added, journal, err)
	}
	tables := "information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME"
	switch s.Engine {
	case jobstest.SQLite:
		tables = "sqlite_schema WHERE name"
	case jobstest.PostgreSQL:
		tables = "pg_class WHERE relname"
	}
	if err := s.QueryRow(s.Rebind("SELECT COUNT(*) FROM "+tables+" LIKE ?"), swap.Prefix+"%").Scan(&left); err != nil ||
		left != 0 {
		t.Errorf("%d tables are left over, %v", left, err)
	}
	var claims int
	if err := s.Get(&claims, "SELECT COUNT(*) FROM cmsjobs_backup_locks WHERE name LIKE 'temporary:%'"); err != nil ||
		claims != 0 {
		t.Errorf("%d temporary databases or folders are claimed, %v", claims, err)
	}
	if made := temporaries(t, s); s.Engine == jobstest.PostgreSQL && len(made) > 0 {
		t.Errorf("left over: %v", made)
	}
}

// On PostgreSQL a key cannot be switched off: a post that is still there is changed and
// not deleted, so that rows of other tables that go with it stay.
func TestWhatBelongsToAPostStaysOnPostgreSQL(t *testing.T) {
	s := newSite(t, jobstest.PostgreSQL)
	s.c.Options.Verify = manifest.LevelNone
	s.postTables()
	s.MustExec("CREATE TABLE comments (id INT PRIMARY KEY, post_id INT REFERENCES posts (id) ON DELETE CASCADE)")
	s.MustExec("ALTER TABLE posts ADD format JSON, ADD length INT GENERATED ALWAYS AS (id * 2) STORED")
	s.MustExec(`UPDATE posts SET format = '{"a":  null}' WHERE id = 12`)
	h := s.handler(t)
	_, b := s.backup(t, h)
	var before, after string
	read := "SELECT p::text FROM posts p WHERE id = 12"
	if err := s.Get(&before, read); err != nil {
		t.Fatal(err)
	}
	s.MustExec("INSERT INTO comments VALUES (1, 12)")
	s.MustExec("UPDATE posts SET name = 'worse', body = NULL, format = 'null' WHERE id = 12")
	q := restore.PostRequest{Backup: b, ID: 12}
	q.Confirm = q.Token()
	if post, err := h.Post(t.Context(), q, nil); err != nil || !post.Restored {
		t.Fatalf("%+v, %v", post, err)
	}
	var comments int
	if err := errors.Join(s.Get(&after, read), s.Get(&comments, "SELECT COUNT(*) FROM comments")); err != nil ||
		after != before || comments != 1 {
		t.Errorf("%d comments, %v\nbefore %q\nafter  %q", comments, err, before, after)
	}
}

// A restore of a post on PostgreSQL that is interrupted, or may make no database, changes
// nothing and leaves nothing.
func TestAnInterruptedPostLeavesNoDatabase(t *testing.T) {
	s := newSite(t, jobstest.PostgreSQL)
	s.c.Options.Verify = manifest.LevelNone
	s.postTables()
	s.MustExec("CREATE ROLE post_without_databases LOGIN")
	t.Cleanup(func() { s.MustExec("DROP ROLE post_without_databases") })
	h := s.handler(t)
	_, b := s.backup(t, h)
	s.loseThePost()
	q := restore.PostRequest{Backup: b, ID: 12}
	q.Confirm = q.Token()
	ctx, cancel := context.WithCancel(t.Context())
	loading := false
	_, interrupted := h.Post(ctx, q, func(catalog.Step) {
		if !loading && len(temporaries(t, s)) > 0 {
			loading = true
			cancel()
		}
	})
	s.c.TempDBDSN = strings.Replace(s.DSN, "postgres@", "post_without_databases@", 1)
	_, refused := s.handler(t).Post(t.Context(), q, nil)
	for what, err := range map[string]error{"context canceled": interrupted, "permission denied": refused} {
		if err == nil || !strings.Contains(err.Error(), "nothing was changed") || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	var posts, left int
	if err := errors.Join(s.Get(&posts, "SELECT COUNT(*) FROM posts WHERE id = 12"), s.Get(&left, "SELECT (SELECT "+
		"COUNT(*) FROM cmsjobs_backup_restores) + (SELECT COUNT(*) FROM cmsjobs_backup_locks WHERE name LIKE "+
		"'temporary:%')")); err != nil || posts != 0 || left != 0 || len(temporaries(t, s)) > 0 || !loading {
		t.Errorf("%d posts, %d entries, %v are left over, %v; it was loading: %v", posts, left, temporaries(t, s), err,
			loading)
	}
}
