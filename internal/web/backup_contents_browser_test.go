package web_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// runningProgram is the program itself beside a sample site that has one backup, and a
// worker in it.
func runningProgram(t *testing.T) (base, dir string, db *sqlx.DB) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "site")
	base = runProgram(t, dir)
	db, err := sqlx.Open("sqlite", "file:"+filepath.Join(dir, "database", "database.sqlite")+
		"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return base, dir, db
}

// runProgram makes a sample site, with flags that say where its database is, and a backup
// of it, and runs the program beside it.
func runProgram(t *testing.T, dir string, flags ...string) (base string) {
	t.Helper()
	binary := built(t, "../../cmd/cmsjobs")
	environ := append(os.Environ(), "CMSJOBS_HTTP_LISTEN=127.0.0.1:0", "CMSJOBS_HTTP_ADMIN_PASSWORD=right",
		"CMSJOBS_LOG_FORMAT=json", "CMSJOBS_SCHEDULE_ENABLED=false", "CMSJOBS_BACKUP_VERIFY=read",
		"CMSJOBS_BACKUP_FREE_SPACE=1MiB")
	command := func(words ...string) *exec.Cmd {
		c := exec.Command(binary, words...)
		c.Env = environ
		return c
	}
	for _, words := range [][]string{append(flags, "demo", "--seed-only", "--dir", dir),
		{"--cms", dir, "backup", "create"}} {
		if out, err := command(words...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", words, err, out)
		}
	}
	return runs(t, command("--cms", dir, "run"))
}

// built is a program of this module.
func built(t *testing.T, folder string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), filepath.Base(folder))
	if out, err := exec.Command("go", "build", "-o", path, folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// runs starts the service and returns its address. It is stopped when the test ends.
func runs(t *testing.T, run *exec.Cmd) (base string) {
	t.Helper()
	log, err := run.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			var line struct{ Msg, URL string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "admin page" {
				address <- strings.TrimSuffix(line.URL, "/")
			}
		}
	}()
	t.Cleanup(func() {
		_ = run.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(patience):
			_ = run.Process.Kill()
		}
		_ = run.Wait()
	})
	select {
	case base = <-address:
	case <-ended:
		t.Fatal("the program ended at once")
	case <-time.After(patience):
		t.Fatal("the program names no address")
	}
	return base
}

// TestAPersonLooksIntoABackupAndRestoresFromIt does with a browser and the program itself
// what an editor does who deleted a post: tables, folders, one file, one post. First in
// English, then in Vietnamese.
func TestAPersonLooksIntoABackupAndRestoresFromIt(t *testing.T) {
	var dir string
	var db *sqlx.DB
	b := newBrowserAt(t, func() (base string) {
		base, dir, db = runningProgram(t)
		return base
	})
	downloads := t.TempDir()
	b.within(func(ctx context.Context) error {
		return b.page.call(ctx, "Page.setDownloadBehavior", map[string]any{"behavior": "allow",
			"downloadPath": downloads}, nil)
	})
	b.signIn("admin")
	for _, language := range []struct{ code, title, tables, rows, fits, done string }{
		{"en", "Contents of a backup", "Table", "Rows", "Files that fit a pattern", "Done in"},
		{"vi", "Nội dung một bản sao lưu", "Bảng", "Số dòng", "Các tệp khớp với mẫu", "Hoàn thành sau"},
	} {
		t.Run(language.code, func(t *testing.T) {
			b.open("/admin/backups")
			if eval[string](b, `document.documentElement.lang`) != language.code {
				b.press(fmt.Sprintf("button[name=lang][value=%s]", language.code))
			}
			b.until(fmt.Sprintf(`document.documentElement.lang === %q`, language.code))
			b.until(`!!document.querySelector("td.acts a[href$='/contents']")`)
			b.press("td.acts a[href$='/contents']")
			for _, text := range []string{language.title, language.tables, language.rows, language.fits, "posts"} {
				b.sees(text)
			}
			photos := `[...document.querySelectorAll("th a[href*='files=']")].find(a => a.innerText.includes("photos"))`
			if rows := eval[string](b, `[...document.querySelectorAll("tr")].find(r => r.cells[0].innerText === "posts")
				.cells[1].innerText`); rows != "300" {
				t.Errorf("posts have %q rows", rows)
			}
			b.until(`!!(window.before = true) && !!` + photos + ` && (` + photos + `.click(), true)`)
			b.until(`window.before !== true && document.readyState === "complete"`)
			b.sees("harbour-1.jpg")
			b.click(`a[download][href*='harbour-1.jpg']`)
			got := downloaded(t, filepath.Join(downloads, "harbour-1.jpg"))
			want, err := os.ReadFile(filepath.Join(dir, "public", "storage", "photos", "harbour-1.jpg"))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes came, and %d are in the site, %v", len(got), len(want), err)
			}
			restoreAPost(t, b, db, language.done)
		})
	}
	b.quietConsole()
}

