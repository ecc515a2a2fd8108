package repository

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// later is a clock by which every file of a test is old.
func later() time.Time { return time.Now().Add(time.Hour) }

func local(t testing.TB, dir string) *storage.Local {
	t.Helper()
	s, err := storage.NewLocal(dir, storage.LocalOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func options(s storage.Store) Options {
	return Options{Store: s, Now: later, Logger: slog.New(slog.DiscardHandler), Workers: 2}
}

func create(t testing.TB, o Options) *Repository {
	t.Helper()
	r, err := Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// site is a folder of a test, with what was written into it.
type site struct {
	dir  string
	rand *rand.ChaCha8
}

// strange are names that must come back as they are.
var strange = []string{
	"uploads/plain.txt", "uploads/with space .txt", "uploads/ü 😀.jpg", "uploads/-n", "uploads/back\\slash\\n",
	"uploads/new\nline",
	"uploads/tab\there", "uploads/end\n", "uploads/%s%d$(id)`id`", "uploads/quote'\"*?[a]",
	"uploads/bytes\xff\xfe\x01", "a-b/x", "a/x", "a.b/x", "a/\\",
}

func newSite(t testing.TB, files int) *site {
	t.Helper()
	s := &site{t.TempDir(), rand.NewChaCha8([32]byte{1, byte(files)})}
	for _, name := range strange {
		s.write(t, name, s.text(100+s.below(3000)))
	}
	s.write(t, "empty", nil)
	s.write(t, "large/noise.bin", s.noise(pieceSize*2+12345))
	s.write(t, "large/text.log", s.text(pieceSize+7))
	s.write(t, "large/exact", s.noise(pieceSize))
	s.write(t, "large/small", s.noise(smallFile))
	s.write(t, "large/smallest", s.noise(smallFile+1))
	for i := range files {
		name := fmt.Sprintf("uploads/2026/%02d/file-%04d.jpg", i%12, i)
		if i%3 == 0 {
			s.write(t, name, s.text(s.below(20_000)))
		} else {
			s.write(t, name, s.noise(s.below(20_000)))
		}
	}
	if err := os.Chmod(filepath.Join(s.dir, "a/x"), 0o640); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) below(n int) int { return int(s.rand.Uint64() % uint64(n)) }

func (s *site) noise(n int) []byte {
	b := make([]byte, n)
	_, _ = s.rand.Read(b) // it never fails
	return b
}

func (s *site) text(n int) []byte {
	var b bytes.Buffer
	for b.Len() < n {
		fmt.Fprintf(&b, "line %d of a text that packs well\n", s.below(1000))
	}
	return b.Bytes()[:n]
}

func (s *site) write(t testing.TB, name string, content []byte) {
	t.Helper()
	p := filepath.Join(s.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, content, 0o644)); err != nil {
		t.Fatal(err)
	}
}

// shot is what a folder holds: mode, time and sum of each file.
func shot(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, p)
		all[name] = fmt.Sprintf("%v %d %x", info.Mode(), info.ModTime().UnixNano(), sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// same compares two folders.
func same(t testing.TB, what string, want, got map[string]string) {
	t.Helper()
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%s: %q is %s and was %s", what, name, got[name], w)
		}
	}
	for name := range got {
		if _, there := want[name]; !there {
			t.Errorf("%s: %q was not there", what, name)
		}
	}
}

func (s *site) request(t testing.TB) Request {
	t.Helper()
	f, err := NewFolder(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return Request{Sources: []Labelled{{"media", f}}}
}

func backup(t testing.TB, r *Repository, q Request) *Report {
	t.Helper()
	report, err := r.Backup(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func restore(t testing.TB, r *Repository, b *Record) map[string]string {
	t.Helper()
	into := t.TempDir()
	if done, err := r.Restore(t.Context(), RestoreRequest{Backup: b, Into: into}); err != nil {
		t.Fatalf("%v: %v", err, done)
	}
	if b.Files == 0 {
		return map[string]string{}
	}
	return shot(t, filepath.Join(into, "media"))
}

func verify(t testing.TB, r *Repository, q VerifyRequest) *Verified {
	t.Helper()
	v, err := r.Verify(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func identity(t testing.TB) *age.X25519Identity {
	t.Helper()
	i, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// both runs a test on a plain and on an encrypted repository.
func both(t *testing.T, run func(t *testing.T, o Options)) {
	t.Run("plain", func(t *testing.T) { run(t, options(local(t, t.TempDir()))) })
	t.Run("encrypted", func(t *testing.T) {
		o, i := options(local(t, t.TempDir())), identity(t)
		o.Recipients, o.Identities = []age.Recipient{i.Recipient()}, []age.Identity{i}
		run(t, o)
	})
}

func TestWhatIsBackedUpIsRestored(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		s := newSite(t, 60)
		want := shot(t, s.dir)
		r := create(t, o)
		report := backup(t, r, s.request(t))
		if len(report.Warnings) != 0 || report.Record.Status != Complete || report.Record.Files != int64(len(want)) {
			t.Errorf("%+v", report)
		}
		same(t, "restored", want, restore(t, r, report.Record))
		found, err := r.Find(t.Context(), report.Record.ID[:20])
		if err != nil || found.Files != report.Record.Files || found.Bytes != report.Record.Bytes {
			t.Errorf("%+v, %v", found, err)
		}
		if v := verify(t, r, VerifyRequest{Level: Contents}); len(v.Problems) != 0 || v.Read != v.Objects ||
			v.Backups != 1 {
			t.Errorf("%+v", v)
		}
	})
}

func TestUnchangedFilesAreNotRead(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		s := newSite(t, 60)
		r := create(t, o)
		first := backup(t, r, s.request(t))
		second := backup(t, r, s.request(t))
		if second.Read != 0 || second.Objects != 0 || second.Unchanged != first.Record.Files {
			t.Errorf("read %d bytes, stored %d objects, %d of %d unchanged", second.Read, second.Objects,
				second.Unchanged, first.Record.Files)
		}
		same(t, "the second", shot(t, s.dir), restore(t, r, second.Record))
	})
}

// The times of a file can be set back, and its size kept.
func TestAChangeThatKeepsSizeAndTimeIsSeen(t *testing.T) {
	s := newSite(t, 5)
	r := create(t, options(local(t, t.TempDir())))
	backup(t, r, s.request(t))
	p := filepath.Join(s.dir, "uploads/plain.txt")
	info, err := os.Stat(p)
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "uploads/plain.txt", s.noise(int(info.Size())))
	if err := os.Chtimes(p, time.Time{}, info.ModTime()); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(s.dir, "uploads/-n") // replaced by a file of the same size and time
	info, err = os.Stat(other)
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "replacement", s.noise(int(info.Size())))
	if err := errors.Join(os.Chtimes(filepath.Join(s.dir, "replacement"), time.Time{}, info.ModTime()),
		os.Rename(filepath.Join(s.dir, "replacement"), other)); err != nil {
		t.Fatal(err)
	}
	second := backup(t, r, s.request(t))
	if changed := second.Record.Files - second.Unchanged; changed != 2 {
		t.Errorf("%d files were read", changed)
	}
	same(t, "the second", shot(t, s.dir), restore(t, r, second.Record))
}

// A file that changed a moment before may change again without another time.
func TestAFileThatJustChangedIsReadAgain(t *testing.T) {
	now := time.Now() // the files change after it, however slow the machine is
	s := newSite(t, 5)
	o := options(local(t, t.TempDir()))
	o.Now = func() time.Time { return now }
	r := create(t, o)
	backup(t, r, s.request(t))
	now = now.Add(time.Second)
	if second := backup(t, r, s.request(t)); second.Unchanged != 0 || second.Objects != 0 {
		t.Errorf("%d unchanged, %d objects", second.Unchanged, second.Objects)
	}
}

func TestMovedAndCopiedFilesAreStoredOnce(t *testing.T) {
	s := newSite(t, 60)
	r := create(t, options(local(t, t.TempDir())))
	backup(t, r, s.request(t))
	if err := os.Rename(filepath.Join(s.dir, "uploads"), filepath.Join(s.dir, "moved")); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(s.dir, "large/noise.bin"))
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "copy.bin", content)
	second := backup(t, r, s.request(t))
	if second.Objects != 1 { // the manifest
		t.Errorf("%d objects were stored", second.Objects)
	}
	same(t, "the second", shot(t, s.dir), restore(t, r, second.Record))
}

