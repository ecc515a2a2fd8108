package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/lock"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/orders"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Each guard of a restore was taken out once, alone, and this test failed:
//
//	the type of an entry: symlink, hard link, device, fifo   TestARestoreRefusesHostileArchives
//	… block device, folder, and each type in a zip           archive: TestHostileEntriesAreRefused
//	a name with "..", an absolute one, a backslash           both
//	a name with NUL, of ".", of more than 4,096 bytes        archive: TestHostileEntriesAreRefused
//	what follows the last entry                              archive: TestWhatFollowsTheLastEntryIsRefused
//	an entry larger than any of ours                         TestAnEndlessEntryIsRefused
//	the archive is read as a whole before                    TestARestoreFromABadArchiveChangesNothing
//	it is copied first, and the copy's hash checked          TestAnArchiveThatIsExchangedIsNeverRestored
//	only complete backups                                    TestOnlyCompleteBackupsAreRestored
//	a backup is made before                                  TestASafetyBackupTakesNobodysPlace
//	… and without it nothing is restored                     TestWithoutASafetyBackupNothingIsRestored
//	… and it is not the newest good one                      TestASafetyBackupTakesNobodysPlace
//	jobs and cmsjobs_* stay, each of the two                 TestARestoreLeavesTheServicesTables
//	the typed word                                           TestABackupIsMadeProvenAndRestored
//	… and a job names it, and its backup; beside no backup   TestARestoreJobNamesItsBackupAndIsConfirmed

func TestSingleTablesAndFilesAreRestored(t *testing.T) {
	jobstest.EachMySQL(t, testSingleTablesAndFilesAreRestored)
}

func testSingleTablesAndFilesAreRestored(t *testing.T, engine jobstest.Engine) {
	jobstest.AsRoot(t) // it makes triggers
	s := newSite(t, engine)
	s.MustExec("CREATE TABLE log (msg VARCHAR(50))")
	s.MustExec("CREATE TRIGGER tell AFTER DELETE ON posts FOR EACH ROW INSERT INTO log VALUES (CONCAT('gone; ', " +
		"OLD.id))")
	s.MustExec("CREATE TRIGGER other BEFORE INSERT ON log FOR EACH ROW SET NEW.msg = UPPER(NEW.msg)")
	h := s.handler(t)
	_, b := s.backup(t, h)
	s.MustExec("DELETE FROM posts")
	s.write(t, "a.txt", "changed")
	s.write(t, "news/ü 1.jpg", "changed")
	q := restore.Request{Backup: b, Database: true, Tables: []string{"posts"}, Files: true, Paths: []string{
		"storage/news"}, SkipSafety: true}
	plan, err := h.Plan(t.Context(), q, nil)
	if err != nil || len(plan.Tables) != 1 || plan.Tables[0].RowsBackup != 300 || plan.ChangedFiles != 1 {
		t.Fatalf("%+v, %v", plan, err)
	}
	q.Confirm = plan.Token
	done, err := h.Restore(t.Context(), q, nil)
	if err != nil || done.Files != 1 || done.Tables != 1 || len(done.Problems) > 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	var posts, logs, triggers int
	if err := s.QueryRow("SELECT (SELECT COUNT(*) FROM posts), (SELECT COUNT(*) FROM log), (SELECT COUNT(*) FROM "+
		"information_schema.triggers WHERE trigger_schema = DATABASE())").Scan(&posts, &logs, &triggers); err != nil ||
		posts != 300 || logs != 300 || triggers != 2 {
		t.Errorf("%d posts, %d log lines, %d triggers, %v", posts, logs, triggers, err)
	}
	for name, want := range map[string]string{"a.txt": "changed", "news/ü 1.jpg": strings.Repeat("x", 100_000)} {
		if got, err := os.ReadFile(filepath.Join(s.files, name)); string(got) != want || err != nil {
			t.Errorf("%s holds %d bytes, %v", name, len(got), err)
		}
	}
	q.Tables = []string{"nothing"}
	if _, err := h.Plan(t.Context(), q, nil); err == nil {
		t.Error("a table that is not there is planned")
	}
}

