package cmsjobs_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// stack is docker-compose.yml carried out without an engine: its services are
// processes, its volumes folders, and the names of its hosts loopback.
type stack struct {
	t        *testing.T
	Services map[string]struct {
		Command     []string
		Environment map[string]string
		Volumes     []string
	}
	places []string // pairs of what the file says and what it is here
}

// The stack shows what it promises: TestTheComposeStack starts what docker-compose.yml says, with the words,
// variables and files that it gives each service, and looks where its first
// lines tell people to look. maildev, which npm has, stands for Mailpit.
func TestTheComposeStack(t *testing.T) {
	maildev, versity := tool(t, "maildev"), tool(t, "versitygw")
	s := &stack{t: t}
	if err := yaml.Unmarshal([]byte(read(t, "docker-compose.yml")), s); err != nil {
		t.Fatal(err)
	}
	s.is("/cms/site", filepath.Join(t.TempDir(), "site")) // not "/cms": the DSN holds that
	s.is("/data", t.TempDir())
	db := s.database()
	s.run(nil, program(t), s.Services["sample"].Command...)
	s.run(nil, s.Services["bucket"].Command[0], s.Services["bucket"].Command[1:]...)

	bucket := address(t)
	s.is("http://s3:7070", "http://"+bucket)
	s.start(nil, versity, append([]string{"--quiet", "--port", bucket}, s.Services["s3"].Command...)...)
	smtp, page := address(t), address(t)
	s.start(nil, maildev, "--ip", "127.0.0.1", "--smtp", port(smtp), "--web", port(page), "--mail-directory",
		t.TempDir())
	await(t, "the mail catcher's page", func() error { return answers("http://"+page+"/", "<html") })
	await(t, "the bucket's server", func() error { return listens(bucket) })

	admin := address(t)
	var env []string
	for name, value := range s.Services["cmsjobs"].Environment {
		switch name {
		case "CMSJOBS_HTTP_LISTEN":
			value = admin
		case "CMSJOBS_MAIL_HOST":
			value = "127.0.0.1"
		case "CMSJOBS_MAIL_PORT":
			value = port(smtp)
		}
		env = append(env, name+"="+value)
	}
	s.start(env, program(t), s.Services["cmsjobs"].Command...)
	await(t, "the service", func() error { return answers("http://"+admin+"/readyz", "") })
	s.allDone(db, strings.Count(read(t, "deploy/compose/jobs.sql"), "('default'"))

	await(t, "the mail", func() error { return answers("http://"+page+"/email", `"subject":"Hello"`) })
	s.signsIn(admin)
	if sitemap := read(t, filepath.Join(s.here("/cms/site"), "public/sitemap.xml")); !strings.Contains(sitemap,
		"<sitemapindex") {
		t.Errorf("the sitemap is %.200s", sitemap)
	}
	for what, pattern := range map[string]string{"backup in the bucket": "/data/cms/*.tar.zst",
		"backup in the folder": "/cms/site/storage/app/cmsjobs-backups/*.tar.zst",
		"thumbnail":            "/cms/site/public/storage/photos/harbour-1-*"} {
		if found, err := filepath.Glob(s.here(pattern)); err != nil || len(found) == 0 {
			t.Errorf("no %s: %v", what, err)
		}
	}
}

// tool is a program that a test needs and .ci/run installs.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		jobstest.Skip(t, "%v; .ci/run says how it is installed", err)
	}
	return path
}

// is says what a word of the file is here.
func (s *stack) is(word, here string) { s.places = append(s.places, word, here) }

// here is a text of the file as it is here.
func (s *stack) here(text string) string { return strings.NewReplacer(s.places...).Replace(text) }