// Only what changes is stored: the parts of the manifest too.
func TestTheManifestIsStoredByParts(t *testing.T) {
	s := &site{t.TempDir(), rand.NewChaCha8([32]byte{1})}
	for i := range 3000 {
		s.write(t, fmt.Sprintf("%02d/%04d", i/100, i), []byte(fmt.Sprint(i)))
	}
	r := create(t, options(local(t, t.TempDir())))
	first := backup(t, r, s.request(t))
	if len(first.Record.Manifest) < 3 {
		t.Fatalf("the manifest has %d pieces", len(first.Record.Manifest))
	}
	s.write(t, "29/new", []byte("new"))
	second := backup(t, r, s.request(t))
	kept := 0
	for _, p := range second.Record.Manifest {
		if slices.Contains(first.Record.Manifest, p) {
			kept++
		}
	}
	if kept != len(first.Record.Manifest)-1 {
		t.Errorf("%d of %d pieces of the manifest were kept", kept, len(first.Record.Manifest))
	}
	same(t, "the second", shot(t, s.dir), restore(t, r, second.Record))
}

func TestWithoutAnIdentityTheCacheSaysWhatIsUnchanged(t *testing.T) {
	s := newSite(t, 30)
	o, i := options(local(t, t.TempDir())), identity(t)
	o.Recipients, o.Cache = []age.Recipient{i.Recipient()}, filepath.Join(t.TempDir(), "cache")
	r := create(t, o)
	first := backup(t, r, s.request(t))
	if second := backup(t, r, s.request(t)); second.Read != 0 || len(second.Warnings) != 0 {
		t.Errorf("%+v", second)
	}
	if v := verify(t, r, VerifyRequest{Level: Bytes}); len(v.Problems) != 0 {
		t.Errorf("%+v", v)
	}
	// A cache that is damaged, or gone, is no authority.
	if err := os.RemoveAll(o.Cache); err != nil {
		t.Fatal(err)
	}
	third := backup(t, r, s.request(t))
	if third.Unchanged != 0 || len(third.Warnings) != 1 {
		t.Errorf("%+v", third)
	}
	if _, err := r.Restore(t.Context(), RestoreRequest{Backup: first.Record, Into: t.TempDir()}); !errors.Is(err,
		ErrLocked) {
		t.Errorf("%v", err)
	}
	o.Identities = []age.Identity{i}
	same(t, "the third", shot(t, s.dir), restore(t, create(t, o), third.Record))
}

