package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/fileset"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/repository"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
	"github.com/cmsjobs/cmsjobs/internal/storage/storagetest"
)

// recordsAreThoseOf: a repository has the records that backups name and no others.
func recordsAreThoseOf(t *testing.T, h *Handler, all []catalog.Stored) {
	t.Helper()
	var want []string
	for _, b := range all {
		if b.Repository != nil {
			want = append(want, b.Repository.Backup)
		}
	}
	r, err := h.Repository(t.Context(), "local", false)
	if errors.Is(err, repository.ErrNoRepository) && len(want) == 0 {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	ids, err := r.List(t.Context())
	slices.Sort(want)
	if err != nil || !slices.Equal(ids, want) {
		t.Errorf("records %v, and the backups name %v, %v", ids, want, err)
	}
}

// newRepositorySite is a site of files that are at rest by its clock.
func newRepositorySite(t *testing.T) *site {
	t.Helper()
	s := newSite(t, jobstest.SQLite)
	s.clock.now = time.Now().Add(time.Hour)
	noise := make([]byte, 5<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(noise) // it never fails
	s.write(t, "big.bin", string(noise))
	s.c.Options.Form = InRepository
	s.c.Options.Verify = manifest.LevelParsed
	s.c.Options.Retention = retention.Rules{Keep: 2, MinAge: -1}
	return s
}

// What did not change is stored once; what no backup needs any more is deleted, and a
// full copy stays beside.
func TestUnchangedFilesAreStoredOnce(t *testing.T) {
	s := newRepositorySite(t)
	s.c.Options.FullEvery = 7 * 24 * time.Hour
	h := s.handler(t)
	first, _ := s.backup(t, h)
	second, stored := s.backup(t, h)
	if first.Stored < 4<<20 || second.Stored > 4000 || second.Files != 3 || stored.Space() >= stored.FileBytes {
		t.Errorf("the first stored %d, the second %d of %d files, %d bytes", first.Stored, second.Stored, second.Files,
			stored.Space())
	}
	full, err := h.Create(t.Context(), Request{Database: true, Files: true, Full: true}, nil)
	if b, findErr := h.Show(t.Context(), full.ID, ""); errors.Join(err, findErr) != nil || b.Repository != nil ||
		full.Stored != 0 {
		t.Errorf("the full copy is %+v, %v", b, errors.Join(err, findErr))
	}
	s.write(t, "a.txt", "changed")
	if err := os.Remove(filepath.Join(s.files, "big.bin")); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		s.clock.now = s.clock.now.Add(24 * time.Hour)
		report, err := h.Create(t.Context(), Request{Database: true, Files: true, Source: SourceSchedule}, nil)
		if err != nil || report.Stored == 0 {
			t.Fatalf("%+v, %v", report, err)
		}
	}
	all, err := h.List(t.Context(), "")
	if err != nil || len(all) != 3 || all[2].ID != full.ID {
		t.Errorf("%d backups stay, %v", len(all), err)
	}
	recordsAreThoseOf(t, h, all)
	r, err := h.Repository(t.Context(), "local", false)
	if err != nil {
		t.Fatal(err)
	}
	if size, err := r.Size(t.Context()); err != nil || size < 4<<20 {
		t.Errorf("objects are deleted before they are a day old: %d bytes, %v", size, err)
	}
	old := time.Now().Add(-48 * time.Hour)
	objects := objectsOf(t, s)
	for _, name := range objects {
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Prune(t.Context()); err != nil || len(objectsOf(t, s)) >= len(objects) {
		t.Errorf("%d of %d objects are left, %v", len(objectsOf(t, s)), len(objects), err)
	}
	for _, b := range all {
		if _, err := h.Verify(t.Context(), b, manifest.LevelRestored, nil); err != nil {
			t.Error(err)
		}
	}
	s.clock.now = s.clock.now.Add(7 * 24 * time.Hour)
	due, err := h.Create(t.Context(), Request{Database: true, Files: true, Source: SourceSchedule}, nil)
	if err != nil || due.Stored != 0 {
		t.Errorf("a week later: %+v, %v", due, err)
	}
}

func objectsOf(t *testing.T, s *site) (names []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(s.dest, "repository", "objects"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// One changed bit of any object fails a verification of the bytes, and of the contents.
func TestAChangedBitInTheRepositoryIsFound(t *testing.T) {
	s := newRepositorySite(t)
	h := s.handler(t)
	_, b := s.backup(t, h)
	for i, name := range objectsOf(t, s) {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		at := (i * 7919) % len(content)
		content[at] ^= 1 << (i % 8)
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, level := range []manifest.Level{manifest.LevelBytes, manifest.LevelParsed} {
			if v, err := h.Verify(t.Context(), b, level, nil); !errors.Is(err, manifest.ErrUnverified) || v.OK {
				t.Errorf("%s, byte %d, level %s: %v", filepath.Base(name), at, level, err)
			}
		}
		content[at] ^= 1 << (i % 8)
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Verify(t.Context(), b, manifest.LevelParsed, nil); err != nil {
		t.Error(err)
	}
	if err := os.Remove(objectsOf(t, s)[0]); err != nil {
		t.Fatal(err)
	}
	for _, level := range []manifest.Level{manifest.LevelBytes, manifest.LevelParsed} {
		if _, err := h.Verify(t.Context(), b, level, nil); !errors.Is(err, manifest.ErrUnverified) {
			t.Errorf("an object is missing, level %s: %v", level, err)
		}
	}
}

// Who exchanges the record that a manifest file names makes a backup of unknown origin.
func TestTheRecordOfTheFilesIsSigned(t *testing.T) {
	s := newRepositorySite(t)
	h := s.handler(t)
	_, first := s.backup(t, h)
	s.write(t, "a.txt", "changed")
	s.clock.now = s.clock.now.Add(24 * time.Hour)
	_, second := s.backup(t, h)
	name := filepath.Join(s.dest, second.Key+manifest.Ending)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(text), second.Repository.Backup, first.Repository.Backup)
	if err := os.WriteFile(name, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := h.Show(t.Context(), second.ID, ""); err != nil || b.Origin != manifest.Altered {
		t.Errorf("%s, %v", b.Origin, err)
	}
	if _, err := h.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ids, err := os.ReadDir(filepath.Join(s.dest, "repository", "backups")); err != nil || len(ids) != 2 {
		t.Errorf("%d records, %v", len(ids), err) // the second is not a day old
	}
}

// A manifest file that cannot be read may name anything: nothing is deleted.
func TestNothingIsForgottenBesideAnUnreadableManifestFile(t *testing.T) {
	s := newRepositorySite(t)
	h := s.handler(t)
	_, b := s.backup(t, h)
	if err := os.WriteFile(filepath.Join(s.dest, b.Key+manifest.Ending), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.clock.now = s.clock.now.Add(72 * time.Hour)
	if err := h.forget(t.Context(), "local", nil); err == nil {
		t.Error("no error")
	}
	if ids, err := os.ReadDir(filepath.Join(s.dest, "repository", "backups")); err != nil || len(ids) != 1 {
		t.Errorf("%d records, %v", len(ids), err)
	}
}

// halfPrivate knows objects that visitors may not read, as a bucket does.
type halfPrivate struct{ storage.Store }

func (halfPrivate) Private(_ context.Context, key string) (bool, error) {
	return key == "secret.jpg", nil
}

// Two destinations, one of them a bucket, have a repository each, encrypted; what visitors
// could not read they cannot read after a restore; a destination that refuses objects has
// no backup, and the other is whole. A service without an identity knows what is unchanged.
func TestRepositoriesAtTwoDestinations(t *testing.T) {
	s := newRepositorySite(t)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	bucket := storagetest.New(t)
	store, err := storage.NewS3(storage.S3Config{Bucket: bucket.Name, Prefix: "site", Endpoint: bucket.URL,
		PathStyle: true, AccessKey: storagetest.Key, SecretKey: storagetest.Secret})
	if err != nil {
		t.Fatal(err)
	}
	media := t.TempDir()
	for _, name := range []string{"secret.jpg", "shown.jpg"} {
		if err := os.WriteFile(filepath.Join(media, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.c.Files = append(s.c.Files, fileset.Set{Label: "media", Store: halfPrivate{local(t, media)}})
	s.c.Destinations["s3"], s.c.ManifestCache = store, filepath.Join(t.TempDir(), "cache")
	s.c.Options.Recipients = []age.Recipient{identity.Recipient()}
	h := s.handler(t) // without the identity
	s.backup(t, h)
	second, _ := s.backup(t, h)
	if second.Stored > 40_000 {
		t.Errorf("the second stored %d bytes", second.Stored)
	}
	s.c.Options.Identities = []age.Identity{identity}
	h = s.handler(t)
	for _, destination := range []string{"local", "s3"} {
		b, err := h.Show(t.Context(), second.ID, destination)
		if err != nil || b.Repository == nil || !b.Encrypted {
			t.Fatalf("%+v, %v", b, err)
		}
		if _, err := h.Verify(t.Context(), b, manifest.LevelRestored, nil); err != nil {
			t.Error(err)
		}
		q := restore.Request{Backup: b, Files: true, IntoFolder: t.TempDir()}
		q.Confirm = h.Token(q)
		if done, err := h.Restore(t.Context(), q, nil); err != nil || done.Files != 5 {
			t.Fatalf("%+v, %v", done, err)
		}
		for name, mode := range map[string]fs.FileMode{"media/secret.jpg": 0o600, "media/shown.jpg": 0o644,
			"storage/a.txt": 0o644} {
			if info, err := os.Stat(filepath.Join(q.IntoFolder, name)); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
	}
	s.write(t, "a.txt", "changed")
	bucket.Break(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/objects/") {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		return true
	})
	s.clock.now = s.clock.now.Add(24 * time.Hour)
	third, err := h.Create(t.Context(), Request{Database: true, Files: true}, nil)
	bucket.Break(nil)
	if err == nil || third.Status != manifest.Complete || len(third.Outcomes) != 2 || third.Outcomes[0].Error != "" ||
		third.Outcomes[1].Error == "" {
		t.Errorf("%+v, %v", third, err)
	}
	if _, err := h.Show(t.Context(), third.ID, "s3"); !errors.Is(err, catalog.ErrNoBackup) {
		t.Error(err)
	}
	if b, err := h.Show(t.Context(), third.ID, "local"); err != nil || !h.Usable(b) {
		t.Errorf("%+v, %v", b, err)
	}
}

// A backup whose files are in a repository leaves the service as one archive that is like
// those of the other form.
func TestTheWholeArchiveIsPacked(t *testing.T) {
	s := newRepositorySite(t)
	h := s.handler(t)
	_, b := s.backup(t, h)
	content, info, err := h.Whole(t.Context(), b)
	if err != nil || info.Size != -1 {
		t.Fatal(err)
	}
	defer content.Close()
	files := map[string]int64{}
	var last *manifest.Manifest
	err = archive.Read(t.Context(), content, archive.TarZstd, false, nil, func(e archive.Entry, r io.Reader) error {
		if e.Name == manifest.LastEntry {
			return manifest.DecodeEntry(r, &last)
		}
		n, err := io.Copy(io.Discard, r)
		files[e.Name] = n
		return err
	})
	if err != nil || last == nil || last.FileCount != 3 || last.FileBytes != b.FileBytes || files["files/storage/a.txt"] != 5 ||
		files["files/storage/big.bin"] != 5<<20 || files["manifest/files-000001.jsonl"] == 0 || last.Dump == nil {
		t.Errorf("%v, %+v, %v", files, last, err)
	}
}

// A file that cannot be read makes the backup partial, in a repository as in an archive.
func TestAFileThatNoStoreTakesMakesItPartial(t *testing.T) {
	s := newRepositorySite(t)
	s.write(t, "back\\slash.jpg", "x")
	h := s.handler(t)
	report, err := h.Create(t.Context(), Request{Files: true}, nil)
	if !errors.Is(err, ErrPartial) || report.Status != manifest.Partial || !strings.Contains(report.FilesError, "slash") {
		t.Errorf("%+v, %v", report, err)
	}
	data, jsonErr := json.Marshal(report)
	if jsonErr != nil || !strings.Contains(string(data), fmt.Sprintf("%q:%d", "files", 3)) {
		t.Errorf("%s", data)
	}
}
