package backup

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/health"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// faulty is a store that flips a bit of each archive that it serves, or serves
// none.
type faulty struct {
	storage.Store
	flips, away bool
}

var errRefused = errors.New("connection refused")

func (f *faulty) Open(ctx context.Context, key string) (io.ReadCloser, storage.Info, error) {
	if strings.HasSuffix(key, manifest.Ending) || !f.flips && !f.away {
		return f.Store.Open(ctx, key)
	}
	if f.away {
		return nil, storage.Info{}, errRefused
	}
	body, info, err := f.Store.Open(ctx, key)
	if err != nil {
		return nil, info, err
	}
	return struct {
		io.Reader
		io.Closer
	}{&flipping{Reader: body, at: 200}, body}, info, nil
}

// flipping changes one byte of what is read.
type flipping struct {
	io.Reader
	at int
}

func (f *flipping) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if f.at >= 0 && f.at < n {
		p[f.at] ^= 1
	}
	f.at -= n
	return n, err
}

// daily makes one backup a day later and returns its report.
func (s *site) daily(t testing.TB, h *Handler, q Request) (catalog.Report, error) {
	t.Helper()
	s.clock.now = s.clock.now.Add(24 * time.Hour)
	return h.Create(t.Context(), q, nil)
}

var everything = Request{Database: true, Files: true}

// statusOf is what the list, our table and the manifest file say of a backup.
func statusOf(t testing.TB, s *site, h *Handler, id string) (listed, table, manifestFile manifest.Status) {
	t.Helper()
	b, err := h.Show(t.Context(), id, "local")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Get(&table, s.Rebind("SELECT status FROM cmsjobs_backups WHERE id = ?"), id); err != nil {
		t.Fatal(err)
	}
	side, err := manifest.ReadFile(t.Context(), s.c.Destinations["local"], b.Key+manifest.Ending)
	if err != nil {
		t.Fatal(err)
	}
	return b.Status, table, side.Status
}