func TestOneFolderAndOneFileAreRestored(t *testing.T) {
	s := newSite(t, 60)
	r := create(t, options(local(t, t.TempDir())))
	b := backup(t, r, s.request(t)).Record
	all := shot(t, s.dir)
	into := t.TempDir()
	if _, err := r.Restore(t.Context(), RestoreRequest{
		Backup: b, Into: into, Wanted: Under("media/uploads/2026/03", "media/a/x")}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for name, v := range all {
		if strings.HasPrefix(name, "uploads/2026/03/") || name == "a/x" {
			want[name] = v
		}
	}
	same(t, "one folder", want, shot(t, filepath.Join(into, "media")))
	for _, name := range []string{"uploads/new\nline", "large/noise.bin", "empty"} {
		var out bytes.Buffer
		if err := r.Copy(t.Context(), b, "media/"+name, &out); err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(filepath.Join(s.dir, name)); err != nil || !bytes.Equal(content, out.Bytes()) {
			t.Errorf("%q: %d bytes, %v", name, out.Len(), err)
		}
	}
	if err := r.Copy(t.Context(), b, "media/none", &bytes.Buffer{}); !errors.Is(err, storage.ErrNotFound) {
		t.Error(err)
	}
}

func TestLinksAreLeftOutAndUnreadableFilesMakeItPartial(t *testing.T) {
	s := newSite(t, 5)
	if err := os.Symlink("/etc/passwd", filepath.Join(s.dir, "link")); err != nil {
		t.Fatal(err)
	}
	r := create(t, options(local(t, t.TempDir())))
	report := backup(t, r, s.request(t))
	if len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0], "media/link is a link") ||
		report.Record.Status != Complete {
		t.Errorf("%+v", report)
	}
	q := s.request(t)
	q.Sources[0].Source = faulty{q.Sources[0].Source, "uploads/plain.txt"}
	report = backup(t, create(t, options(local(t, t.TempDir()))), q)
	if report.Record.Status != Partial || len(report.Warnings) != 2 || !strings.Contains(report.Warnings[1], "disk") {
		t.Errorf("%+v", report)
	}
}

