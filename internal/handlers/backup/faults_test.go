package backup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

func TestSingleTablesAndFilesAreRestored(t *testing.T) {
	s := newSite(t, jobstest.MySQL)
	s.MustExec("CREATE TABLE log (msg VARCHAR(50))")
	s.MustExec("CREATE TRIGGER tell AFTER DELETE ON posts FOR EACH ROW INSERT INTO log VALUES (CONCAT('gone; ', OLD.id))")
	s.MustExec("CREATE TRIGGER other BEFORE INSERT ON log FOR EACH ROW SET NEW.msg = UPPER(NEW.msg)")
	h := s.handler(t)
	_, b := s.backup(t, h)
	s.MustExec("DELETE FROM posts")
	s.write(t, "a.txt", "changed")
	s.write(t, "news/ü 1.jpg", "changed")
	q := RestoreRequest{Backup: b, Database: true, Tables: []string{"posts"}, Files: true, Paths: []string{"storage/news"}, SkipSafety: true}
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
	if err := s.QueryRow("SELECT (SELECT COUNT(*) FROM posts), (SELECT COUNT(*) FROM log), (SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = DATABASE())").Scan(&posts, &logs, &triggers); err != nil || posts != 300 || logs != 300 || triggers != 2 {
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
	s := newSite(t, jobstest.MySQL)
	h := s.handler(t)
	_, b := s.backup(t, h)
	name := filepath.Join(s.dest, b.Archive)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, whole[:len(whole)*9/10], 0o600); err != nil {
		t.Fatal(err)
	}
	s.MustExec("DELETE FROM posts WHERE id > 10")
	q := RestoreRequest{Backup: b, Database: true, SkipSafety: true}
	q.Confirm = h.token(q)
	if _, err := h.Restore(t.Context(), q, nil); !errors.Is(err, ErrUnproven) {
		t.Errorf("%v", err)
	}
	var n int
	if err := s.Get(&n, "SELECT COUNT(*) FROM posts"); err != nil || n != 10 {
		t.Errorf("%d rows, %v", n, err)
	}
}

func TestWithoutTheRightToCreateADatabaseABackupIsParsed(t *testing.T) {
	s := newSite(t, jobstest.MySQL)
	name := strings.Split(strings.Split(s.DSN, "/")[1], "?")[0]
	s.MustExec("CREATE USER IF NOT EXISTS reader@'127.0.0.1' IDENTIFIED BY 'secret\"pass'")
	s.MustExec("GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, LOCK TABLES ON " + name + ".* TO reader@'127.0.0.1'")
	s.c.DSN = strings.Replace(s.DSN, "root@", "reader:secret\"pass@", 1)
	report, _ := s.backup(t, s.handler(t))
	if p := report.Proof; p.Level != LevelParsed || !p.OK || !strings.Contains(p.Note, "grant") || strings.Contains(p.Note, "secret") {
		t.Errorf("%+v", p)
	}
	s.c.Options.Tool = "mysqldump"
	s.c.ScratchDSN = s.DSN
	report, _ = s.backup(t, s.handler(t))
	if report.Proof.Level != LevelRestored || !report.Proof.OK {
		t.Errorf("mysqldump's: %+v", report.Proof)
	}
}

func TestAFileThatChangesOrVanishesIsNamed(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	files := &restless{Store: s.c.Files[0].Store, dir: s.files}
	s.c.Files[0].Store = files
	h := s.handler(t)
	report, err := h.Create(t.Context(), Request{Files: true}, nil)
	if err != nil || report.Status != Good || report.Files != 2 {
		t.Fatalf("%+v, %v", report, err)
	}
	text := strings.Join(report.Warnings, "\n")
	if !strings.Contains(text, "news/ü 1.jpg vanished") || !strings.Contains(text, "big.bin kept changing") {
		t.Error(text)
	}
	if files.opened["a.txt"] != 2 {
		t.Errorf("a.txt was read %d times", files.opened["a.txt"])
	}
}

// restless changes files while they are read: a.txt once, big.bin always.
type restless struct {
	storage.Store
	dir    string
	opened map[string]int
}

