package backup

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// TestTheConditionOfBackups follows a site from no backup to a restore that
// does not finish, and its end.
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
	store := &unpublished{Local: local(t, s.files)}
	s.c.Files[0].Store = store
	h = s.handler(t)
	q := restore.Request{Backup: b, Files: true, SkipSafety: true}
	q.Confirm = h.Token(q)
	if _, err := h.Restore(t.Context(), q, nil); err == nil || !strings.Contains(err.Error(), "--finish") {
		t.Fatalf("the restore ends with %v", err)
	}
	if c := now(); !strings.Contains(c.Unfinished, b.ID) {
		t.Errorf("after half a restore: %+v", c)
	}
	s.backup(t, h) // the next backup tries to finish it, and the trace stays
	if c := now(); !strings.Contains(c.Unfinished, b.ID) {
		t.Errorf("after the next backup: %+v", c)
	}
	if half, err := h.Half(t.Context()); !half || err != nil {
		t.Errorf("the site is not half restored: %v", err)
	}
	if _, err := h.Settle(t.Context(), restore.Undo); !errors.Is(err, restore.ErrExchanged) {
		t.Errorf("rolling it back: %v", err)
	}
	store.repaired = true
	all, err := h.Settle(t.Context(), restore.Finish)
	if err != nil || len(all) != 1 || !all[0].Restored || all[0].Backup != b.ID {
		t.Errorf("finishing it: %+v, %v", all, err)
	}
	if c := now(); c.Unfinished != "" {
		t.Errorf("after its end: %+v", c)
	}
}

// unpublished is a folder in which staged files cannot be put in their places.
type unpublished struct {
	*storage.Local
	repaired bool
}

func (u *unpublished) Publish(ctx context.Context, batch string) error {
	if !u.repaired {
		return errors.New("the disk is read-only")
	}
	return u.Local.Publish(ctx, batch)
}