func TestARestoreFromABadArchiveChangesNothing(t *testing.T) {
	jobstest.EachMySQL(t, testARestoreFromABadArchiveChangesNothing)
}

func testARestoreFromABadArchiveChangesNothing(t *testing.T, engine jobstest.Engine) {
	for name, damage := range map[string]func(*testing.T, *site, *catalog.Stored){
		"torn": func(t *testing.T, s *site, b *catalog.Stored) {
			if err := os.Truncate(filepath.Join(s.dest, b.Archive), b.Size*9/10); err != nil {
				t.Fatal(err)
			}
		},
		// Its hash is right: only its manifest tells.
		"not as it was packed": func(t *testing.T, s *site, b *catalog.Stored) {
			rewrite(t, s, b, func(name string, data []byte) []byte {
				if strings.Contains(name, "posts") {
					return bytes.Replace(data, []byte("title; \\'7\\'"), []byte("title; \\'8\\'"), 1)
				}
				return data
			})
			s.c.DB.MustExec("DELETE FROM cmsjobs_backups")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, engine)
			h := s.handler(t)
			_, b := s.backup(t, h)
			damage(t, s, &b)
			s.MustExec("DELETE FROM posts WHERE id > 10")
			q := restore.Request{Backup: b, Database: true, SkipSafety: true, TrustUnknown: true}
			q.Confirm = h.Token(q)
			if _, err := h.Restore(t.Context(), q, func(s catalog.Step) {
				if s.Note == "reading "+b.ID {
					t.Errorf("it is loaded before it is verified: %+v", s)
				}
			}); !errors.Is(err, manifest.ErrUnverified) {
				t.Errorf("%v", err)
			}
			var n int
			if err := s.Get(&n, "SELECT COUNT(*) FROM posts"); err != nil || n != 10 {
				t.Errorf("%d rows, %v", n, err)
			}
		})
	}
}

// What was made before a restore may be of a broken site: it is not the newest
// good one, and takes nobody's place.
func TestASafetyBackupTakesNobodysPlace(t *testing.T) {
	jobstest.EachMySQL(t, testASafetyBackupTakesNobodysPlace)
}

func testASafetyBackupTakesNobodysPlace(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine)
	s.c.Options.Retention = retention.Rules{Keep: 1, MinAge: -1}
	h := s.handler(t)
	_, good := s.backup(t, h)
	s.MustExec("DELETE FROM posts")
	for range 2 {
		q := restore.Request{Backup: good, Files: true}
		q.Confirm = h.Token(q)
		s.clock.now = s.clock.now.Add(time.Hour)
		done, err := h.Restore(t.Context(), q, nil)
		if err != nil || done.Safety == nil || done.Safety.Status != manifest.Complete {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	if latest, err := h.Show(t.Context(), "latest", ""); err != nil || latest.ID != good.ID {
		t.Errorf("the newest good one is %s, %v", latest.ID, err)
	}
	_, newer := s.backup(t, h)
	all, err := h.List(t.Context(), "")
	if err != nil || len(all) != 2 || all[0].ID != newer.ID || !all[1].Safety {
		t.Errorf("%d backups stay, %v", len(all), err)
	}
}

// endless is a file of zeros without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// It takes half a GiB of memory to show it.
func TestAnEndlessEntryIsRefused(t *testing.T) {
	if os.Getenv("CMSJOBS_SOAK") != "1" {
		t.Skip("CMSJOBS_SOAK=1 reads an entry larger than any of ours")
	}
	if data, err := manifest.ReadEntry(archive.Entry{Name: "manifest.json", Size: 1},
		io.LimitReader(endless{}, manifest.MaxEntry+1<<20)); !errors.Is(err, archive.ErrUnsafe) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// What a backup lacks would be missing afterwards.
func TestOnlyCompleteBackupsAreRestored(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	h := s.handler(t)
	_, b := s.backup(t, h)
	for _, status := range []manifest.Status{manifest.Partial, manifest.Failed, manifest.Running} {
		b.Status, b.Error = status, "some files cannot be read"
		q := restore.Request{Backup: b, Files: true, IntoFolder: filepath.Join(t.TempDir(), "in")}
		q.Confirm = h.Token(q)
		if _, err := h.Restore(t.Context(), q, nil); err == nil || !strings.Contains(err.Error(), "this backup is "+
			string(status)) {
			t.Errorf("%s: %v", status, err)
		}
		if _, err := os.Stat(q.IntoFolder); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: something was restored, %v", status, err)
		}
	}
}

// What cannot be undone is not begun.
func TestWithoutASafetyBackupNothingIsRestored(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	h := s.handler(t)
	_, good := s.backup(t, h)
	s.write(t, "a.txt", "of today")
	s.c.Destinations["local"] = &failing{Store: s.c.Destinations["local"], left: 1000, forever: true}
	h = s.handler(t)
	q := restore.Request{Backup: good, Files: true}
	q.Confirm = h.Token(q)
	s.clock.now = s.clock.now.Add(time.Hour)
	if _, err := h.Restore(t.Context(), q, nil); !errors.Is(err, errUnplugged) ||
		!strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("%v", err)
	}
	if got, err := os.ReadFile(filepath.Join(s.files, "a.txt")); string(got) != "of today" || err != nil {
		t.Errorf("a.txt holds %q, %v", got, err)
	}
}

