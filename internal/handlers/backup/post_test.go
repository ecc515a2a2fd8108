package backup

import (
	"errors"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/swap"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// A post that was deleted by mistake comes back with what belongs to it; nothing else changes.
func TestADeletedPostIsBroughtBack(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		s := newSite(t, engine)
		s.c.Options.Verify = manifest.LevelNone
		for _, statement := range []string{
			"ALTER TABLE posts CHANGE title name VARCHAR(100)",
			"CREATE TABLE slugs (id INT PRIMARY KEY AUTO_INCREMENT, `key` VARCHAR(99), reference_id INT, " +
				"reference_type VARCHAR(99))",
			"CREATE TABLE post_tags (tag_id INT, post_id INT, CONSTRAINT tags_post FOREIGN KEY (post_id) REFERENCES " +
				"posts (id))",
			`INSERT INTO slugs VALUES (1, 'twelve', 12, 'Botble\\Blog\\Models\\Post'), (2, 'page', 12,
				'Botble\\Page\\Models\\Page'),
				(3, 'thirteen', 13, 'Botble\\Blog\\Models\\Post')`,
			"INSERT INTO post_tags VALUES (1, 12), (2, 12), (1, 13)",
		} {
			s.MustExec(statement)
		}
		h := s.handler(t)
		_, b := s.backup(t, h)
		for _, statement := range []string{"DELETE FROM post_tags WHERE post_id = 12",
			"DELETE FROM posts WHERE id = 12",
			"DELETE FROM slugs WHERE id = 1", "UPDATE slugs SET `key` = 'today' WHERE id = 2",
			"UPDATE posts SET name = 'today' WHERE id = 13", "ALTER TABLE posts ADD added_later INT DEFAULT 7"} {
			s.MustExec(statement)
		}
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
		var name, slug, page, other string
		var tags, added, left, journal int
		if err := s.QueryRow("SELECT (SELECT name FROM posts WHERE id = 12), (SELECT `key` FROM slugs WHERE id = 1), "+
			"(SELECT `key` FROM slugs WHERE id = 2), (SELECT name FROM posts WHERE id = 13), (SELECT COUNT(*) FROM "+
			"post_tags), (SELECT added_later FROM posts WHERE id = 12), (SELECT COUNT(*) FROM "+
			"information_schema.TABLES "+
			"WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME LIKE ?), (SELECT COUNT(*) FROM cmsjobs_backup_restores)",
			swap.Prefix+"%").Scan(&name, &slug, &page, &other, &tags, &added, &left, &journal); err != nil ||
			name != "title; '11'" || slug != "twelve" || page != "today" || other != "today" || tags != 3 ||
			added != 7 ||
			left != 0 || journal != 0 {
			t.Errorf("%q %q %q %q, %d tags, %d, %d tables and %d entries left over, %v", name, slug, page, other, tags,
				added,
				left, journal, err)
		}
		if _, err := h.Post(t.Context(), restore.PostRequest{Backup: b, ID: 999}, nil); !errors.Is(err,
			restore.ErrNoPost) {
			t.Errorf("a post that is not there: %v", err)
		}
	})
}
