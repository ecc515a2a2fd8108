package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

func TestWithoutTheRightToCreateADatabaseABackupIsParsed(t *testing.T) {
	jobstest.EachMySQL(t, testWithoutTheRightToCreateADatabaseABackupIsParsed)
}

func testWithoutTheRightToCreateADatabaseABackupIsParsed(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine)
	name := strings.Split(strings.Split(s.DSN, "/")[1], "?")[0]
	root := s.Root(t)
	root.MustExec("CREATE USER IF NOT EXISTS reader@'%' IDENTIFIED BY 'secret\"pass'")
	root.MustExec("GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, LOCK TABLES ON " + name + ".* TO reader@'%'")
	s.c.DSN = s.DSNOf(t, "reader", "secret\"pass")
	h := s.handler(t)
	report, _ := s.backup(t, h)
	if p := report.Verification; p.Level != manifest.LevelParsed || !p.OK || !p.Denied ||
		!strings.Contains(p.Note, "backup.verify_dsn") || strings.Contains(p.Note, "Error") {
		t.Errorf("%+v", p)
	}
	// It is said once and is no alarm: nothing else can be done with this account.
	look, err := h.Health(t.Context())
	if err != nil || len(look.Warnings) != 0 || look.LastChecked.IsZero() || look.Note != report.Verification.Note {
		t.Errorf("%+v, %v", look, err)
	}
	if engine == jobstest.MySQL {
		jobstest.PreferMySQLPrograms(t)
	}
	s.c.Options.Tool = "mysqldump"
	s.c.TempDBDSN = s.DSN
	report, _ = s.backup(t, s.handler(t))
	if report.Verification.Level != manifest.LevelRestored || !report.Verification.OK {
		t.Errorf("mysqldump's: %+v", report.Verification)
	}
}

func TestAFileThatChangesOrVanishesIsNamed(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	files := &restless{Store: s.c.Files[0].Store, dir: s.files}
	s.c.Files[0].Store = files
	h := s.handler(t)
	report, err := h.Create(t.Context(), Request{Files: true}, nil)
	if err != nil || report.Status != manifest.Complete || report.Files != 2 {
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

func TestMemoryDoesNotGrowWithTheSite(t *testing.T) {
	jobstest.EachMySQL(t, testMemoryDoesNotGrowWithTheSite)
}

func testMemoryDoesNotGrowWithTheSite(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine)
	rows := 40 // of 1 MiB
	if os.Getenv("CMSJOBS_SOAK") == "1" {
		rows = 1000
	}
	s.MustExec("CREATE TABLE big (id INT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)")
	for i := range rows {
		s.MustExec("INSERT INTO big (v) VALUES (REPEAT(SHA2(?, 512), 8192))", i)
	}
	h := s.handler(t)
	h.c.Options.Verify = manifest.LevelNone
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
		name := manifest.DatabaseFolder + "000001-" + manifest.TableEntry(table) + ".sql"
		if part, got := manifest.PartOf(name); part != dump.Main || got != table || strings.Count(name, "/") != 1 {
			t.Errorf("%q is %s and read as %q", table, name, got)
		}
	}
}

// A job that is cancelled while the database keeps silent returns at once: its worker
// would have to be killed else.
func TestACancelledBackupDoesNotWaitForASilentDatabase(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		s := newSite(t, engine)
		port := jobstest.Shared(t, engine).Port
		proxy := jobstest.NewProxy(t, port)
		db, err := database.Connect(t.Context(), database.ConnectOptions{
			DSN: strings.Replace(s.DSN, fmt.Sprint(":", port), fmt.Sprint(":", proxy.Port), 1)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		ctx, cancel := context.WithCancelCause(t.Context())
		var told time.Time
		s.c.DB = db
		s.c.Files[0].Store = opening{s.c.Files[0].Store, func() {
			proxy.Swallow(true)
			told = time.Now()
			cancel(jobs.ErrShutdown)
		}}
		_, err = s.handler(t).Create(ctx, Request{Files: true}, nil)
		if took := time.Since(told); !errors.Is(err, jobs.ErrShutdown) || took > 15*time.Second {
			t.Errorf("it returned %s after it was cancelled: %v", took, err)
		}
	})
}

// opening calls back when a file is opened.
type opening struct {
	storage.Store
	called func()
}

func (o opening) Open(ctx context.Context, key string) (io.ReadCloser, storage.Info, error) {
	o.called()
	return o.Store.Open(ctx, key)
}
