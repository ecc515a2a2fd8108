package backup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// TestTheConditionOfBackups follows a site from no backup to a restore that
// stops half way, and its repetition.
func TestTheConditionOfBackups(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	t.Setenv("TMPDIR", t.TempDir())
	h := s.handler(t)
	now := func() Condition {
		t.Helper()
		c, err := h.Condition(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := now(); !c.LastComplete.IsZero() || !c.LastVerification.IsZero() || c.Unfinished != "" || len(c.TempDB) > 0 {
		t.Errorf("at first: %+v", c)
	}
	report, b := s.backup(t, h)
	if c := now(); c.LastComplete.IsZero() || c.LastBytes != report.Size || c.Unfinished != "" {
		t.Errorf("after a backup: %+v", c)
	}
	if _, err := h.Verify(t.Context(), b, manifest.LevelRestored, nil); err != nil {
		t.Fatal(err)
	}
	if c := now(); c.LastVerification.IsZero() || len(c.TempDB) > 0 {
		t.Errorf("after a verification: %+v", c)
	}
	blocked := filepath.Join(s.files, "a.txt") // a folder where the file should go
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	q := restore.Request{Backup: b, Files: true, SkipSafety: true}
	q.Confirm = h.Token(q)
	if _, err := h.Restore(t.Context(), q, nil); err == nil || !strings.Contains(err.Error(), "half way") {
		t.Fatalf("the restore ends with %v", err)
	}
	if c := now(); !strings.Contains(c.Unfinished, b.ID) {
		t.Errorf("after half a restore: %+v", c)
	}
	s.backup(t, h) // the next backup takes the lock, and the trace stays
	if c := now(); !strings.Contains(c.Unfinished, b.ID) {
		t.Errorf("after the next backup: %+v", c)
	}
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Restore(t.Context(), q, nil); err != nil {
		t.Fatal(err)
	}
	if c := now(); c.Unfinished != "" {
		t.Errorf("after its repetition: %+v", c)
	}
}
