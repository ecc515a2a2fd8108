package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/fileset"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/orders"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// clock stands still until it is moved.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

// site is a CMS for tests: a database with rows, and a folder of files.
type site struct {
	*jobstest.Database
	clock *clock
	files string
	dest  string
	c     Config
}

func newSite(t testing.TB, engine jobstest.Engine) *site {
	t.Helper()
	s := &site{Database: jobstest.Migrated(t, engine), clock: &clock{time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)},
		files: t.TempDir(), dest: t.TempDir()}
	for _, statement := range []string{
		"CREATE TABLE posts (id INTEGER PRIMARY KEY, title VARCHAR(100), body TEXT)",
		"CREATE TABLE cache (k VARCHAR(50) PRIMARY KEY, v TEXT)",
		"INSERT INTO cache VALUES ('a', 'b')",
	} {
		s.MustExec(statement)
	}
	for i := range 300 {
		s.MustExec(s.Rebind("INSERT INTO posts VALUES (?, ?, ?)"), i+1, fmt.Sprintf("title; '%d'", i),
			strings.Repeat("body \\ \" ü😀\n", i))
	}
	s.write(t, "a.txt", "hello")
	s.write(t, "news/ü 1.jpg", strings.Repeat("x", 100_000))
	s.write(t, "big.bin", strings.Repeat("0123456789abcdef", smallFile/16+1000))
	s.write(t, "tmp/left.out", "no")
	s.c = Config{
		Site: &cms.Site{DB: s.DB}, DB: s.DB, DSN: s.DSN, Version: "test",
		Destinations: map[string]storage.Store{"local": local(t, s.dest)},
		Files:        []fileset.Set{{Label: "storage", Store: local(t, s.files)}},
		// What is left beside archives is counted; newRepositorySite has the other form.
		Options: Options{Form: InArchive, Exclude: []string{"storage/tmp/**"}, MinFree: 1},
		Orders:  &orders.Book{DB: s.DB, Now: s.clock.Now},
		Now:     s.clock.Now, Logger: slog.New(slog.DiscardHandler),
	}
	return s
}

func (s *site) write(t testing.TB, name, content string) {
	t.Helper()
	name = filepath.Join(s.files, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func local(t testing.TB, dir string) *storage.Local {
	t.Helper()
	l, err := storage.NewLocal(dir, storage.LocalOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func (s *site) handler(t testing.TB) *Handler {
	t.Helper()
	h, err := New(s.c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// backup makes a good one, an hour after the last.
func (s *site) backup(t testing.TB, h *Handler) (catalog.Report, catalog.Stored) {
	t.Helper()
	s.clock.now = s.clock.now.Add(time.Hour)
	report, err := h.Create(t.Context(), Request{Database: true, Files: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.Status != manifest.Complete {
		t.Fatalf("the backup is %+v", report)
	}
	stored, err := h.Show(t.Context(), report.ID, report.Outcomes[0].Destination)
	if err != nil {
		t.Fatal(err)
	}
	return report, stored
}

// rewrite changes a backup's archive and makes the manifest file fit.
func rewrite(t *testing.T, s *site, b *catalog.Stored, change func(name string, data []byte) []byte) {
	t.Helper()
	name := filepath.Join(s.dest, b.Archive)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := archive.NewWriter(&out, archive.TarZstd, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = archive.Read(t.Context(), bytes.NewReader(whole), archive.TarZstd, false, nil,
		func(e archive.Entry, r io.Reader) error {
			data, err := io.ReadAll(r)
			if err != nil {
				return err
			}
			data = change(e.Name, data)
			_, err = w.Add(e.Name, e.Modified, int64(len(data)), bytes.NewReader(data))
			return err
		})
	if err = errors.Join(err, w.Close(), os.WriteFile(name, out.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	b.Size, b.SHA256 = int64(out.Len()), sha(out.Bytes())
}

// staying are the ids that retention would keep.
func staying(t testing.TB, h *Handler) (ids []string) {
	t.Helper()
	plan, err := h.PrunePlan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range plan {
		if k.Keep {
			ids = append(ids, k.ID)
		}
	}
	return ids
}
