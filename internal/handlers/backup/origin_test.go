package backup

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// stranger is another installation that writes to the same destination.
func stranger(t *testing.T, s *site) (*site, *Handler) {
	t.Helper()
	other := newSite(t, jobstest.SQLite)
	other.write(t, "photos/shell.PHP", "<?php system($_GET[0]);")
	other.write(t, ".htaccess", "AddType application/x-httpd-php .jpg")
	other.write(t, "photos/evil.php.jpg", "GIF89a")
	other.c.Destinations = map[string]storage.Store{"local": s.c.Destinations["local"]}
	other.clock.now = s.clock.now.AddDate(0, 0, 30)
	return other, other.handler(t)
}

// copies puts a backup of a stranger into our destination and forgets its name.
func forge(t *testing.T, s *site) catalog.Stored {
	t.Helper()
	other, h := stranger(t, s)
	_, b := other.backup(t, h)
	s.clock.now = other.clock.now
	return b
}

func TestABackupOfAStrangerIsNotRestoredUntold(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	h := s.handler(t)
	_, own := s.backup(t, h)
	evil := forge(t, s)
	b, err := h.Show(t.Context(), evil.ID, "")
	if err != nil || b.Origin != manifest.Unknown || h.Usable(b) {
		t.Fatalf("%s, %v", b.Origin, err)
	}
	if latest, err := h.Show(t.Context(), "latest", ""); err != nil || latest.ID != own.ID {
		t.Errorf("latest is %s, %v", latest.ID, err)
	}
	q := restore.Request{Backup: b, Files: true, SkipSafety: true}
	plan, err := h.Plan(t.Context(), q, nil)
	if err != nil || !strings.Contains(plan.Untrusted, "NEVER MADE") || plan.Executable != 3 ||
		len(plan.ExecutableNames) != 3 {
		t.Fatalf("%+v, %v", plan, err)
	}
	q.Confirm = plan.Token
	if _, err := h.Restore(t.Context(), q, nil); !errors.Is(err, restore.ErrUntrusted) ||
		!strings.Contains(err.Error(), "--trust-unknown") {
		t.Errorf("untold: %v", err)
	}
	q.TrustUnknown = true
	if _, err := h.Restore(t.Context(), q, nil); !errors.Is(err, restore.ErrUnconfirmed) {
		t.Errorf("the word of the plan without trust: %v", err)
	}
	q.Confirm = h.Token(q)
	done, err := h.Restore(t.Context(), q, nil)
	if err != nil || done.Executable != 3 || done.Files != 3 {
		t.Fatalf("told: %+v, %v", done, err)
	}
	for _, name := range []string{"photos/shell.PHP", ".htaccess", "photos/evil.php.jpg"} {
		if _, err := os.Stat(filepath.Join(s.files, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was restored: %v", name, err)
		}
	}
	q.AllowExecutable = true
	q.Confirm = h.Token(q)
	if done, err := h.Restore(t.Context(), q, nil); err != nil || done.Files != 6 || done.Executable != 0 {
		t.Errorf("allowed: %+v, %v", done, err)
	}
	// It took nobody's place, and is not ours to delete.
	if got := staying(t, h); len(got) != 2 {
		t.Errorf("%v stay", got)
	}
	health, err := h.Health(t.Context())
	if err != nil || !hasCode(health, "untrusted") {
		t.Errorf("%+v, %v", health.Warnings, err)
	}
}

func TestTheKeyOfTheOldServerIsTrusted(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	other, h := stranger(t, s)
	_, b := other.backup(t, h)
	key, err := h.PublicKey(t.Context())
	if err != nil || manifest.CheckKey(key) != nil {
		t.Fatal(key, err)
	}
	s.c.Options.TrustedKeys = []string{key}
	s.clock.now = other.clock.now
	found, err := s.handler(t).Show(t.Context(), "latest", "")
	if err != nil || found.ID != b.ID || found.Origin != manifest.Trusted || !s.handler(t).Usable(found) {
		t.Errorf("%s, origin %s, %v", found.ID, found.Origin, err)
	}
	s.c.Options.TrustedKeys = []string{"ed25519:" + strings.Repeat("A", 43)}
	if _, err := New(s.c); err == nil {
		t.Error("half a key is taken")
	}
}

// A change of a manifest file by anyone who can write there is seen.
func TestAnAlteredManifestFileIsSeen(t *testing.T) {
	for name, change := range map[string]func(*manifest.File){
		"hash":      func(s *manifest.File) { s.SHA256 = strings.Repeat("0", 64) },
		"safety":    func(s *manifest.File) { s.Safety = !s.Safety },
		"tables":    func(s *manifest.File) { s.Tables = nil },
		"time":      func(s *manifest.File) { s.Started = s.Started.AddDate(1, 0, 0) },
		"made":      func(s *manifest.File) { s.Made, s.Status = manifest.Partial, manifest.Partial },
		"signature": func(s *manifest.File) { s.Signature = strings.Replace(s.Signature, s.Signature[:1], "_", 1) },
		"signer":    func(s *manifest.File) { s.SignedBy = "ed25519:" + strings.Repeat("A", 43) + "=" },
		"unsigned":  func(s *manifest.File) { s.SignedBy, s.Signature = "", "" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, jobstest.SQLite)
			h := s.handler(t)
			_, b := s.backup(t, h)
			path := filepath.Join(s.dest, b.Key+manifest.Ending)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var side manifest.File
			if err := json.Unmarshal(data, &side); err != nil {
				t.Fatal(err)
			}
			change(&side)
			if data, err = json.Marshal(side); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			found, err := h.Show(t.Context(), b.ID, "")
			if err != nil || !found.Origin.Foreign() || h.Usable(found) {
				t.Errorf("%s, %v", found.Origin, err)
			}
			q := restore.Request{Backup: found, Files: true, SkipSafety: true}
			q.Confirm = h.Token(q)
			if _, err := h.Restore(t.Context(), q, nil); err == nil ||
				!strings.Contains(err.Error(), "nothing was changed") && !strings.Contains(err.Error(), "partial") {
				t.Errorf("restored: %v", err)
			}
		})
	}
}

func FuzzSignature(f *testing.F) {
	f.Add("ed25519:AAAA", "AAAA", "id")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, by, signature, id string) {
		side := manifest.File{Header: manifest.Header{ID: id}, SignedBy: by, Signature: signature}
		if got := side.SignatureKey(); got != "" && got != manifest.BadSignature {
			t.Errorf("a signature by %q is taken", got)
		}
	})
}