func (r *restless) Open(ctx context.Context, key string) (io.ReadCloser, storage.Info, error) {
	if r.opened == nil {
		r.opened = map[string]int{}
	}
	r.opened[key]++
	if strings.HasPrefix(key, "news/") {
		if err := os.Remove(filepath.Join(r.dir, key)); err != nil {
			return nil, storage.Info{}, err
		}
	}
	body, info, err := r.Store.Open(ctx, key)
	if err == nil && (key == "big.bin" || r.opened[key] == 1) {
		err = os.Truncate(filepath.Join(r.dir, key), info.Size-1)
	}
	return body, info, err
}

func TestAFullDiskIsSeenBeforeAndDuring(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("no small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	small := local(t, disk)
	s.c.Destinations = map[string]storage.Store{"small": small}
	h := s.handler(t)
	_, err := h.Create(t.Context(), Request{Database: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Create(t.Context(), Request{Files: true}, nil); err == nil || !strings.Contains(err.Error(), "MiB of room") {
		t.Errorf("before: %v", err)
	}
	noise := make([]byte, 4<<20)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	s.write(t, "noise", string(noise))
	s.c.Destinations["small"] = silentStore{small} // does not tell its room
	s.clock.now = s.clock.now.Add(time.Hour)
	report, err := s.handler(t).Create(t.Context(), Request{Files: true}, nil)
	if !errors.Is(err, syscall.ENOSPC) || report.Status != Failed {
		t.Errorf("during: %v, %v", report.Status, err)
	}
	if entries, err := os.ReadDir(disk); err != nil || len(entries) != 2 {
		t.Errorf("%d files are left, %v", len(entries), err)
	}
}

// silentStore hides all but the Store's own methods.
type silentStore struct{ storage.Store }

func TestS3TakesBackupsOrNothing(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	noise := make([]byte, 20<<20)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	s.write(t, "noise", string(noise)) // several parts
	backend := s3mem.New()
	if err := backend.CreateBucket("b"); err != nil {
		t.Fatal(err)
	}
	api := gofakes3.New(backend, gofakes3.WithoutVersioning()).Server()
	var fault atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := fault.Load(); f == nil || !(*f)(w, r) {
			api.ServeHTTP(w, r)
		}
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	store, err := storage.NewS3(storage.S3Config{Bucket: "b", Prefix: "site", Endpoint: server.URL, PathStyle: true, AccessKey: "k", SecretKey: "s"})
	if err != nil {
		t.Fatal(err)
	}
	s.c.Destinations = map[string]storage.Store{"s3": store}
	h := s.handler(t)
	_, good := s.backup(t, h)
	for name, breaks := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"a part is refused": func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("partNumber") != "2" {
				return false
			}
			w.WriteHeader(http.StatusForbidden)
			return true
		},
		"the connection is cut": func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("partNumber") == "2" {
				panic(http.ErrAbortHandler)
			}
			return false
		},
		"the sidecar is refused": func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, ".json") {
				return false
			}
			w.WriteHeader(http.StatusForbidden)
			return true
		},
	} {
		fault.Store(&breaks)
		s.clock.now = s.clock.now.Add(time.Hour)
		report, err := h.Create(t.Context(), Request{Database: true, Files: true}, nil)
		if err == nil || report.Outcomes[0].Error == "" {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
		fault.Store(nil)
		if all, err := h.List(t.Context(), ""); len(all) != 1 || all[0].ID != good.ID || err != nil {
			t.Errorf("%s: %d backups count, %v", name, len(all), err)
		}
	}
	if _, err := h.Verify(t.Context(), good, LevelRestored, nil); err != nil {
		t.Error(err)
	}
}

// childEnv makes the test binary make backups until it is killed.
const childEnv = "CMSJOBS_TEST_BACKUP_CHILD"

