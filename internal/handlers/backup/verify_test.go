package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func TestVerifyFindsEveryDamage(t *testing.T) {
	for _, format := range []archive.Format{archive.TarZstd, archive.TarGzip, archive.Zip} {
		t.Run(string(format), func(t *testing.T) {
			s := newSite(t, jobstest.SQLite)
			s.c.Options.Compression = format
			h := s.handler(t)
			_, first := s.backup(t, h)
			_, second := s.backup(t, h)
			name := filepath.Join(s.dest, second.Archive)
			whole, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			other, err := os.ReadFile(filepath.Join(s.dest, first.Archive))
			if err != nil {
				t.Fatal(err)
			}
			damages := map[string][]byte{"empty": nil, "torn": whole[:len(whole)-1], "half": whole[:len(whole)/2],
				"longer": append(slices.Clone(whole), 0), "swapped": other}
			flips := 10
			if os.Getenv("CMSJOBS_SOAK") == "1" {
				flips = 200
			}
			for i := range flips {
				flipped := slices.Clone(whole)
				flipped[i*len(whole)/flips] ^= 1 << (i % 8)
				damages[fmt.Sprintf("bit flipped in byte %d", i*len(whole)/flips)] = flipped
			}
			for damage, content := range damages {
				if err := os.WriteFile(name, content, 0o600); err != nil {
					t.Fatal(err)
				}
				for _, level := range []manifest.Level{manifest.LevelBytes, manifest.LevelParsed,
					manifest.LevelRestored} {
					if verification, err := h.Verify(t.Context(), second, level, nil); !errors.Is(err,
						manifest.ErrUnverified) || verification.OK {
						t.Errorf("%s, %s: %+v, %v", damage, level, verification, err)
					}
				}
			}
			// The manifest file of the other one too: only our own table knows.
			if err := os.WriteFile(name, other, 0o600); err != nil {
				t.Fatal(err)
			}
			forged := second
			forged.SHA256, forged.Size = first.SHA256, first.Size
			if _, err := h.Verify(t.Context(), forged, manifest.LevelBytes, nil); !errors.Is(err,
				manifest.ErrUnverified) {
				t.Errorf("archive and manifest file swapped: %v", err)
			}
			if err := os.WriteFile(name, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Verify(t.Context(), second, manifest.LevelRestored, nil); err != nil {
				t.Errorf("fixed: %v", err)
			}
		})
	}
}

// A shutdown in the middle of a verification says nothing about the backup.
func TestAnInterruptedVerificationIsNoBadOne(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	h := s.handler(t)
	_, b := s.backup(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := h.Verify(ctx, b, manifest.LevelRestored, func(catalog.Step) { cancel() })
	if !errors.Is(err, context.Canceled) || errors.Is(err, manifest.ErrUnverified) {
		t.Errorf("%v", err)
	}
	if verifications, err := h.Verifications(t.Context(), b.ID, 10); err != nil || len(verifications) != 1 ||
		!verifications[0].OK {
		t.Errorf("%+v, %v", verifications, err)
	}
}

// What an archive holds must be compared too: a hash is right for any bytes
// that were packed.
func TestVerifyComparesTheRestoredRows(t *testing.T) {
	jobstest.EachMySQL(t, testVerifyComparesTheRestoredRows)
}

func testVerifyComparesTheRestoredRows(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine)
	h := s.handler(t)
	_, b := s.backup(t, h)
	rewrite(t, s, &b, func(name string, data []byte) []byte {
		if strings.Contains(name, "posts") {
			return bytes.Replace(data, []byte("title; \\'7\\'"), []byte("title; \\'8\\'"), 1)
		}
		return data
	})
	h.c.DB.MustExec("DELETE FROM cmsjobs_backups")
	for level, want := range map[manifest.Level]string{manifest.LevelParsed: "not as it was packed",
		manifest.LevelRestored: "the rows of the table posts"} {
		_, err := h.Verify(t.Context(), b, level, nil)
		if !errors.Is(err, manifest.ErrUnverified) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", level, err)
		}
	}
	var left []string
	if err := s.Select(&left, "SHOW DATABASES LIKE 'cmsjobs\\_verify\\_%'"); err != nil || len(left) > 0 {
		t.Errorf("temporary databases stay: %v, %v", left, err)
	}
}

// A schema that is not the one that was dumped is named by its table and what differs.
func TestVerifyNamesTheDifferenceOfTheSchema(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		s := newSite(t, engine)
		h := s.handler(t)
		_, b := s.backup(t, h)
		rewrite(t, s, &b, func(name string, data []byte) []byte {
			if strings.Contains(name, "posts") {
				return bytes.Replace(data, []byte("varchar(100)"), []byte("varchar(90)"), 1)
			}
			return data
		})
		h.c.DB.MustExec("DELETE FROM cmsjobs_backups")
		_, err := h.Verify(t.Context(), b, manifest.LevelRestored, nil)
		if want := `table posts: column title is "varchar(90)`; !errors.Is(err, manifest.ErrUnverified) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	})
}

func TestEncryptedForAgeRecipients(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	s.c.Options.Recipients = []age.Recipient{identity.Recipient()}
	report, b := s.backup(t, s.handler(t))
	if !strings.HasSuffix(b.Archive, ".tar.zst.age") || report.Verification.Level != manifest.LevelBytes ||
		report.Verification.Note == "" {
		t.Errorf("%s, %+v", b.Archive, report.Verification)
	}
	content, err := os.ReadFile(filepath.Join(s.dest, b.Archive))
	if err != nil || bytes.Contains(content, []byte("hello")) {
		t.Errorf("the archive can be read, %v", err)
	}
	s.c.Options.Identities = []age.Identity{stranger}
	if _, err := s.handler(t).Verify(t.Context(), b, manifest.LevelRestored, nil); !errors.Is(err,
		manifest.ErrUnverified) {
		t.Errorf("with a stranger's identity: %v", err)
	}
	s.c.Options.Identities = []age.Identity{identity}
	if verification, err := s.handler(t).Verify(t.Context(), b, manifest.LevelRestored, nil); err != nil ||
		verification.Level != manifest.LevelRestored {
		t.Errorf("%+v, %v", verification, err)
	}
	if _, err := exec.LookPath("age"); err != nil {
		t.Skip("no age to open it with")
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(identity.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("sh", "-c", `age -d -i "$1" "$2" | zstd -dc | tar -tf -`, "sh", key,
		filepath.Join(s.dest, b.Archive)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "files/storage/a.txt") ||
		!strings.HasSuffix(string(out), "manifest.json\n") {
		t.Errorf("%v: %s", err, out)
	}
}
