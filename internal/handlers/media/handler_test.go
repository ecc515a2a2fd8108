package media

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

const schema = `
CREATE TABLE settings (id INTEGER PRIMARY KEY, ` + "%key%" + ` VARCHAR(191) NOT NULL, value TEXT);
CREATE TABLE media_files (id INTEGER PRIMARY KEY, user_id INTEGER, name VARCHAR(255) NOT NULL, folder_id INTEGER DEFAULT
	0,
  mime_type VARCHAR(120), size INTEGER, url VARCHAR(255) NOT NULL, options TEXT, created_at TIMESTAMP NULL, updated_at
	TIMESTAMP NULL,
  deleted_at TIMESTAMP NULL, visibility VARCHAR(255) NOT NULL DEFAULT 'public')`

// site is a CMS with a database, a folder and a handler on it.
type site struct {
	*cms.Site
	t       testing.TB
	uploads string
	handler *Handler
}

var testTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newSite(t testing.TB, engine jobstest.Engine, o Options) *site {
	t.Helper()
	db := jobstest.Open(t, engine)
	key := `"key"`
	if engine.IsMySQL() {
		key = "`key`"
	}
	for _, statement := range strings.Split(strings.ReplaceAll(schema, "%key%", key), ";\n") {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	return withHandler(t, &cms.Site{DB: db.DB, Root: t.TempDir(), Env: cms.Env{}}, o)
}

func withHandler(t testing.TB, s *cms.Site, o Options) *site {
	t.Helper()
	uploads := filepath.Join(s.Root, "public", "storage")
	if err := os.MkdirAll(uploads, 0o755); err != nil {
		t.Fatal(err)
	}
	open := func(_ context.Context, p cms.MediaPlace) (storage.Store, error) {
		return storage.NewLocal(p.Folder, storage.LocalOptions{})
	}
	h, err := New(Config{Site: s, Open: open, Options: o, Now: func() time.Time { return testTime }})
	if err != nil {
		t.Fatal(err)
	}
	return &site{s, t, uploads, h}
}

func (s *site) exec(query string, args ...any) {
	s.t.Helper()
	if _, err := s.DB.Exec(s.DB.Rebind(query), args...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) setting(key, value string) {
	s.t.Helper()
	quoted := `"key"`
	if s.DB.DriverName() == "mysql" {
		quoted = "`key`"
	}
	s.exec("DELETE FROM settings WHERE "+quoted+" = ?", key)
	s.exec("INSERT INTO settings (id, "+quoted+", value) SELECT COALESCE(MAX(id), 0) + 1, ?, ? FROM settings", key,
		value)
}

// upload puts a file and its row there, made an hour ago.
func (s *site) upload(id int, url, mime string, data []byte) {
	s.t.Helper()
	s.exec("INSERT INTO media_files (id, name, mime_type, url, options) VALUES (?, ?, ?, ?, '[]')", id, url, mime, url)
	s.write(url, data)
}

func (s *site) write(url string, data []byte) {
	s.t.Helper()
	path := filepath.Join(s.uploads, filepath.FromSlash(url))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		s.t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		s.t.Fatal(err)
	}
}

// size of a file's picture, "" where there is no file.
func (s *site) size(url string) string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.uploads, filepath.FromSlash(url)))
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	if err != nil {
		s.t.Fatal(err)
	}
	h, err := picture.Inspect(data)
	if err != nil {
		s.t.Fatalf("%s: %v", url, err)
	}
	return image.Pt(h.StoredWidth, h.StoredHeight).String()
}

// run runs one job through a registry, as the worker would.
func (s *site) run(payload string, attempt int) (Outcome, error) {
	s.t.Helper()
	r := jobs.NewRegistry()
	s.handler.Register(r)
	entry, ok := r.Lookup("media.processImage")
	if !ok {
		s.t.Fatal("the kind is not registered")
	}
	run := jobs.NewRun(func() time.Time { return testTime })
	job := jobs.Job{Type: entry.Type, Data: json.RawMessage(payload), Attempt: attempt, MaxAttempts: 3}
	err := entry.Run(jobs.WithRun(s.t.Context(), run), job)
	var out Outcome
	if result, _ := run.Result(); result != nil {
		if err := json.Unmarshal(result, &out); err != nil {
			s.t.Fatal(err)
		}
	}
	return out, err
}