// database is the service mysql: its options, its account, its first scripts.
func (s *stack) database() *sql.DB {
	s.t.Helper()
	mysql := s.Services["mysql"]
	server, err := jobstest.NewMySQL(mysql.Command...)
	if err != nil {
		jobstest.Skip(s.t, "%v", err)
	}
	if err := server.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(server.Stop)
	db, err := sql.Open("mysql", server.MySQLDSN(""))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { db.Close() })
	do := func(format string, words ...any) {
		s.t.Helper()
		if _, err := db.Exec(fmt.Sprintf(format, words...)); err != nil {
			s.t.Fatal(err)
		}
	}
	name, user := mysql.Environment["MYSQL_DATABASE"], mysql.Environment["MYSQL_USER"]
	do("CREATE DATABASE %s; CREATE USER %s@'%%' IDENTIFIED BY '%s'; GRANT ALL ON %s.* TO %s@'%%'", name, user,
		mysql.Environment["MYSQL_PASSWORD"], name, user)
	scripts := slices.DeleteFunc(slices.Clone(mysql.Volumes), func(v string) bool {
		return !strings.Contains(v, ":/docker-entrypoint-initdb.d/")
	})
	slices.SortFunc(scripts, func(a, b string) int { // as the image does: by their names there
		return strings.Compare(a[strings.Index(a, ":"):], b[strings.Index(b, ":"):])
	})
	for _, script := range scripts {
		file, _, _ := strings.Cut(script, ":")
		do("USE %s;\n%s", name, read(s.t, file))
	}
	s.is("@mysql:3306/", fmt.Sprintf("@127.0.0.1:%d/", server.Port))
	return db
}

// command is a service's process; of the environment it has only env.
func (s *stack) command(env []string, path string, words ...string) *exec.Cmd {
	for i := range words {
		words[i] = s.here(words[i])
	}
	c := exec.Command(path, words...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.t.TempDir()}
	for _, v := range env {
		c.Env = append(c.Env, s.here(v))
	}
	return c
}

// run is a service that must complete.
func (s *stack) run(env []string, path string, words ...string) {
	s.t.Helper()
	if out, err := s.command(env, path, slices.Clone(words)...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s %s: %v\n%s", filepath.Base(path), words, err, out)
	}
}

// start is a service that stays until the test ends; of one that failed it
// shows what it said.
func (s *stack) start(env []string, path string, words ...string) {
	s.t.Helper()
	c := s.command(env, path, slices.Clone(words)...)
	log, err := os.Create(filepath.Join(s.t.TempDir(), "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()         // with what Kill made of it
		log.Close()
		if s.t.Failed() {
			s.t.Logf("%s:\n%s", filepath.Base(path), read(s.t, log.Name()))
		}
	})
}

// allDone waits until none of the n jobs that wait in the sample is left.
func (s *stack) allDone(db *sql.DB, n int) {
	s.t.Helper()
	await(s.t, "the sample's jobs", func() error {
		var left, dead int
		if err := db.QueryRow("SELECT (SELECT COUNT(*) FROM cms.jobs WHERE id <= ?), (SELECT COUNT(*) FROM "+
			"cms.failed_jobs)", n).Scan(&left, &dead); err != nil {
			return err
		}
		if dead > 0 {
			s.t.Fatalf("%d jobs failed", dead)
		}
		if left > 0 {
			return fmt.Errorf("%d of %d jobs are left", left, n)
		}
		return nil
	})
}

// signsIn opens the admin page with the name and the password that the file
// gives, and cannot with another.
func (s *stack) signsIn(admin string) {
	s.t.Helper()
	env := s.Services["cmsjobs"].Environment
	for password, want := range map[string]int{env["CMSJOBS_HTTP_ADMIN_PASSWORD"]: http.StatusOK,
		"another": http.StatusUnauthorized} {
		jar, err := cookiejar.New(nil)
		if err != nil {
			s.t.Fatal(err)
		}
		person := http.Client{Jar: jar}
		body, err := json.Marshal(map[string]string{"name": env["CMSJOBS_HTTP_ADMIN_USER"], "password": password})
		if err != nil {
			s.t.Fatal(err)
		}
		answer, err := person.Post("http://"+admin+"/api/v1/session", "application/json",
			strings.NewReader(string(body)))
		if err != nil {
			s.t.Fatal(err)
		}
		answer.Body.Close()
		if answer, err = person.Get("http://" + admin + "/admin"); err != nil {
			s.t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			s.t.Errorf("the admin page with the password %q: %s", password, answer.Status)
		}
	}
}

// address is a free one on loopback.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func port(address string) string { return address[strings.LastIndex(address, ":")+1:] }

func listens(address string) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	return c.Close()
}

// answers says whether a page is there and holds a text.
func answers(url, text string) error {
	answer, err := http.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || !strings.Contains(string(body), text)) {
		err = fmt.Errorf("%s: %s without %q: %.300s", url, answer.Status, text, body)
	}
	return err
}

func await(t *testing.T, what string, done func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = done(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}