// exchanged is a store whose object is another one after it was read so often.
type exchanged struct {
	storage.Store
	key   string
	other []byte
	after int
	opens int
}

func (e *exchanged) Open(ctx context.Context, key string) (io.ReadCloser, storage.Info, error) {
	body, info, err := e.Store.Open(ctx, key)
	if key != e.key || err != nil {
		return body, info, err
	}
	if e.opens++; e.opens <= e.after {
		return body, info, nil
	}
	return io.NopCloser(bytes.NewReader(e.other)), info, body.Close()
}

// A store may serve another archive the second time: what is written comes from
// one copy, whose hash was checked before.
func TestAnArchiveThatIsExchangedIsNeverRestored(t *testing.T) {
	for honest := range 3 { // times that the store serves the right one
		s := newSite(t, jobstest.SQLite)
		_, b := s.backup(t, s.handler(t))
		whole, err := os.ReadFile(filepath.Join(s.dest, b.Archive))
		if err != nil {
			t.Fatal(err)
		}
		other := b
		rewrite(t, s, &other, func(_ string, data []byte) []byte {
			return bytes.ReplaceAll(data, []byte("hello"), []byte("evil!"))
		})
		packed, err := os.ReadFile(filepath.Join(s.dest, b.Archive))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.dest, b.Archive), whole, 0o600); err != nil {
			t.Fatal(err)
		}
		store := &exchanged{Store: s.c.Destinations["local"], key: b.Archive, other: packed, after: honest}
		s.c.Destinations["local"] = store
		h := s.handler(t)
		q := restore.Request{Backup: b, Files: true, SkipSafety: true, AllowFailed: honest == 0}
		q.Confirm = h.Token(q)
		s.write(t, "a.txt", "of today")
		_, err = h.Restore(t.Context(), q, nil)
		got, readErr := os.ReadFile(filepath.Join(s.files, "a.txt"))
		if honest == 0 && (!errors.Is(err, manifest.ErrUnverified) ||
			!strings.Contains(err.Error(), "nothing was changed") || string(got) != "of today") {
			t.Errorf("served another at once: %v, a.txt holds %q, %v", err, got, readErr)
		}
		if honest > 0 && (err != nil || string(got) != "hello" || store.opens != 1) {
			t.Errorf("honest %d times: %v, a.txt holds %q, %v; it was read %d times", honest, err, got, readErr,
				store.opens)
		}
		if left, err := h.Leftovers(t.Context()); len(left) > 0 || err != nil {
			t.Errorf("left %v, %v", left, err)
		}
	}
}

// The service works with its tables while it restores; a job must find its row again.
func TestARestoreLeavesTheServicesTables(t *testing.T) {
	jobstest.EachMySQL(t, testARestoreLeavesTheServicesTables)
}