// runOut runs the last attempt of a job whose time is over when the file is
// opened.
func (s *site) runOut(id int) error {
	s.t.Helper()
	ctx, cancel := context.WithCancelCause(s.t.Context())
	open := s.handler.Open
	s.handler.Open = func(ctx context.Context, p cms.MediaPlace) (storage.Store, error) {
		cancel(jobs.ErrTimeout)
		return open(ctx, p)
	}
	payload := ProcessImagePayload{MediaFileID: ID(fmt.Sprint(id))}
	return s.handler.processImage(ctx, jobs.Job{Attempt: 3, MaxAttempts: 3}, payload)
}

func (s *site) options(id int) map[string]json.RawMessage {
	s.t.Helper()
	var text string
	if err := s.DB.Get(&text, s.DB.Rebind("SELECT options FROM media_files WHERE id = ?"), id); err != nil {
		s.t.Fatal(err)
	}
	options := map[string]json.RawMessage{}
	if json.Unmarshal([]byte(text), &options) != nil {
		return nil
	}
	return options
}

func (s *site) record(id int) Record {
	s.t.Helper()
	var text string
	if err := s.DB.Get(&text, s.DB.Rebind("SELECT options FROM media_files WHERE id = ?"), id); err != nil {
		s.t.Fatal(err)
	}
	r, _ := ReadRecord(text)
	return r
}

func jpegOf(t testing.TB, w, h int) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.Set(x, y, color.RGBA{byte(x), byte(y), byte(x + y), 255})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWithoutACMSTheSpecificationsSizesAreMade(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			s := newSite(t, engine, Options{Placeholder: true})
			s.upload(123, "media/2024/01/image.jpg", "image/jpeg", jpegOf(t, 1600, 1000))
			s.exec(`UPDATE media_files SET options = '{"alt":"kept"}' WHERE id = 123`)
			out, err := s.run(
				`{"mediaFileId":123,"filePath":"/storage/media/2024/01/image.jpg","mimeType":"image/jpeg"}`, 1)
			if err != nil || out.Made != 3 {
				t.Fatalf("%+v, %v", out, err)
			}
			for url, want := range map[string]string{"image-thumb.jpg": "(150,150)", "image-medium.jpg": "(300,300)",
				"image-large.jpg": "(800,500)"} {
				if got := s.size("media/2024/01/" + url); got != want {
					t.Errorf("%s is %s, want %s", url, got, want)
				}
			}
			r := s.record(123)
			if r.Width != 1600 || r.Height != 1000 || r.Sizes["large"].Height != 500 || r.BlurHash == "" ||
				!strings.HasPrefix(r.Placeholder, "data:image/jpeg;base64,") {
				t.Errorf("record %+v", r)
			}
			if string(s.options(123)["alt"]) != `"kept"` {
				t.Errorf("another key of options is gone: %s", s.options(123))
			}
			if out, err = s.run(`{"mediaFileId":"123"}`, 1); err != nil || out.Skipped == "" || out.Made != 0 {
				t.Errorf("the second run: %+v, %v", out, err)
			}
		})
	}
}

