package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// A plain Laravel: what a CMS would need is off and said so, another program's
// sitemap stays, and tables that the configuration names make a map.
func TestAPlainLaravel(t *testing.T) {
	t.Parallel()
	db := jobstest.Open(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, email TEXT, password TEXT)",
		// spatie/laravel-settings
		`CREATE TABLE settings (id INTEGER PRIMARY KEY, "group" TEXT, name TEXT, payload TEXT)`,
		"CREATE TABLE languages (id INTEGER PRIMARY KEY, code TEXT)",
		"CREATE TABLE articles (id INTEGER PRIMARY KEY, slug TEXT, section TEXT, is_active BOOLEAN, published_at TEXT, " +
			"deleted_at TEXT, created_at TEXT, updated_at TEXT)",
		`INSERT INTO articles VALUES (1, 'first one', 'news', 1, '2026-01-01 00:00:00', NULL, '2026-01-01 00:00:00',
			'2026-01-02 00:00:00'),
			(2, 'off', 'news', 0, '2026-01-01 00:00:00', NULL, NULL, NULL), (3, 'later', 'news', 1,
			'2999-01-01 00:00:00', NULL, NULL, NULL),
			(4, 'deleted', 'news', 1, '2026-01-01 00:00:00', '2026-02-01 00:00:00', NULL, NULL), (5, '', 'news', 1,
			'2026-01-01 00:00:00', NULL, NULL, NULL),
			(6, 'no-date', 'news', 1, NULL, NULL, NULL, NULL), (7, 'bài-7', 'tech', 1, '2026-01-01 00:00:00', NULL,
			NULL, NULL)`,
	} {
		db.MustExec(statement)
	}
	file := jobstest.SQLiteFile(db.DSN)
	dir := t.TempDir()
	for name, text := range map[string]string{".env": "DB_CONNECTION=sqlite\nDB_DATABASE=" + file +
		"\nAPP_URL=https://plain.example\n", "public/index.php": "", "storage/logs/x.log": ""} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	types := call(t, nil, "--cms", dir, "types")
	want(t, types, 0, "mail.send", "backup.generate", "logs.cleanup", "cache.clear")
	for _, off := range []string{"sitemap.generate", "media.processImage", "content.publish"} {
		if strings.Contains(types.out, off) {
			t.Errorf("%s is offered:\n%s", off, types.out)
		}
	}
	want(t, call(t, nil, "--cms", dir, "types", "--all"), 0, "sitemap.generate", "media.processImage")
	if listed := call(t, nil, "--cms", dir, "schedule", "list"); strings.Contains(listed.out, "sitemap.generate") ||
		!strings.Contains(listed.out, "backup.generate") {
		t.Errorf("the timetable has\n%s", listed.out)
	}
	want(t, call(t, nil, "--cms", dir, "doctor"), 0, "off here: sitemap.generate: the database has no tables of a "+
		"CMS's content")

	for _, words := range [][]string{{"sitemap", "generate"}, {"media", "check"}, {"media", "regenerate"}} {
		want(t, call(t, nil, append([]string{"--cms", dir}, words...)...), exitUsage, "is off here: the database has no ta")
	}
	config := filepath.Join(dir, "cmsjobs.yaml")
	if err := os.WriteFile(config, []byte("cms:\n  dir: "+dir+"\n  models:\n  - {name: articles, path: "+
		"'blog/{section}/{slug}', "+
		"where: {is_active: 1}, visible_column: published_at}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	preview := call(t, nil, "--config", config, "sitemap", "generate", "--dry-run")
	want(t, preview, 0, "The sitemap would have 2 addresses; 1 row is left out. Nothing was written.", "https://plain.example/blog/news/first%20one", "articles", "5: a column of its path")
	if _, err := os.Stat(filepath.Join(dir, "public", "sitemap.xml")); !os.IsNotExist(err) {
		t.Errorf("a dry run writes: %v", err)
	}
	want(t, call(t, nil, "--config", config, "sitemap", "generate"), 0, "with 2 addresses")
	text, err := os.ReadFile(filepath.Join(dir, "public", "sitemap.xml"))
	if err != nil || strings.Count(string(text), "<loc>") != 2 || !strings.Contains(string(text),
		"https://plain.example/blog/tech/b%C3%A0i-7") || !strings.Contains(string(text), "2026-01-02") {
		t.Errorf("%s, %v", text, err)
	}
	want(t, call(t, nil, "--config", config, "sitemap", "check"), 0)
	want(t, call(t, nil, "--config", config, "sitemap", "generate"), 0, "nothing changed")
	db.MustExec("UPDATE articles SET slug = 'renamed' WHERE id = 7")
	want(t, call(t, nil, "--config", config, "sitemap", "generate"), 0, "with 2 addresses")
}