func testARestoreLeavesTheServicesTables(t *testing.T, engine jobstest.Engine) {
	for _, tool := range []string{"own", "mysqldump"} {
		t.Run(tool, func(t *testing.T) {
			s := newSite(t, engine)
			s.MustExec("CREATE TABLE jobs (id INT PRIMARY KEY, payload TEXT)")
			if engine == jobstest.MySQL && tool == "mysqldump" {
				jobstest.PreferMySQLPrograms(t)
			}
			s.c.Options.Tool = tool
			h := s.handler(t)
			_, b := s.backup(t, h)
			s.MustExec("INSERT INTO jobs VALUES (7, 'this restore')")
			s.MustExec("DELETE FROM posts")
			q := restore.Request{Backup: b, Database: true, SkipSafety: true}
			plan, err := h.Plan(t.Context(), q, nil)
			if err != nil || !slices.Contains(plan.Kept, "jobs") || !slices.Contains(plan.Kept, "cmsjobs_backups") {
				t.Fatalf("%+v, %v", plan, err)
			}
			q.Confirm = plan.Token
			if done, err := h.Restore(t.Context(), q, nil); err != nil || len(done.Problems) > 0 {
				t.Fatalf("%+v, %v", done.Problems, err)
			}
			var posts, waiting, known int
			if err := s.QueryRow("SELECT (SELECT COUNT(*) FROM posts), (SELECT COUNT(*) FROM jobs), (SELECT COUNT(*) "+
				"FROM cmsjobs_backups)").Scan(&posts, &waiting, &known); err != nil || posts != 300 || waiting != 1 ||
				known != 1 {
				t.Errorf("%d posts, %d jobs, %d backups are known, %v", posts, waiting, known, err)
			}
		})
	}
}

// Archives that somebody else packed: what would be written outside of the
// folder, or is no file, ends the restore before anything is touched.
func TestARestoreRefusesHostileArchives(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	s.c.Options.Compression = archive.TarGzip
	h := s.handler(t)
	_, b := s.backup(t, h)
	for name, header := range map[string]*tar.Header{
		"zip-slip":      {Typeflag: tar.TypeReg, Name: "files/storage/../../../evil", Size: 1},
		"absolute path": {Typeflag: tar.TypeReg, Name: "/tmp/evil", Size: 1},
		"backslashes":   {Typeflag: tar.TypeReg, Name: `files\storage\..\evil`, Size: 1},
		"symlink":       {Typeflag: tar.TypeSymlink, Name: "files/storage/link", Linkname: "/etc"},
		"hard link":     {Typeflag: tar.TypeLink, Name: "files/storage/link", Linkname: "/etc/passwd"},
		"device":        {Typeflag: tar.TypeChar, Name: "files/storage/null", Devmajor: 1, Devminor: 3},
		"fifo":          {Typeflag: tar.TypeFifo, Name: "files/storage/fifo"},
	} {
		hostile := b
		pack(t, s, &hostile, header)
		parent := t.TempDir()
		q := restore.Request{Backup: hostile, Files: true, IntoFolder: filepath.Join(parent, "in"), TrustUnknown: true}
		q.Confirm = h.Token(q)
		if _, err := h.Restore(t.Context(), q, nil); err == nil ||
			!strings.Contains(err.Error(), "nothing was changed") || !strings.Contains(err.Error(), "tampered") {
			t.Errorf("%s: %v", name, err)
		}
		if entries, err := os.ReadDir(parent); err != nil || len(entries) > 0 {
			t.Errorf("%s left %v, %v", name, entries, err)
		}
	}
}

