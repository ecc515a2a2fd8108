package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/fileset"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/lock"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// newPartsSite is a site whose backups have database and files in a repository.
func newPartsSite(t *testing.T, engine jobstest.Engine, posts int) *site {
	t.Helper()
	s := newSite(t, engine)
	s.clock.now = time.Now().Add(time.Hour)
	s.c.Options.Form = InRepository
	s.c.StageDir = t.TempDir()
	s.MustExec("DELETE FROM posts")
	for first := 1; first <= posts; first += 1000 {
		s.addPosts(first, min(1000, posts-first+1))
	}
	return s
}

// addPosts adds n posts of about 300 bytes that compress as prose does.
func (s *site) addPosts(first, n int) {
	var rows strings.Builder
	for i := range n {
		id := first + i
		fmt.Fprintf(&rows, "%s(%d,'Post %d','", strings.Repeat(",", min(i, 1)), id, id)
		for word := range 40 {
			fmt.Fprintf(&rows, "w%d ", (id*2654435761+word*40503)%9973)
		}
		rows.WriteString("')")
	}
	s.MustExec("INSERT INTO posts (id, title, body) VALUES " + rows.String())
}

// entriesOf are the names in a backup's archive itself.
func entriesOf(t *testing.T, h *Handler, b catalog.Stored) (names []string) {
	t.Helper()
	body, _, err := h.Download(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	err = archive.Read(t.Context(), body, archive.TarZstd, false, nil, func(e archive.Entry, _ io.Reader) error {
		names = append(names, e.Name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A database whose parts are in a repository is verified by restoring it, restored, and
// leaves no file behind.
func TestTheDatabaseIsInTheRepository(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) { testTheDatabaseIsInTheRepository(t, engine) })
	}
}

func testTheDatabaseIsInTheRepository(t *testing.T, engine jobstest.Engine) {
	s := newPartsSite(t, engine, 3000)
	h := s.handler(t)
	report, b := s.backup(t, h)
	if names := entriesOf(t, h, b); !slices.Equal(names, []string{manifest.HeaderEntry, manifest.LastEntry}) {
		t.Errorf("the archive has %v", names)
	}
	if !b.PartsInRepository() || b.FileCount != 3 || report.Files != 3 || b.Verification == nil || !b.Verification.OK ||
		b.Verification.Level != manifest.LevelRestored {
		t.Fatalf("%+v, %+v", b.File, b.Verification)
	}
	for _, level := range []manifest.Level{manifest.LevelBytes, manifest.LevelParsed, manifest.LevelRestored} {
		if v, err := h.Verify(t.Context(), b, level, nil); err != nil || v.Level != level {
			t.Errorf("%s: %+v, %v", level, v, err)
		}
	}
	want := s.figures(t)
	s.MustExec("DELETE FROM posts WHERE id > 10")
	s.MustExec("UPDATE posts SET title = 'changed'")
	q := restore.Request{Backup: b, Database: true, SkipSafety: true}
	q.Confirm = h.Token(q)
	done, err := h.Restore(t.Context(), q, nil)
	for end := time.Now().Add(2 * lock.Lease); errors.Is(err, lock.ErrBusy) && time.Now().Before(end); {
		time.Sleep(time.Second) // a lock that a server under load did not release ends by itself
		done, err = h.Restore(t.Context(), q, nil)
	}
	if err != nil || len(done.Problems) > 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if is := s.figures(t); is != want {
		t.Errorf("%s became %s", want, is)
	}
	if left, err := filepath.Glob(filepath.Join(s.c.StageDir, "cmsjobs-dump-*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// figures are what tells one state of the posts from another.
func (s *site) figures(t *testing.T) (f string) {
	t.Helper()
	var posts, length, sum int
	if err := s.QueryRow("SELECT COUNT(*), SUM(LENGTH(title) + LENGTH(body)), SUM(id) FROM posts").Scan(&posts, &length,
		&sum); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d posts of %d bytes, ids %d", posts, length, sum)
}

// What did not change in the database is stored once.
func TestUnchangedPartsAreStoredOnce(t *testing.T) {
	for _, engine := range []jobstest.Engine{jobstest.MariaDB, jobstest.MySQL, jobstest.SQLite} {
		t.Run(string(engine), func(t *testing.T) { testUnchangedPartsAreStoredOnce(t, engine) })
	}
}

func testUnchangedPartsAreStoredOnce(t *testing.T, engine jobstest.Engine) {
	posts := jobstest.Size(t, "CMSJOBS_TEST_POSTS", 30_000, 200_000)
	s := newPartsSite(t, engine, posts)
	s.c.Options.Verify = manifest.LevelParsed
	s.c.Options.ExcludeTables = []string{"cmsjobs_*"} // they change with each backup
	h := s.handler(t)
	first, b := s.backup(t, h)
	packed := b.Repository.DatabaseBytes
	for _, step := range []struct {
		name    string
		change  func()
		percent int64 // of the dump's packed bytes, at most
	}{
		{"nothing", func() {}, 1},
		{"the newest 1 % and 100 more", func() {
			s.MustExec(s.Rebind("UPDATE posts SET title = ? WHERE id > ?"), "changed", posts-posts/100)
			s.addPosts(posts+1, 100)
		}, 20},
		{"one at the front", func() { s.MustExec("DELETE FROM posts WHERE id = 2") }, 20},
	} {
		step.change()
		report, _ := s.backup(t, h)
		t.Logf("%s: %s changed: %d bytes are new, the first took %d, of which the dump %d", engine, step.name,
			report.Stored, first.Stored, packed)
		if limit := packed*step.percent/100 + 4096; report.Stored > limit {
			t.Errorf("%s changed: %d bytes are stored, and at most %d are expected", step.name, report.Stored, limit)
		}
	}
}

// A changed bit in a part is found, and nothing is restored from it.
func TestAChangedBitInAPartIsFound(t *testing.T) {
	s := newPartsSite(t, jobstest.SQLite, 3000)
	h := s.handler(t)
	_, b := s.backup(t, h)
	for _, name := range objectsOf(t, s) {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		content[len(content)/2] ^= 1
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, level := range []manifest.Level{manifest.LevelBytes, manifest.LevelParsed, manifest.LevelRestored} {
		if _, err := h.Verify(t.Context(), b, level, nil); !errors.Is(err, manifest.ErrUnverified) {
			t.Errorf("%s: %v", level, err)
		}
	}
	q := restore.Request{Backup: b, Database: true, SkipSafety: true}
	q.Confirm = h.Token(q)
	want := s.figures(t)
	if _, err := h.Restore(t.Context(), q, nil); err == nil || s.figures(t) != want {
		t.Errorf("%v, and %s became %s", err, want, s.figures(t))
	}
}

// The commands of docs/repository-format.md restore the database without this program.
func TestTheScriptRestoresTheDatabase(t *testing.T) {
	jobstest.EachMySQL(t, testTheScriptRestoresTheDatabase)
}

func testTheScriptRestoresTheDatabase(t *testing.T, engine jobstest.Engine) {
	jobstest.AsRoot(t) // it makes a trigger
	if _, err := exec.LookPath("zstd"); err != nil {
		jobstest.Skip(t, "apt-get install zstd: %v", err)
	}
	page, err := os.ReadFile("../../../docs/repository-format.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(string(page), -1)
	commands := blocks[len(blocks)-1][1]
	const client = "mariadb --default-character-set=utf8mb4 DATABASE"
	if strings.Count(commands, client) != 2 {
		t.Fatalf("the page says %s", commands)
	}
	s := newPartsSite(t, engine, 3000)
	s.MustExec("CREATE TRIGGER tell BEFORE INSERT ON cache FOR EACH ROW SET NEW.v = 'said; so'")
	h := s.handler(t)
	s.backup(t, h)
	into, to := filepath.Join(t.TempDir(), "into"), jobstest.Open(t, engine)
	sh(t, to, `cd "$1"/repository; `+strings.NewReplacer("/tmp/site", into, client, "$CLIENT").Replace(commands), s.dest)
	to.MustExec("INSERT INTO cache VALUES ('new', '')")
	var said string
	if err := to.Get(&said, "SELECT v FROM cache WHERE k = 'new'"); err != nil || said != "said; so" {
		t.Errorf("the trigger said %q, %v", said, err)
	}
	restored := &site{Database: to}
	if want, is := s.figures(t), restored.figures(t); want != is {
		t.Errorf("%s became %s", want, is)
	}
	if file, err := os.ReadFile(filepath.Join(into, "storage", "a.txt")); string(file) != "hello" {
		t.Errorf("a file is %q, %v", file, err)
	}
}

// A backup leaves the service as one archive that has its database, before its files.
func TestTheWholeArchiveHasTheDatabase(t *testing.T) {
	s := newPartsSite(t, jobstest.SQLite, 300)
	s.c.Files[0].Label = "a" // before "database"
	s.c.Options.Exclude = nil
	h := s.handler(t)
	_, b := s.backup(t, h)
	content, _, err := h.Whole(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	var folders []string
	err = archive.Read(t.Context(), content, archive.TarZstd, false, nil, func(e archive.Entry, _ io.Reader) error {
		folder, _, in := strings.Cut(e.Name, "/")
		if in && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
		return nil
	})
	if err != nil || !slices.Equal(folders, []string{"database", "files", "manifest"}) {
		t.Errorf("%v, %v", folders, err)
	}
}

// Files that are labelled as the parts are keep their names, and the database goes into
// the archive.
func TestALabelOfTheDatabaseKeepsItInTheArchive(t *testing.T) {
	s := newPartsSite(t, jobstest.SQLite, 300)
	s.c.Files = append(s.c.Files, fileset.Set{Label: "database", Store: local(t, t.TempDir())})
	if err := s.c.Files[1].Store.Put(t.Context(), "000001.sql", strings.NewReader("a file"), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	h := s.handler(t)
	report, b := s.backup(t, h)
	if names := entriesOf(t, h, b); b.PartsInRepository() || b.FileCount != 4 || len(names) < 3 ||
		!slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.Contains(w, "labelled database") }) {
		t.Errorf("%v, %+v, %v", names, b.Repository, report.Warnings)
	}
}

// A folder that is not there, or has no space, keeps the database in the archive, and the
// backup says so.
func TestWithoutAFolderForItTheDatabaseIsInTheArchive(t *testing.T) {
	s := newPartsSite(t, jobstest.SQLite, 300)
	s.c.StageDir = filepath.Join(s.c.StageDir, "missing")
	report, b := s.backup(t, s.handler(t))
	if b.PartsInRepository() || b.Repository == nil || !slices.ContainsFunc(report.Warnings, func(w string) bool {
		return strings.HasPrefix(w, "the database is in the archive")
	}) {
		t.Errorf("%+v, %v", b.Repository, report.Warnings)
	}
}

// The dump of a killed backup is removed by the next one.
func TestTheDumpOfAKilledBackupIsSwept(t *testing.T) {
	s := newPartsSite(t, jobstest.SQLite, 300)
	h := s.handler(t)
	item, dir := h.NewDumpFolder()
	ctx, cancel := context.WithCancel(t.Context())
	_, claim, err := h.Claim(ctx, item, "the dump of a backup")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); claim.Release(context.Background()) })
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.backup(t, h)
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the dump of one that runs is gone: %v", err)
	}
	cancel()
	claim.Release(t.Context()) // as its process's end does, after a while
	s.backup(t, h)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// What a verification restores at most is held against the database, not the small archive.
func TestTheLimitOfVerificationsCountsTheDatabase(t *testing.T) {
	s := newPartsSite(t, jobstest.SQLite, 3000)
	s.c.Options.VerifyMaxBytes = 50_000
	_, b := s.backup(t, s.handler(t))
	if b.Size > 50_000 || b.Packed() <= 50_000 || b.Verification.Level != manifest.LevelParsed || !b.Verification.OK {
		t.Errorf("%d bytes, packed %d: %+v", b.Size, b.Packed(), b.Verification)
	}
}
