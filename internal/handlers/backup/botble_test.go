package backup

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/botble"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

func saigon(context.Context) (*time.Location, error) { return time.FixedZone("", 7*3600), nil }

func TestTheCMSFindsItsOwnLayout(t *testing.T) { jobstest.EachMySQL(t, testTheCMSFindsItsOwnLayout) }

func testTheCMSFindsItsOwnLayout(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine)
	s.MustExec("CREATE VIEW titles AS SELECT title FROM posts")
	s.MustExec("CREATE PROCEDURE p() SELECT 1")
	dir := t.TempDir()
	const others = `{"2020-01-01-00-00-00":{"name":"by hand / ü","description":null,"date":"2020-01-01 00:00:00"}}`
	if err := os.WriteFile(filepath.Join(dir, "backup.json"), []byte(others), 0o644); err != nil {
		t.Fatal(err)
	}
	s.c.Destinations["cms"] = botble.New(local(t, dir), "storage", saigon, true)
	h := s.handler(t)
	report, _ := s.backup(t, h)
	const key = "2026-03-01-10-00-00"
	sql := unzip(t, filepath.Join(dir, key, "database-"+key+".zip"))
	main, ok := sql["database-"+key+".sql"]
	if !ok || len(sql) != 1 || strings.Contains(main, "DELIMITER") || !strings.Contains(main, "INSERT INTO `posts`") {
		t.Errorf("the database's zip holds %d files", len(sql))
	}
	files := unzip(t, filepath.Join(dir, key, "storage-"+key+".zip"))
	if len(files) != 3 || files["a.txt"] != "hello" || len(files["news/ü 1.jpg"]) != 100_000 {
		t.Errorf("the files' zip holds %d files", len(files))
	}
	if got := unzip(t, filepath.Join(dir, key, "routines-"+key+".zip")); len(got) != 1 {
		t.Errorf("routines: %v", got)
	}
	index, err := os.ReadFile(filepath.Join(dir, "backup.json"))
	want := "{\n    \"2020-01-01-00-00-00\": {\n        \"name\": \"by hand / ü\",\n        \"description\": null,\n " +
		"       \"date\": \"2020-01-01 00:00:00\"\n    },\n    \"" +
		key + "\": {\n        \"name\": \"cmsjobs 2026-03-01 10:00:00\",\n        \"description\": \"cmsjobs " +
		report.ID + "\",\n        \"date\": \"2026-03-01 10:00:00\"\n    }\n}\n"
	if string(index) != want || err != nil {
		t.Errorf("backup.json is %s, %v", index, err)
	}
	if info, err := os.Stat(filepath.Join(dir, key, "database-"+key+".zip")); err != nil ||
		info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	restoresByThePlainClient(t, engine, main)
	botbleIsThinnedOut(t, s, h, dir, key)
}

func restoresByThePlainClient(t *testing.T, engine jobstest.Engine, sql string) {
	t.Helper()
	to := jobstest.Open(t, engine)
	c, err := mysql.ParseDSN(to.DSN)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(c.Addr, ":")
	cmd := exec.Command(plainClient(t, engine), "--no-defaults", "-h", host, "-P", port, "-u", c.User, c.DBName)
	cmd.Stdin = strings.NewReader(sql)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var n int
	if err := to.Get(&n, "SELECT COUNT(*) FROM titles"); err != nil || n != 300 {
		t.Errorf("%d rows in the view, %v", n, err)
	}
}

func botbleIsThinnedOut(t *testing.T, s *site, h *Handler, dir, first string) {
	t.Helper()
	h.c.Options.Retention = retention.Rules{Keep: 1, MinAge: -1}
	s.backup(t, h)
	if _, err := os.Stat(filepath.Join(dir, first, "database-"+first+".zip")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the older one stays: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "backup.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index map[string]struct{ Name string }
	if err := json.Unmarshal(data, &index); err != nil || len(index) != 2 ||
		index["2020-01-01-00-00-00"].Name != "by hand / ü" {
		t.Errorf("backup.json is %s, %v", data, err)
	}
}

func TestAPartialBackupIsNotNamedToTheCMS(t *testing.T) {
	jobstest.EachMySQL(t, testAPartialBackupIsNotNamedToTheCMS)
}

func testAPartialBackupIsNotNamedToTheCMS(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine)
	dir := t.TempDir()
	s.c.Destinations = map[string]storage.Store{"cms": botble.New(local(t, dir), "storage", saigon, false)}
	s.c.DSN = "nobody@tcp(127.0.0.1:1)/none"
	report, err := s.handler(t).Create(t.Context(), Request{Database: true, Files: true}, nil)
	if !errors.Is(err, ErrPartial) || report.Status != manifest.Partial {
		t.Errorf("%v, %v", report.Status, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "backup.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("backup.json: %v", err)
	}
}

func TestABrokenStreamLeavesNothingForTheCMS(t *testing.T) {
	jobstest.EachMySQL(t, testABrokenStreamLeavesNothingForTheCMS)
}

func testABrokenStreamLeavesNothingForTheCMS(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine)
	dir := t.TempDir()
	b := botble.New(local(t, dir), "storage", saigon, false)
	_, stored := s.backup(t, s.handler(t))
	whole, err := os.ReadFile(filepath.Join(s.dest, stored.Archive))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []int{2, 3, 10} {
		if err := b.Put(t.Context(), stored.Archive, strings.NewReader(string(whole[:len(whole)-len(whole)/part])),
			storage.PutOptions{}); err == nil {
			t.Error("a torn stream is taken")
		}
	}
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.c.Destinations["cms"] = b
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	s.c.Options.Recipients = []age.Recipient{identity.Recipient()}
	if _, err := New(s.c); err == nil {
		t.Error("an encrypted backup lies beside its plain copy")
	}
}

func unzip(t *testing.T, name string) map[string]string {
	t.Helper()
	z, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(data)
	}
	return files
}