// pack replaces a backup's archive by one with a header and one more entry,
// and makes all hashes fit.
func pack(t *testing.T, s *site, b *catalog.Stored, entry *tar.Header) {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	head := fmt.Sprintf(`{"format":1,"id":%q}`, b.ID)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: manifest.HeaderEntry, Size: int64(len(head))})
	if err == nil {
		_, err = io.WriteString(w, head)
	}
	if err = errors.Join(err, w.WriteHeader(entry)); err == nil {
		_, err = w.Write(make([]byte, entry.Size))
	}
	if err = errors.Join(err, w.Close(), z.Close(), os.WriteFile(filepath.Join(s.dest, b.Archive), out.Bytes(),
		0o600)); err != nil {
		t.Fatal(err)
	}
	b.Size, b.SHA256 = int64(out.Len()), sha(out.Bytes())
	s.MustExec(s.Rebind("UPDATE cmsjobs_backups SET archive_sha256 = ? WHERE id = ?"), b.SHA256, b.ID)
}

func TestARestoreJobNamesItsBackupAndIsConfirmed(t *testing.T) {
	jobstest.EachMySQL(t, testARestoreJobNamesItsBackupAndIsConfirmed)
}

func testARestoreJobNamesItsBackupAndIsConfirmed(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine)
	h := s.handler(t)
	r := jobs.NewRegistry()
	h.Register(r)
	entry, _ := r.Lookup(RestoreJob.Name)
	_, b := s.backup(t, h)
	s.MustExec("DELETE FROM posts")
	token := h.Token(restore.Request{Backup: b, Database: true})
	runRow := func(data json.RawMessage) error {
		s.clock.now = s.clock.now.Add(time.Hour)
		return entry.Run(jobs.WithRun(t.Context(), jobs.NewRun(s.clock.Now)),
			jobs.Job{Type: RestoreJob.Name, Data: data})
	}
	run := func(data string) error {
		given, err := s.c.Orders.(*orders.Book).Give(t.Context(), r,
			jobs.Spec{Type: RestoreJob.Name, Data: json.RawMessage(data)})
		if err != nil {
			return err
		}
		return runRow(given[0].Data)
	}
	for _, data := range []string{`{"id":"latest","database":true,"confirm":"x"}`, `{"id":"` + b.ID +
		`","database":true}`} {
		if err := run(data); !jobs.IsPermanent(err) {
			t.Errorf("%s: %v", data, err)
		}
	}
	if err := run(`{"id":"` + b.ID + `","database":true,"confirm":"wrong"}`); !errors.Is(err, restore.ErrUnconfirmed) {
		t.Errorf("%v", err)
	}
	_, unlock, err := h.locks.Exclusive(t.Context(), "a backup")
	if err != nil {
		t.Fatal(err)
	}
	q := restore.Request{Backup: b, Database: true, Confirm: token}
	if _, err := h.Restore(t.Context(), q, nil); !errors.Is(err, lock.ErrBusy) {
		t.Errorf("beside a backup: %v", err)
	}
	payload := json.RawMessage(`{"id":"` + b.ID + `","database":true,"confirm":"` + token + `"}`)
	given, err := s.c.Orders.(*orders.Book).Give(t.Context(), r, jobs.Spec{Type: RestoreJob.Name, Data: payload})
	if err != nil {
		t.Fatal(err)
	}
	// an hour later the lock is stale
	atOnce := entry.Run(jobs.WithRun(t.Context(), jobs.NewRun(s.clock.Now)),
		jobs.Job{Type: RestoreJob.Name, Data: given[0].Data})
	if !errors.Is(atOnce, lock.ErrBusy) {
		t.Errorf("an order beside a backup: %v", atOnce)
	}
	unlock()
	if err := runRow(payload); !jobs.IsPermanent(err) || !strings.Contains(err.Error(), "made by the service itself") {
		t.Errorf("a row that says itself what to restore: %v", err)
	}
	if err := runRow(given[0].Data); err != nil { // it waited, and was not used up
		t.Fatal(err)
	}
	s.MustExec("DELETE FROM posts WHERE id = 300")
	if err := runRow(given[0].Data); !jobs.IsPermanent(err) || !errors.Is(err, jobs.ErrOrderUsed) {
		t.Errorf("the same order a second time: %v", err)
	}
	s.MustExec("INSERT INTO posts VALUES (300, 'back', '')")
	var posts int
	if err := s.Get(&posts, "SELECT COUNT(*) FROM posts"); err != nil || posts != 300 {
		t.Errorf("%d posts, %v", posts, err)
	}
}
