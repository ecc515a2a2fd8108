package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/doctor"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Beside each application the queue, mail, cache, logs and backups work, and the
// backup has the files that people brought there.
func TestEachApplicationGetsItsJobs(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"Laravel": {"composer.json": `{"require":{"laravel/framework":"^12"}}`, "public/index.php": "",
			"storage/app/public/1/a.jpg": "a", "storage/app/private/b": "b"},
		"October CMS": {"composer.json": `{"require":{"october/rain":"^3"}}`, "index.php": "",
			"storage/app/uploads/public/a": "a", "storage/app/media/b": "b"},
		"Winter CMS": {"composer.json": `{"require":{"winter/storm":"^1.2"}}`, "index.php": "",
			"storage/app/uploads/a": "a", "storage/app/media/b": "b"},
		"Statamic": {"composer.json": `{"require":{"statamic/cms":"^5"}}`, "public/assets/a": "a",
			"content/collections/blog/1.md": "b"},
		"Filament": {"composer.json": `{"require":{"filament/filament":"^4","laravel/framework":"^12"}}`,
			"public/index.php": "", "storage/app/public/a": "a", "storage/app/private/b": "b"},
		"Bagisto": {"composer.json": `{"name":"bagisto/bagisto","require":{"laravel/framework":"^11"}}`,
			"public/index.php": "", "storage/app/public/a": "a", "storage/app/public/b": "b"},
	} {
		t.Run(name, func(t *testing.T) {
			db := jobstest.Open(t, jobstest.SQLite)
			if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
				t.Fatal(err)
			}
			file := jobstest.SQLiteFile(db.DSN)
			dir := t.TempDir()
			files[".env"] = "DB_CONNECTION=sqlite\nDB_DATABASE=" + file + "\nAPP_URL=https://x.example\nMAIL_MAILER=log\n" +
				"MAIL_FROM_ADDRESS=me@x.example\n"
			files["storage/logs/laravel-2020-01-01.log"], files["storage/framework/cache/data/x"] = "old", ""
			for name, text := range files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			at := []string{"--cms", dir, "--set", "backup.free_space=1MiB"}
			run := func(words ...string) result { return call(t, nil, append(at[:len(at):len(at)], words...)...) }
			want(t, run("enqueue", "mail.send", `{"to":"you@x.example","subject":"Hello","body":"Hi"}`), 0)
			want(t, run("enqueue", "cache.clear"), 0)
			want(t, run("enqueue", "logs.cleanup"), 0)
			want(t, run("work", "--stop-when-empty"), 0)
			counts := run("jobs", "list", "--status", "completed", "--json")
			for _, jobType := range []string{"mail.send", "cache.clear", "logs.cleanup"} {
				want(t, counts, 0, `"`+jobType+`"`)
			}
			made := answer[struct {
				Status string
				Files  int
			}](t, run("backup", "create", "--json"))
			if made.Status != "complete" || made.Files != 2 {
				t.Errorf("the backup is %+v", made)
			}
			if _, err := os.Stat(filepath.Join(dir, "storage", "app", "backup")); !os.IsNotExist(err) {
				t.Errorf("there is a backup in the form of a CMS that is not here: %v", err)
			}
			for _, f := range answer[[]doctor.Finding](t, run("--json", "doctor")) {
				if f.Check == "CMS" && (f.Status != doctor.OK || !strings.Contains(f.What, "this is "+name)) ||
					f.Check == "folders" && f.Status != doctor.OK {
					t.Errorf("doctor says %+v", f)
				}
			}
		})
	}
}
