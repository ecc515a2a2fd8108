package web_test

import (
	"encoding/json"
	"errors"
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

// otherProgram is a program of somebody else that runs a type beside the service.
type otherProgram struct {
	*browser
	jobType string
	start   func() *exec.Cmd
	gate    string       // the folder with the files that its jobs wait for
	expired func() error // lets the lease of a dead worker end now
}

// TestTypesOfOtherProgramsInABrowser uses a type written in JavaScript and one written in
// Go as a person does: enqueues a job by the type's form, watches its progress, reads
// why a job failed, retries it, and loses nothing when the program is killed.
func TestTypesOfOtherProgramsInABrowser(t *testing.T) {
	sdk := compiledSDK(t)
	var file, token string
	b := newBrowserAt(t, func() (base string) {
		base, file, token = besidePrograms(t)
		return base
	})
	db, err := sqlx.Open("sqlite", jobstest.SQLiteDSN(file))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	inGo := built(t, "./testdata/program")
	b.signIn("admin")
	for _, p := range []otherProgram{
		{jobType: "shop.resize", expired: func() error { return nil }, start: func() *exec.Cmd {
			c := exec.Command("node", "testdata/program/main.mjs")
			c.Env = append(os.Environ(), "SDK="+filepath.Join(sdk, "index.js"), "CMSJOBS_URL="+b.base,
				"CMSJOBS_TOKEN="+token)
			return c
		}},
		{jobType: "shop.invoice", start: func() *exec.Cmd {
			c := exec.Command(inGo)
			c.Env = append(os.Environ(), "DSN="+jobstest.SQLiteDSN(file))
			return c
		}, expired: func() error {
			_, err := db.Exec("UPDATE jobs SET reserved_at = reserved_at - 3600 WHERE reserved_at IS NOT NULL")
			return err
		}},
	} {
		t.Run(p.jobType, func(t *testing.T) {
			p.browser, p.gate = &browser{t: t, page: b.page, base: b.base}, t.TempDir()
			p.isUsed(t)
		})
	}
	b.quietConsole()
}

// compiledSDK is sdk/js, compiled into a folder of this test: other packages compile theirs
// at the same time. It needs node and "npm ci" there.
func compiledSDK(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	compiler := exec.Command("./node_modules/.bin/tsc", "--outDir", dir)
	compiler.Dir = filepath.Join("..", "..", "sdk", "js")
	if out, err := compiler.CombinedOutput(); err != nil {
		jobstest.Skip(t, "run npm ci in sdk/js first: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// besidePrograms is the running service with an empty SQLite database, whose worker runs
// nothing, and a token for programs.
func besidePrograms(t *testing.T) (base, file, token string) {
	t.Helper()
	binary := built(t, "../../cmd/cmsjobs")
	dir := filepath.Join(t.TempDir(), "site")
	command := func(words ...string) *exec.Cmd {
		c := exec.Command(binary, words...)
		c.Env = append(os.Environ(), "CMSJOBS_HTTP_LISTEN=127.0.0.1:0", "CMSJOBS_HTTP_ADMIN_PASSWORD=right",
			"CMSJOBS_LOG_FORMAT=json", "CMSJOBS_SCHEDULE_ENABLED=false", "CMSJOBS_QUEUE_WORKER=false")
		return c
	}
	if out, err := command("demo", "--seed-only", "--dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := command("--cms", dir, "--json", "token", "create", "shop", "--scopes", "work").Output()
	var made struct{ Secret string }
	if err = errors.Join(err, json.Unmarshal(out, &made)); err != nil {
		t.Fatal(err)
	}
	base = runs(t, command("--cms", dir, "run"))
	return base, filepath.Join(dir, "database", "database.sqlite"), made.Secret
}

// isUsed walks through the life of a type.
func (p otherProgram) isUsed(t *testing.T) {
	running := p.run(t)
	job := p.enqueue(300)
	p.sees("half way")
	p.open(job)
	p.sees("begins 300")
	p.opens("300")
	p.ends("Completed")
	p.sees("bytes\t3000")

	job = p.enqueue(13)
	p.ends("Failed")
	p.sees("13 is refused")
	p.opens("repaired")
	p.opens("13")
	p.press("#again")
	p.open(job)
	p.ends("Completed")
	p.sees("bytes\t130")

	var waiting []string
	for _, number := range []int{99, 98, 97} {
		waiting = append(waiting, p.enqueue(number))
	}
	p.open(waiting[0])
	p.sees("half way")
	if err := running.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = running.Wait()
	if err := p.expired(); err != nil {
		t.Fatal(err)
	}
	for _, number := range []string{"99", "98", "97"} {
		p.opens(number)
	}
	p.run(t)
	for i, job := range waiting {
		p.open(job)
		p.ends("Completed")
		p.sees(fmt.Sprintf("bytes\t%d", 990-10*i))
	}
}

// run starts the program, which is killed at the end of the test.
func (p otherProgram) run(t *testing.T) *exec.Cmd {
	t.Helper()
	c := p.start()
	c.Env = append(c.Env, "GATE="+p.gate)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

// enqueue fills in the form of the type, which is there as soon as the service knows it,
// and returns the path of the job's page.
func (p otherProgram) enqueue(number int) (path string) {
	p.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		p.open("/admin/enqueue")
		if eval[bool](p.browser, fmt.Sprintf(`[...document.querySelectorAll("#type option")].some(o => o.value === %q)`,
			p.jobType)) {
			break
		}
		if time.Now().After(end) {
			p.t.Fatalf("the page has no form of %s\n%s", p.jobType, p.main())
		}
	}
	p.open("/admin/enqueue?type=" + p.jobType)
	p.fill("#p-number", fmt.Sprint(number))
	p.press("form.card button.main")
	path = eval[string](p.browser, `location.pathname`)
	if !strings.HasPrefix(path, "/admin/jobs/") {
		p.t.Fatalf("the form leads to %s\n%s", path, p.main())
	}
	return path
}

// opens lets the job of a number end.
func (p otherProgram) opens(name string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.gate, name), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// ends waits for the job's status at the head of its page.
func (p otherProgram) ends(status string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelector(".page-head").innerText.includes(%q)`, status))
}