// faulty is a source with a file that cannot be opened.
type faulty struct {
	Source
	name string
}

func (f faulty) Open(ctx context.Context, name string) (OpenFile, error) {
	if name == f.name {
		return nil, errors.New("disk")
	}
	return f.Source.Open(ctx, name)
}

// What is missing from the store is stored again, although no file changed.
func TestWhatTheStoreLostIsStoredAgain(t *testing.T) {
	s := newSite(t, 30)
	place := local(t, t.TempDir())
	r := create(t, options(place))
	first := backup(t, r, s.request(t)).Record
	lost := 0
	for name := range first.Objects {
		if name == first.Manifest[0].Object {
			continue
		}
		lost++
		if err := place.Delete(t.Context(), objectKey(name)); err != nil {
			t.Fatal(err)
		}
	}
	second := backup(t, r, s.request(t))
	if second.Lost != int64(lost) || second.Unchanged != 1 { // the empty one
		t.Errorf("%d lost, %d unchanged", second.Lost, second.Unchanged)
	}
	same(t, "the second", shot(t, s.dir), restore(t, r, second.Record))
	if v := verify(t, r, VerifyRequest{Level: Present}); len(v.Problems) != lost ||
		v.Problems[0].Backups[0] != first.ID {
		t.Errorf("%d problems", len(v.Problems))
	}
}

func TestAnEmptyBackup(t *testing.T) {
	r := create(t, options(local(t, t.TempDir())))
	b := backup(t, r, Request{}).Record
	if b.Files != 0 || len(b.Objects) != 0 {
		t.Errorf("%+v", b)
	}
	restore(t, r, b)
}

// The newest backup is the base of the next, or the one before if that is damaged.
func TestADamagedRecordIsNoBase(t *testing.T) {
	s := newSite(t, 5)
	r := create(t, options(local(t, t.TempDir())))
	first := backup(t, r, s.request(t)).Record
	for _, unchanged := range []int64{first.Files, 0} {
		ids, err := r.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if id == first.ID && unchanged > 0 {
				continue
			}
			if err := os.WriteFile(filepath.Join(r.Place(), backupsFolder+id+recordEnd), []byte("broken"),
				0o600); err != nil {
				t.Fatal(err)
			}
		}
		report := backup(t, r, s.request(t))
		if report.Unchanged != unchanged || unchanged == 0 && len(report.Warnings) != len(ids) {
			t.Errorf("%d files unchanged, %v", report.Unchanged, report.Warnings)
		}
		same(t, "the next", shot(t, s.dir), restore(t, r, report.Record))
		backup(t, r, s.request(t))
	}
}