// downloaded waits for a file, and takes it away for the next time.
func downloaded(t *testing.T, name string) []byte {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		content, err := os.ReadFile(name) // it has its name once it is whole
		if err == nil {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
			return content
		}
	}
	t.Fatalf("%s was not downloaded", name)
	return nil
}

func restoreAPost(t *testing.T, b *browser, db *sqlx.DB, done string) {
	t.Helper()
	var name string
	if err := db.Get(&name, "SELECT name FROM posts WHERE id = 12"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("DELETE FROM posts WHERE id = 12"); err != nil {
		t.Fatal(err)
	}
	b.fill("#post", "12")
	b.press("form[action$='/post'] button")
	b.fill("#typed", "post-12-wrong")
	b.press("#yes")
	b.until(`!!document.querySelector(".confirm [role=alert]")`) // the word is another one
	b.fill("#typed", eval[string](b, `document.querySelector("label[for=typed]").innerText.match(/post-12-[0-9a-f]+/)[0]`))
	b.press("#yes")
	b.sees(done)
	var now string
	if err := db.Get(&now, "SELECT name FROM posts WHERE id = 12"); err != nil || now != name {
		t.Errorf("the post is %q, was %q, %v", now, name, err)
	}
}

// TestAPersonRestoresTheDatabaseToAMoment drops a table of a site on MariaDB and has the
// page restore the second before, with a browser and the program itself: first in English,
// then in Vietnamese, without scripts.
func TestAPersonRestoresTheDatabaseToAMoment(t *testing.T) {
	server := jobstest.OwnMariaDB(t, "--log-bin=log", "--server-id=1", "--binlog-format=ROW", "--sync-binlog=0")
	if _, err := server.RootMySQL(t).Exec("CREATE DATABASE site"); err != nil {
		t.Fatal(err)
	}
	db, err := sqlx.Open("mysql", server.MySQLDSN("site"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	b := newBrowserAt(t, func() string {
		return runProgram(t, filepath.Join(t.TempDir(), "site"), "--dsn", fmt.Sprintf("mysql://root@127.0.0.1:%d/site",
			server.Port))
	})
	b.signIn("admin")
	for i, language := range []struct{ code, title, replaces, done string }{
		{"en", "Restore to a moment", "It replaces the site's tables at once", "Done in"},
		{"vi", "Khôi phục về một thời điểm", "Các bảng của trang được thay cùng một lúc", "Hoàn thành sau"},
	} {
		t.Run(language.code, func(t *testing.T) {
			b.open("/admin/backups/moment")
			if eval[string](b, `document.documentElement.lang`) != language.code {
				b.press(fmt.Sprintf("button[name=lang][value=%s]", language.code))
			}
			b.sees(language.title)
			b.scripts(language.code == "en")
			b.open("/admin/backups/moment")
			wanted := fmt.Sprintf("of the second %d", i)
			if _, err := db.Exec("UPDATE posts SET name = ? WHERE id = 12", wanted); err != nil {
				t.Fatal(err)
			}
			at := endOfSecond(t, db)
			if _, err := db.Exec("DROP TABLE posts"); err != nil {
				t.Fatal(err)
			}
			eval[bool](b, fmt.Sprintf(`(document.querySelector("#at").value = %q, true)`,
				at.UTC().Format("2006-01-02T15:04:05")))
			b.press("form[action$='/moment'] button")
			b.sees(language.replaces)
			b.sees(at.UTC().Format(time.DateTime))
			b.fill("#typed", "moment-wrong")
			b.press("#yes")
			b.until(`!!document.querySelector(".confirm [role=alert]")`)
			b.fill("#typed", eval[string](b,
				`document.querySelector("label[for=typed]").innerText.match(/moment-[0-9a-f]+/)[0]`))
			b.press("#yes")
			b.scripts(true) // they follow the job
			b.open(eval[string](b, `location.pathname + location.search`))
			b.sees(language.done)
			var now string
			if err := db.Get(&now, "SELECT name FROM posts WHERE id = 12"); err != nil || now != wanted {
				t.Errorf("the post is %q, was %q, %v", now, wanted, err)
			}
			var audited int
			if err := db.Get(&audited, "SELECT COUNT(*) FROM cmsjobs_audit WHERE action = 'backups.restoreMoment'"); err != nil || audited < i+1 {
				t.Errorf("%d entries in the audit log, %v", audited, err)
			}
		})
	}
	b.quietConsole()
}

// endOfSecond waits for the end of the server's second and says which it was.
func endOfSecond(t *testing.T, db *sqlx.DB) time.Time {
	t.Helper()
	var begun, now int64
	for begun == now {
		if err := db.Get(&now, "SELECT UNIX_TIMESTAMP()"); err != nil {
			t.Fatal(err)
		}
		if begun == 0 {
			begun = now
		}
	}
	return time.Unix(begun, 0)
}