// Four backups whose verifications fail push none of the verified ones out, and none of
// them is complete anywhere.
func TestABackupWhoseVerificationFailedIsNotComplete(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	store := &faulty{Store: s.c.Destinations["local"]}
	s.c.Destinations["local"] = store
	s.c.Options.Retention = retention.Rules{Keep: 3, MinAge: -1}
	h := s.handler(t)
	var good, bad []string
	for range 3 {
		report, err := s.daily(t, h, everything)
		if err != nil {
			t.Fatal(err)
		}
		good = append(good, report.ID)
	}
	store.flips = true
	for range 4 {
		report, err := s.daily(t, h, everything)
		if !errors.Is(err, manifest.ErrUnverified) || report.Status != manifest.Failed ||
			report.Outcomes[0].Error == "" {
			t.Fatalf("%+v, %v", report, err)
		}
		bad = append(bad, report.ID)
	}
	store.flips = false
	if _, err := h.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range good {
		if l, table, side := statusOf(t, s, h, id); l != manifest.Complete || table != manifest.Complete ||
			side != manifest.Complete {
			t.Errorf("a verified one: %s, %s, %s", l, table, side)
		}
	}
	newest := bad[3]
	if l, table, side := statusOf(t, s, h, newest); l != manifest.Failed || table != manifest.Failed ||
		side != manifest.Failed {
		t.Errorf("list %s, table %s, manifest file %s", l, table, side)
	}
	if latest, passed, err := h.Find(t.Context(), catalog.Wanted{ID: "latest"}); err != nil || latest.ID != good[2] ||
		len(passed) == 0 || !strings.Contains(h.Standing(latest), "verified (restored)") {
		t.Errorf("latest is %s, %d passed over, %v", latest.ID, len(passed), err)
	}
	health, err := h.Health(t.Context())
	if err != nil || health.Newest == nil || health.Newest.ID != good[2] || !hasCode(health, "failed") ||
		!hasCode(health, "old") {
		t.Errorf("%+v, %v", health, err)
	}
	b, err := h.Show(t.Context(), newest, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Plan(t.Context(), restore.Request{Backup: b, Files: true}, nil); err == nil ||
		!strings.Contains(err.Error(), "--allow-failed") {
		t.Errorf("a failed one is planned: %v", err)
	}
	theManifestFileKnows(t, s, h, b)
	// A verification that succeeds makes it complete again.
	s.clock.now = s.clock.now.Add(time.Minute)
	if _, err := h.Verify(t.Context(), b, manifest.LevelBytes, nil); err != nil {
		t.Fatal(err)
	}
	if l, table, side := statusOf(t, s, h, newest); l != manifest.Complete || table != manifest.Complete ||
		side != manifest.Complete {
		t.Errorf("verified since: list %s, table %s, manifest file %s", l, table, side)
	}
}

// theSidecarKnows: where our tables are lost, the manifest file still tells.
func theManifestFileKnows(t *testing.T, s *site, h *Handler, b catalog.Stored) {
	t.Helper()
	s.MustExec("CREATE TABLE kept_verifications AS SELECT * FROM cmsjobs_backup_verifications")
	s.MustExec("DELETE FROM cmsjobs_backup_verifications")
	if again, err := h.Show(t.Context(), b.ID, ""); err != nil || again.Status != manifest.Failed ||
		again.Verification == nil || again.Verification.Problem == "" {
		t.Errorf("without our table: %+v, %v", again, err)
	}
	s.MustExec("INSERT INTO cmsjobs_backup_verifications SELECT * FROM kept_verifications")
}

func hasCode(h health.Health, code string) bool {
	for _, w := range h.Warnings {
		if w.Code == code {
			return true
		}
	}
	return false
}

// A destination that does not answer says nothing about the backup.
func TestAVerificationThatCannotBeDoneIsNoFailure(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	store := &faulty{Store: s.c.Destinations["local"]}
	s.c.Destinations["local"] = store
	h := s.handler(t)
	_, b := s.backup(t, h)
	store.away = true
	verification, err := h.Verify(t.Context(), b, manifest.LevelParsed, nil)
	if !errors.Is(err, errRefused) && !strings.Contains(err.Error(), "connection refused") ||
		!verification.Unfinished || errors.Is(err, manifest.ErrUnverified) {
		t.Fatalf("%+v, %v", verification, err)
	}
	store.away = false
	if l, table, side := statusOf(t, s, h, b.ID); l != manifest.Complete || table != manifest.Complete ||
		side != manifest.Complete {
		t.Errorf("%s, %s, %s", l, table, side)
	}
}

// A failed backup is restored when that is asked for and its archive is the one
// that was made.
func TestAFailedBackupIsRestoredWhenTold(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	store := &faulty{Store: s.c.Destinations["local"], flips: true}
	s.c.Destinations["local"] = store
	h := s.handler(t)
	report, err := s.daily(t, h, everything)
	if !errors.Is(err, manifest.ErrUnverified) {
		t.Fatal(err)
	}
	store.flips = false // the store was at fault, not the archive
	b, err := h.Show(t.Context(), report.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "a.txt", "of today")
	q := restore.Request{Backup: b, Files: true, AllowFailed: true, SkipSafety: true}
	q.Confirm = h.Token(q)
	if done, err := h.Restore(t.Context(), q, nil); err != nil || done.Files != 3 {
		t.Fatalf("%+v, %v", done, err)
	}
	if got, err := os.ReadFile(filepath.Join(s.files, "a.txt")); string(got) != "hello" || err != nil {
		t.Errorf("a.txt holds %q, %v", got, err)
	}
}

// Any number of backups of files leaves the last one of the database.
func TestBackupsOfFilesPushNoDatabaseOut(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	s.c.Options.Retention = retention.Rules{Keep: 3, MinAge: -1}
	h := s.handler(t)
	full, err := s.daily(t, h, everything)
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		if _, err := s.daily(t, h, Request{Files: true}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := h.List(t.Context(), "")
	if err != nil || len(all) != 4 || all[3].ID != full.ID {
		t.Fatalf("%d stay, %v", len(all), err)
	}
	if b, _, err := h.Find(t.Context(), catalog.Wanted{ID: "latest", Database: true}); err != nil || b.ID != full.ID {
		t.Errorf("the latest of the database is %s, %v", b.ID, err)
	}
	if b, _, err := h.Find(t.Context(), catalog.Wanted{ID: "latest", Files: true}); err != nil || b.ID != all[0].ID {
		t.Errorf("the latest of the files is %s, %v", b.ID, err)
	}
	health, err := h.Health(t.Context())
	if err != nil || health.Newest == nil || health.Newest.ID != full.ID {
		t.Fatalf("%+v, %v", health.Newest, err)
	}
	said := false
	for _, w := range health.Warnings {
		said = said || w.Code == "old" && strings.Contains(w.Text, "of the database at local is 144h")
	}
	if !said {
		t.Errorf("that the database is old is not said: %+v", health.Warnings)
	}
}