func TestMain(m *testing.M) {
	if args := os.Getenv(childEnv); args != "" {
		if err := child(strings.Split(args, "|")); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func child(args []string) error {
	db, err := sqlx.Open("sqlite", args[0])
	if err != nil {
		return err
	}
	files, err := storage.NewLocal(args[1], storage.LocalOptions{})
	if err != nil {
		return err
	}
	dest, err := storage.NewLocal(args[2], storage.LocalOptions{})
	if err != nil {
		return err
	}
	h, err := New(Config{Site: &cms.Site{DB: db}, DB: db, DSN: args[0], Destinations: map[string]storage.Store{"local": dest},
		Files: []FileSet{{"storage", files}}, Options: Options{Retention: Retention{Keep: 3}, MinFree: 1}, Now: time.Now, Logger: discard()})
	if err != nil {
		return err
	}
	if _, err := db.Exec("DELETE FROM cmsjobs_backup_lock"); err != nil { // the killed one's would hold for minutes
		return err
	}
	fmt.Println("ready")
	for {
		if _, err := h.Create(context.Background(), Request{Database: true, Files: true}, nil); err != nil {
			return err
		}
	}
}

// Whatever moment a backup is killed at, what counts as good is whole.
func TestKilledAtAnyMomentTheOthersStayWhole(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	s.backup(t, s.handler(t))
	kills := 8
	if os.Getenv("CMSJOBS_SOAK") == "1" {
		kills = 100
	}
	for i := range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+strings.Join([]string{s.DSN, s.files, s.dest}, "|"))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if line != "ready\n" {
			t.Fatalf("the child says %q, %v", line, err)
		}
		time.Sleep(time.Duration(rand.IntN(250)) * time.Millisecond) // a random moment, not a wait for something
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("the child ended by itself")
		}
		h := s.handler(t)
		all, err := h.List(t.Context(), "")
		if err != nil || len(all) == 0 {
			t.Fatalf("kill %d: %d backups, %v", i, len(all), err)
		}
		for _, b := range all {
			if _, err := h.Verify(t.Context(), b, LevelParsed, nil); err != nil {
				t.Errorf("kill %d: %v", i, err)
			}
		}
	}
	leftoversAreSwept(t, s)
}

// leftoversAreSwept: a day later the next backup removes what the killed left.
func leftoversAreSwept(t *testing.T, s *site) {
	t.Helper()
	s.MustExec("DELETE FROM cmsjobs_backup_lock")
	s.clock.now = time.Now().Add(sweepAge + time.Hour)
	h := s.handler(t)
	s.backup(t, h)
	all, err := h.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(s.dest)
	if err != nil || len(entries) != 2*len(all) {
		t.Errorf("%d files for %d backups, %v", len(entries), len(all), err)
	}
}

func TestMemoryDoesNotGrowWithTheSite(t *testing.T) {
	s := newSite(t, jobstest.MySQL)
	rows := 40 // of 1 MiB
	if os.Getenv("CMSJOBS_SOAK") == "1" {
		rows = 1000
	}
	s.MustExec("CREATE TABLE big (id INT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)")
	for i := range rows {
		s.MustExec("INSERT INTO big (v) VALUES (REPEAT(SHA2(?, 512), 8192))", i)
	}
	h := s.handler(t)
	h.c.Options.Verify = LevelNone
	peak := watchHeap(t, func() { s.backup(t, h) })
	t.Logf("%d MiB of rows, heap at most %d MiB", rows, peak>>20)
	if peak > 100<<20 {
		t.Errorf("the heap grew to %d MiB", peak>>20)
	}
}

// watchHeap runs f and returns the largest heap that was seen meanwhile.
func watchHeap(t *testing.T, f func()) uint64 {
	t.Helper()
	stop, done := make(chan struct{}), make(chan uint64)
	runtime.GC()
	go func() {
		var peak uint64
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
			select {
			case <-stop:
				done <- peak
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	f()
	close(stop)
	return <-done
}

func TestEntryNamesOfTables(t *testing.T) {
	for _, table := range []string{"posts", "a=b", "a/b", "ü ☺ %41", "..", "x-y"} {
		name := databaseFolder + "000001-" + entryName(table) + ".sql"
		if part, got := partOf(name); part != dump.Main || got != table || strings.Count(name, "/") != 1 {
			t.Errorf("%q is %s and read as %q", table, name, got)
		}
	}
}