func TestTheCMSsSizesAndNamesAreUsed(t *testing.T) {
	s := newSite(t, jobstest.SQLite, Options{Widths: []int{400, 5000}, Copies: []string{"webp"}})
	s.setting("theme", "ripple")
	s.setting("media_sizes_featured_width", "200")
	functions := filepath.Join(s.Root, "platform/themes/ripple/functions")
	if err := os.MkdirAll(functions, 0o755); err != nil {
		t.Fatal(err)
	}
	code := "<?php // RvMedia::addSize('no', 1, 1);\nRvMedia::addSize('featured', 565, 375)->addSize( \"wide\" , 320 );"
	if err := os.WriteFile(filepath.Join(functions, "functions.php"), []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	s.upload(1, "news/a.b.jpg", "image/jpeg", jpegOf(t, 640, 400))
	if out, err := s.run(`{"mediaFileId":1}`, 1); err != nil || out.Made != 8 {
		t.Fatalf("%+v, %v", out, err)
	}
	for url, want := range map[string]string{
		"news/a.b-150x150.jpg": "(150,150)", "news/a.b-200x375.jpg": "(200,375)", "news/a.b-320xauto.jpg": "(320,200)",
		"news/a.b-400xauto.jpg": "(400,250)", "news/a.b-150x150.jpg.webp": "(150,150)", "news/a.b-1x1.jpg": "",
		"news/a.b-5000xauto.jpg": "",
	} {
		if got := s.size(url); got != want {
			t.Errorf("%s is %q, want %q", url, got, want)
		}
	}
}

func TestOnlyWhatIsMissingIsMade(t *testing.T) {
	s := newSite(t, jobstest.SQLite, Options{})
	s.upload(1, "a.jpg", "image/jpeg", jpegOf(t, 900, 900))
	// The CMS made one thumbnail itself.
	theirs := jpegOf(t, 150, 150)
	if err := os.WriteFile(filepath.Join(s.uploads, "a-thumb.jpg"), theirs, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := s.run(`{"mediaFileId":1}`, 1); err != nil || out.Made != 2 || out.Kept != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	if got, _ := os.ReadFile(filepath.Join(s.uploads, "a-thumb.jpg")); !bytes.Equal(got, theirs) {
		t.Error("the CMS's own thumbnail was overwritten")
	}
	if err := os.Remove(filepath.Join(s.uploads, "a-large.jpg")); err != nil {
		t.Fatal(err)
	}
	if out, err := s.run(`{"mediaFileId":1}`, 1); err != nil || out.Made != 1 {
		t.Errorf("after one was removed: %+v, %v", out, err)
	}
	s.write("a.jpg", jpegOf(t, 1000, 500))
	if out, err := s.run(`{"mediaFileId":1}`, 1); err != nil || out.Made != 3 || s.size("a-large.jpg") != "(800,400)" {
		t.Errorf("after the original changed: %+v, %v, large is %s", out, err, s.size("a-large.jpg"))
	}
	if out, err := s.run(`{"mediaFileId":1,"force":true}`, 1); err != nil || out.Made != 3 {
		t.Errorf("forced: %+v, %v", out, err)
	}
}

func TestFailuresAreMarkedAndSuccessUnmarks(t *testing.T) {
	s := newSite(t, jobstest.SQLite, Options{})
	s.upload(1, "gone.jpg", "image/jpeg", nil)
	if err := os.Remove(filepath.Join(s.uploads, "gone.jpg")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.run(`{"mediaFileId":1}`, 1); !jobs.IsPermanent(err) || s.record(1).Error == "" {
		t.Errorf("a missing file: %v, record %+v", err, s.record(1))
	}
	s.upload(2, "broken.jpg", "image/jpeg", jpegOf(t, 400, 400)[:100])
	for attempt := 1; attempt <= 3; attempt++ {
		_, err := s.run(`{"mediaFileId":2}`, attempt)
		if err == nil || jobs.IsPermanent(err) {
			t.Fatalf("a broken file: %v", err)
		}
		if flagged := s.record(2).Error != ""; flagged != (attempt == 3) {
			t.Errorf("attempt %d: flagged is %v", attempt, flagged)
		}
	}
	s.write("broken.jpg", jpegOf(t, 400, 400))
	if _, err := s.run(`{"mediaFileId":2}`, 1); err != nil || s.record(2).Error != "" || s.record(2).FailedAt != nil {
		t.Errorf("fixed: %v, record %+v", err, s.record(2))
	}
	s.upload(3, "slow.jpg", "image/jpeg", jpegOf(t, 400, 400))
	s.handler.Open = func(context.Context, cms.MediaPlace) (storage.Store, error) {
		return nil, context.DeadlineExceeded
	}
	s.handler.opened = nil
	if err := s.runOut(3); err == nil || s.record(3).Error == "" {
		t.Errorf("the last attempt ran out of time: %v, record %+v", err, s.record(3))
	}
	if _, err := s.run(`{"mediaFileId":99}`, 1); !jobs.IsPermanent(err) {
		t.Errorf("no row: %v", err)
	}
	if _, err := s.run(`{}`, 1); !jobs.IsPermanent(err) {
		t.Errorf("an empty payload: %v", err)
	}
}

func TestSomeFilesGetNoThumbnails(t *testing.T) {
	s := newSite(t, jobstest.SQLite, Options{})
	s.upload(1, "doc.pdf", "application/pdf", []byte("%PDF"))
	s.upload(2, "logo.svg", "image/svg+xml", []byte("<svg/>"))
	s.upload(3, "private.jpg", "image/jpeg", jpegOf(t, 200, 200))
	s.exec("UPDATE media_files SET visibility = 'private' WHERE id = 3")
	s.upload(4, "text.jpg", "image/jpeg", []byte("no picture at all"))
	for id := range 4 {
		payload, _ := json.Marshal(map[string]int{"mediaFileId": id + 1})
		if out, err := s.run(string(payload), 1); err != nil || out.Skipped == "" {
			t.Errorf("%d: %+v, %v", id+1, out, err)
		}
	}
	entries, err := os.ReadDir(s.uploads)
	if err != nil || len(entries) != 4 {
		t.Errorf("%d files, %v", len(entries), err)
	}
}

func TestNothingLeavesTheUploads(t *testing.T) {
	s := newSite(t, jobstest.SQLite, Options{})
	outside := filepath.Join(s.Root, "outside.jpg")
	if err := os.WriteFile(outside, jpegOf(t, 200, 200), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(s.uploads, "link.jpg")); err != nil {
		t.Fatal(err)
	}
	s.exec("INSERT INTO media_files (id, name, mime_type, url) VALUES (1, 'x', 'image/jpeg', '../../outside.jpg'), " +
		"(2, 'x', 'image/jpeg', 'link.jpg')")
	for _, payload := range []string{`{"mediaFileId":1}`, `{"mediaFileId":2}`} {
		if out, err := s.run(payload, 1); err == nil {
			t.Errorf("%s was processed: %+v", payload, out)
		}
	}
	// no such key will ever be
	for i, key := range []string{"../x.jpg", "/etc/x.jpg", `a\b.jpg`, "a//b.jpg", "./x.jpg", "a/../../x.jpg"} {
		s.exec(fmt.Sprintf("INSERT INTO media_files (id, name, mime_type, url) VALUES (%d, 'x', 'image/jpeg', '%s')",
			10+i, key))
		if out, err := s.run(fmt.Sprintf(`{"mediaFileId":%d}`, 10+i), 1); !jobs.IsPermanent(err) {
			t.Errorf("%s is tried again: %+v, %v", key, out, err)
		}
	}
}

// All media of a real CMS: what it made itself is kept, what is missing is made,
// what is lost is marked and does not stop the rest.
func TestRegenerateAndCheckARealCMS(t *testing.T) {
	jobstest.EachMySQL(t, testRegenerateAndCheckARealCMS)
}

func testRegenerateAndCheckARealCMS(t *testing.T, engine jobstest.Engine) {
	dump := jobstest.Fixture(t, "database.sql")
	db := jobstest.Open(t, engine)
	sql, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(string(sql)); err != nil {
		t.Fatal(err)
	}
	s := withHandler(t, &cms.Site{DB: db.DB, Root: t.TempDir(), Env: cms.Env{}}, Options{})
	if out, err := exec.Command("cp", "-r", jobstest.Fixture(t, "storage")+"/.",
		s.uploads).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	before, err := s.handler.Check(t.Context(), CheckOptions{}, func(int64, int64) {})
	if err != nil || len(before.Missing) != 15 || len(before.Lost) != 20 {
		t.Fatalf("before: %d missing, %d lost, %v", len(before.Missing), len(before.Lost), err)
	}
	var last Progress
	end, err := s.handler.Regenerate(t.Context(), RegenerateOptions{OnlyMissing: true}, func(p Progress) { last = p })
	if err != nil || end.Total != 35 || end.Done != 35 || end.Made != 15 || end.Failed != 20 || last.Last != end.Last {
		t.Fatalf("%+v, %v", end, err)
	}
	if s.size("news/1-150x150.jpg") != "(150,150)" || s.record(1).Format != "png" {
		t.Errorf("news/1.jpg, which is a PNG: %s, %+v", s.size("news/1-150x150.jpg"), s.record(1))
	}
	end, err = s.handler.Regenerate(t.Context(), RegenerateOptions{OnlyMissing: true, Filter: cms.MediaFilter{
		After: "10"}}, func(Progress) {})
	if err != nil || end.Total != 25 || end.Made != 0 {
		t.Errorf("again from 10 on: %+v, %v", end, err)
	}
	s.write("news/old-150x150.jpg", jpegOf(t, 10, 10))
	s.write("news/2-77x77.jpg", jpegOf(t, 10, 10))
	after, err := s.handler.Check(t.Context(), CheckOptions{Remove: true}, func(int64, int64) {})
	if err != nil || len(after.Missing) != 0 || after.Removed != 1 || s.size("news/old-150x150.jpg") != "" ||
		s.size("news/2-77x77.jpg") == "" {
		t.Errorf("after: %+v, %v", after, err)
	}
}
