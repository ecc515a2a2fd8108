package temporary

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/lock"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// Names come from a table that others could write to.
func TestOnlyOurNamesAreDropped(t *testing.T) {
	s := jobstest.Migrated(t, jobstest.SQLite)
	t.Setenv("TMPDIR", t.TempDir())
	discard := slog.New(slog.DiscardHandler)
	k := New(Config{Locks: &lock.Table{DB: s.DB, Logger: discard}, Logger: discard})
	victim := filepath.Join(os.TempDir(), "victim")
	if err := os.Mkdir(victim, 0o700); err != nil {
		t.Fatal(err)
	}
	place := folderPlace(os.TempDir())
	for _, name := range []string{"folder@" + place + "/victim", "folder@" + place + "/cmsjobs-verify-../../victim",
		"folder@" + place + "/cmsjobs-verify-aaaaaaaaaaaa/../victim", "mysql@x/cmsjobs"} {
		s.MustExec(s.Rebind("INSERT INTO cmsjobs_backup_locks (name, holder, host, purpose, started_at, expires_at) "+
			"VALUES (?, 'x', 'x', 'x', 1, 1)"), lockPrefix+name)
	}
	if removed, err := k.Sweep(t.Context()); err != nil || len(removed) != 0 {
		t.Errorf("%v, %v", removed, err)
	}
	if _, err := os.Stat(victim); errors.Is(err, os.ErrNotExist) {
		t.Error("it is gone")
	}
}
