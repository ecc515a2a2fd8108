package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// TestAPostIsRestoredOverHTTP deletes a post of a site and has the running service bring
// it back: the plan, refusals, the job and its worker, on MariaDB and on SQLite.
func TestAPostIsRestoredOverHTTP(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		dir, db := sampleSite(t)
		restorePostOverHTTP(t, dir, db)
	})
	t.Run("mariadb", func(t *testing.T) {
		database := jobstest.Open(t, jobstest.MariaDB)
		config, dir := database.DSN, filepath.Join(t.TempDir(), "site")
		want(t, call(t, nil, "--dsn", mysqlURL(t, config), "demo", "--seed-only", "--dir", dir), 0)
		restorePostOverHTTP(t, dir, database.DB)
	})
}

func restorePostOverHTTP(t *testing.T, dir string, db *sqlx.DB) {
	s := startService(t, "schedule: {enabled: false}\nbackup: {verify: read, free_space: 1MiB}\n", "--cms="+dir)
	admin, operator := bearer(s.token("admin")), bearer(s.token("operate,enqueue,read"))
	s.command("backup", "create")
	var list struct{ Items []struct{ ID string } }
	s.ask(200, "GET", "/api/v1/backups", "", operator, &list)
	if len(list.Items) != 1 {
		t.Fatalf("%+v", list)
	}
	post := func(n string) string { return "/api/v1/backups/" + list.Items[0].ID + "/posts/" + n }
	var name, slug string
	read := func() (posts int) {
		t.Helper()
		if err := db.QueryRow("SELECT COUNT(*) FROM posts").Scan(&posts); err != nil {
			t.Fatal(err)
		}
		_ = db.QueryRow("SELECT name FROM posts WHERE id = 12").Scan(&name) // none where it is deleted
		_ = db.QueryRow("SELECT prefix FROM slugs WHERE reference_id = 12 AND reference_type LIKE '%Post'").Scan(&slug)
		return posts
	}
	before := read()
	title := name
	for _, statement := range []string{"DELETE FROM posts WHERE id = 12",
		"DELETE FROM slugs WHERE reference_id = 12 AND reference_type LIKE '%Post'",
		"UPDATE posts SET name = 'today' WHERE id = 13"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	var plan struct {
		Backup, Confirm string
		Post            int64
	}
	s.ask(200, "GET", post("12"), "", admin, &plan)
	if plan.Post != 12 || plan.Backup != list.Items[0].ID || !strings.HasPrefix(plan.Confirm, "post-12-") {
		t.Fatalf("%+v", plan)
	}
	confirm := fmt.Sprintf(`{"confirm":%q}`, plan.Confirm)
	s.ask(403, "GET", post("12"), "", operator, nil)
	s.ask(403, "POST", post("12"), confirm, operator, nil)
	s.ask(422, "POST", post("12"), `{"confirm":"post-12-000000"}`, admin, nil)
	s.ask(422, "POST", post("13"), confirm, admin, nil)
	s.ask(400, "POST", post("0"), confirm, admin, nil)
	s.ask(404, "POST", "/api/v1/backups/none@local/posts/12", confirm, admin, nil)
	if read() != before-1 {
		t.Fatal("a refused restore changed the site")
	}
	name, slug = "", ""
	var job struct{ ID string }
	s.ask(201, "POST", post("12"), confirm, admin, &job)
	ended := s.awaitEnd(job.ID, admin)
	var result struct {
		Title    string
		Restored bool
	}
	if err := json.Unmarshal(ended.Result, &result); err != nil || ended.Status != "completed" || !result.Restored ||
		result.Title != title || title == "" {
		t.Fatalf("%+v %s, %v", ended, ended.Result, err)
	}
	if posts := read(); posts != before || name != title || slug == "" {
		t.Errorf("%d posts of %d, %q of %q, %q", posts, before, name, title, slug)
	}
	if err := db.QueryRow("SELECT name FROM posts WHERE id = 13").Scan(&name); err != nil || name != "today" {
		t.Errorf("another post is %q, %v", name, err)
	}

	s.ask(200, "GET", post("999999"), "", admin, &plan)
	s.ask(201, "POST", post("999999"), fmt.Sprintf(`{"confirm":%q}`, plan.Confirm), admin, &job)
	if ended := s.awaitEnd(job.ID, admin); ended.Status != "failed" || !strings.Contains(ended.Error, "no such post") {
		t.Errorf("a post that is not in the backup: %+v", ended)
	}
	if _, err := os.Stat(filepath.Join(dir, "storage/app/cmsjobs-backups/repository/format.txt")); err != nil {
		t.Errorf("the files are in no repository: %v", err)
	}
}

// mysqlURL is the driver's DSN as the command line takes it.
func mysqlURL(t *testing.T, dsn string) string {
	t.Helper()
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u := url.URL{Scheme: "mysql", Host: c.Addr, Path: "/" + c.DBName, User: url.UserPassword(c.User, c.Passwd)}
	if c.Passwd == "" {
		u.User = url.User(c.User)
	}
	return u.String()
}

// TestTheDatabaseOfAnySecondByTheCommandLine archives with the running service, and
// restores a second before an accident into a new database as a shell would.
func TestTheDatabaseOfAnySecondByTheCommandLine(t *testing.T) {
	t.Parallel()
	server := jobstest.Own(t, jobstest.MariaDB, "--log-bin=log", "--server-id=1", "--binlog-format=ROW",
		"--sync-binlog=0")
	root := sqlx.NewDb(server.RootMySQL(t), "mysql")
	root.MustExec("CREATE DATABASE site CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci")
	dir, dsn := filepath.Join(t.TempDir(), "site"), "--dsn="+mysqlURL(t, server.MySQLDSN("site"))
	want(t, call(t, nil, dsn, "demo", "--seed-only", "--dir", dir), 0)
	s := startService(t, "schedule: {enabled: false}\nbackup: {verify: read, free_space: 1MiB, log: 'on', log_every: 5s}\n",
		"--cms="+dir)
	s.command("backup", "create", "--only-database")
	var reach struct {
		Items []struct{ Destination string }
	}
	reader, late := bearer(s.token("read")), time.Now().Add(time.Minute)
	for ; len(reach.Items) == 0 && time.Now().Before(late); time.Sleep(50 * time.Millisecond) {
		s.ask(200, "GET", "/api/v1/backups/moments", "", reader, &reach)
	}
	if len(reach.Items) != 1 || reach.Items[0].Destination != "local" {
		t.Fatalf("the service archives nothing: %+v", reach)
	}
	second := func() (unix int64) {
		t.Helper()
		for begun := int64(0); unix == begun || begun == 0; {
			if begun == 0 {
				begun = unix
			}
			if err := root.Get(&unix, "SELECT UNIX_TIMESTAMP()"); err != nil {
				t.Fatal(err)
			}
		}
		return unix - 1
	}
	root.MustExec("UPDATE site.posts SET name = 'the last good title' WHERE id = 12")
	at := time.Unix(second(), 0).UTC().Format(time.RFC3339)
	root.MustExec("DROP TABLE site.posts")

	command := func(more ...string) result {
		t.Helper()
		return call(t, nil, append([]string{"--cms", dir, "--set", "backup.free_space=1MiB", "--set", "backup.verify=read",
			"backup", "restore", "--at", at, "--into", "found_again"}, more...)...)
	}
	plan := command("--dry-run")
	want(t, plan, 0, "into the database found_again", "transaction", "The database found_again is made for it", "To do it: --confirm ")
	word := regexp.MustCompile(`--confirm (\S+)`).FindStringSubmatch(plan.out)[1]
	want(t, command(), 2, "nothing was changed", word)
	want(t, command("--confirm", "another"), 1, "not confirmed")
	var title string
	if err := root.Get(&title, "SELECT name FROM found_again.posts WHERE id = 12"); err == nil {
		t.Fatal("without the word the database was made")
	}
	want(t, command("--confirm", word), 0, "found_again")
	if err := root.Get(&title, "SELECT name FROM found_again.posts WHERE id = 12"); err != nil ||
		title != "the last good title" {
		t.Errorf("the post is %q, %v", title, err)
	}
	want(t, command("--confirm", word), 1, "exists")
	want(t, call(t, nil, "--cms", dir, "backup", "moments"), 0, "local")
	want(t, call(t, nil, "--cms", dir, "backup", "list"), 0, "archived log at local: ")
	momentOverHTTP(t, s, root, at)
}

// momentOverHTTP restores a moment to a new database as a program would.
func momentOverHTTP(t *testing.T, s *service, root *sqlx.DB, at string) {
	t.Helper()
	admin, operator := bearer(s.token("admin")), bearer(s.token("operate,enqueue,read"))
	address, into := "/api/v1/backups/moments/"+at, "?into=found_over_http"
	var plan struct {
		At                    time.Time
		Into, Confirm, Backup string
		Bytes, Transactions   int64
		Uncounted             bool
	}
	s.ask(200, "GET", address+into, "", admin, &plan)
	if plan.At.Format(time.RFC3339) != at || plan.Into != "found_over_http" || plan.Backup == "" || plan.Bytes == 0 ||
		!strings.HasPrefix(plan.Confirm, "moment-") || plan.Transactions == 0 && !plan.Uncounted {
		t.Fatalf("%+v", plan)
	}
	body := func(into, word string) string { return fmt.Sprintf(`{"into":%q,"confirm":%q}`, into, word) }
	s.ask(403, "GET", address+into, "", operator, nil)
	s.ask(403, "POST", address, body(plan.Into, plan.Confirm), operator, nil)
	s.ask(422, "POST", address, body(plan.Into, "moment-000000"), admin, nil)
	s.ask(422, "POST", address, body("", plan.Confirm), admin, nil) // the site was not what was planned
	s.ask(422, "GET", "/api/v1/backups/moments/yesterday", "", admin, nil)
	s.ask(400, "GET", "/api/v1/backups/moments/"+strings.Repeat("9", 65), "", admin, nil)
	s.ask(409, "GET", "/api/v1/backups/moments/2001-01-01T00:00:00Z", "", admin, nil)
	var job struct{ ID string }
	s.ask(201, "POST", address, body(plan.Into, plan.Confirm), admin, &job)
	ended := s.awaitEnd(job.ID, admin)
	var title string
	if err := root.Get(&title, "SELECT name FROM found_over_http.posts WHERE id = 12"); err != nil ||
		ended.Status != "completed" || title != "the last good title" {
		t.Errorf("%s %s: the post is %q, %v", ended.Status, ended.Error, title, err)
	}
}
