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
)

// runningProgram is the program itself beside a sample site that has one backup, and a
// worker in it.
func runningProgram(t *testing.T) (base, dir string, db *sqlx.DB) {
	t.Helper()
	binary := built(t, "../../cmd/cmsjobs")
	dir = filepath.Join(t.TempDir(), "site")
	environ := append(os.Environ(), "CMSJOBS_HTTP_LISTEN=127.0.0.1:0", "CMSJOBS_HTTP_ADMIN_PASSWORD=right",
		"CMSJOBS_LOG_FORMAT=json", "CMSJOBS_SCHEDULE_ENABLED=false", "CMSJOBS_BACKUP_VERIFY=read",
		"CMSJOBS_BACKUP_FREE_SPACE=1MiB")
	command := func(words ...string) *exec.Cmd {
		c := exec.Command(binary, words...)
		c.Env = environ
		return c
	}
	for _, words := range [][]string{{"demo", "--seed-only", "--dir", dir}, {"--cms", dir, "backup", "create"}} {
		if out, err := command(words...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", words, err, out)
		}
	}
	db, err := sqlx.Open("sqlite", "file:"+filepath.Join(dir, "database", "database.sqlite")+
		"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return runs(t, command("--cms", dir, "run")), dir, db
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
