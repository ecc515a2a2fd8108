package backup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func TestSingleTablesAndFilesAreRestored(t *testing.T) {
	s := newSite(t, jobstest.MySQL)
	s.MustExec("CREATE TABLE log (msg VARCHAR(50))")
	s.MustExec("CREATE TRIGGER tell AFTER DELETE ON posts FOR EACH ROW INSERT INTO log VALUES (CONCAT('gone; ', OLD.id))")
	s.MustExec("CREATE TRIGGER other BEFORE INSERT ON log FOR EACH ROW SET NEW.msg = UPPER(NEW.msg)")
	h := s.handler(t)
	_, b := s.backup(t, h)
	s.MustExec("DELETE FROM posts")
	s.write(t, "a.txt", "changed")
	s.write(t, "news/ü 1.jpg", "changed")
	q := RestoreRequest{Backup: b, Database: true, Tables: []string{"posts"}, Files: true, Paths: []string{"storage/news"}, SkipSafety: true}
	plan, err := h.Plan(t.Context(), q, nil)
	if err != nil || len(plan.Tables) != 1 || plan.Tables[0].RowsBackup != 300 || plan.ChangedFiles != 1 {
		t.Fatalf("%+v, %v", plan, err)
	}
	q.Confirm = plan.Token
	done, err := h.Restore(t.Context(), q, nil)
	if err != nil || done.Files != 1 || done.Tables != 1 || len(done.Problems) > 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	var posts, logs, triggers int
	if err := s.QueryRow("SELECT (SELECT COUNT(*) FROM posts), (SELECT COUNT(*) FROM log), (SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = DATABASE())").Scan(&posts, &logs, &triggers); err != nil || posts != 300 || logs != 300 || triggers != 2 {
		t.Errorf("%d posts, %d log lines, %d triggers, %v", posts, logs, triggers, err)
	}
	for name, want := range map[string]string{"a.txt": "changed", "news/ü 1.jpg": strings.Repeat("x", 100_000)} {
		if got, err := os.ReadFile(filepath.Join(s.files, name)); string(got) != want || err != nil {
			t.Errorf("%s holds %d bytes, %v", name, len(got), err)
		}
	}
	q.Tables = []string{"nothing"}
	if _, err := h.Plan(t.Context(), q, nil); err == nil {
		t.Error("a table that is not there is planned")
	}
}

func TestARestoreFromABadArchiveChangesNothing(t *testing.T) {
	s := newSite(t, jobstest.MySQL)
	h := s.handler(t)
	_, b := s.backup(t, h)
	name := filepath.Join(s.dest, b.Archive)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, whole[:len(whole)*9/10], 0o600); err != nil {
		t.Fatal(err)
	}
	s.MustExec("DELETE FROM posts WHERE id > 10")
	q := RestoreRequest{Backup: b, Database: true, SkipSafety: true}
	q.Confirm = h.token(q)
	if _, err := h.Restore(t.Context(), q, nil); !errors.Is(err, ErrUnproven) {
		t.Errorf("%v", err)
	}
	var n int
	if err := s.Get(&n, "SELECT COUNT(*) FROM posts"); err != nil || n != 10 {
		t.Errorf("%d rows, %v", n, err)
	}
}
