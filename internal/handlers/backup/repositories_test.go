package backup

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// stateOf is how the only repository stands, with the faults that are wanted.
func stateOf(t *testing.T, h *Handler, want ...RepositoryFault) RepositoryState {
	t.Helper()
	all, err := h.Repositories(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	var faults []RepositoryFault
	for _, p := range all[0].Problems {
		faults = append(faults, p.Fault)
		if p.Detail == "" {
			t.Errorf("%s says nothing", p.Fault)
		}
	}
	if !slices.Equal(faults, want) {
		t.Errorf("%+v, want %v", all[0], want)
	}
	return all[0]
}

func only(t *testing.T, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) != 1 {
		t.Fatalf("%s: %v, %v", pattern, names, err)
	}
	return names[0]
}

func TestWhatIsWrongWithARepositoryIsNamed(t *testing.T) {
	s := newRepositorySite(t)
	h := s.handler(t)
	if state := stateOf(t, h); state.Exists || state.Backups != 0 {
		t.Errorf("before the first backup: %+v", state)
	}
	s.backup(t, h)
	if state := stateOf(t, h); !state.Exists || state.Backups != 1 || state.Verified.IsZero() || state.NoKey {
		t.Errorf("after it: %+v", state)
	}
	lock := filepath.Join(s.dest, "repository", "locks", "backup-abcdefghijklm")
	if err := os.WriteFile(lock, []byte("a host\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(lock, s.clock.now, s.clock.now.Add(-9*time.Minute)); err != nil {
		t.Fatal(err)
	}
	stateOf(t, h)                                  // it may live
	s.clock.now = s.clock.now.Add(2 * time.Minute) // the lease is 10 minutes
	if state := stateOf(t, h, RepositoryHeld); !strings.Contains(state.Problems[0].Detail, "locks/backup-abcdefghijklm") {
		t.Errorf("%+v", state)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	s.clock.now = s.clock.now.Add(9 * 24 * time.Hour)
	stateOf(t, h, RepositoryUnverified)

	record := only(t, filepath.Join(s.dest, "repository", "backups", "*"))
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(record); err != nil { // objects are never written twice
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(record, text, 0o600); err != nil {
		t.Fatal(err)
	}
	stateOf(t, h, RepositoryUnverified, RepositoryDamaged)
	format := filepath.Join(s.dest, "repository", "format.txt")
	if err := os.Remove(format); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(format, []byte("something else\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if state := stateOf(t, h, RepositoryDamaged); state.Exists {
		t.Errorf("%+v", state)
	}
	s.c.Destinations["local"] = brokenStore{s.c.Destinations["local"]}
	stateOf(t, s.handler(t), RepositoryUnreadable)
}

// brokenStore opens nothing.
type brokenStore struct{ storage.Store }

func (brokenStore) Open(context.Context, string) (io.ReadCloser, storage.Info, error) {
	return nil, storage.Info{}, errors.New("permission denied")
}

// Without an identity nothing is wrong, and with another one nobody could restore.
func TestTheKeyOfARepositoryIsTried(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	right, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	s.c.Options.Form, s.c.Options.Verify = InRepository, manifest.LevelParsed
	s.c.Options.Recipients, s.c.Options.Identities = []age.Recipient{right.Recipient()}, []age.Identity{right}
	h := s.handler(t)
	s.backup(t, h)
	if state := stateOf(t, h); state.NoKey {
		t.Errorf("%+v", state)
	}
	s.c.Options.Identities = []age.Identity{other}
	stateOf(t, s.handler(t), RepositoryLocked)
	s.c.Options.Identities = nil
	if state := stateOf(t, s.handler(t)); !state.NoKey || state.Backups != 1 {
		t.Errorf("%+v", state)
	}
}

// What the next backup adds is held against the space, not all files of the site.
func TestASpaceShortageIsKnownBeforeTheNextBackup(t *testing.T) {
	s := newRepositorySite(t)
	h := s.handler(t)
	s.backup(t, h)
	if short, err := h.Shortages(t.Context()); err != nil || len(short) > 0 {
		t.Errorf("%v, %v", short, err)
	}
	// The 5 MiB of noise are there: 2 MiB more are enough.
	r, err := h.Repository(t.Context(), "local", false)
	if err != nil {
		t.Fatal(err)
	}
	size, err := r.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.c.Options.MaxBytes = size + 2<<20
	if short, err := s.handler(t).Shortages(t.Context()); err != nil || len(short) > 0 {
		t.Errorf("%v, %v", short, err)
	}
	s.c.Options.MaxBytes = 1
	if short, err := s.handler(t).Shortages(t.Context()); err != nil || !strings.Contains(textOf(short["local"]), "max_total") {
		t.Errorf("over the quota: %v, %v", short, err)
	}
	s.c.Options.MaxBytes, s.c.Options.MinFree = 0, 1<<60
	if short, err := s.handler(t).Shortages(t.Context()); err != nil || !strings.Contains(textOf(short["local"]), "free space") {
		t.Errorf("on a full disk: %v, %v", short, err)
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
