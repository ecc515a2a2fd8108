package cmsjobs_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"database/sql"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/smtptest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// sandbox is what a documented command meets: a sample site, a mail server, an address that takes
// webhooks, an empty root in place of /etc and /usr/local, and stand-ins for the programs of a host.
type sandbox struct {
	t          *testing.T
	site, root string
	checkout   string // a folder as "git clone" leaves it, as far as the documents use it
	env        []string
	words      *strings.Replacer // what the documents name, as it is here
}

// onMariaDB are the pages whose commands need a server; the others run on SQLite.
var onMariaDB = map[string]bool{"docs/backup.md": true}

// hosts are the stand-ins: links to this program, see standIn.
var hosts = []string{"cmsjobs", "sudo", "systemctl", "journalctl", "docker", "make", "go"}

// sampleSite is the demo's site on SQLite, made once; a copy of the folder is another site.
var sampleSite = sync.OnceValues(func() (string, error) {
	binary, err := built()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(builtIn, "site")
	out, err := exec.Command(binary, "demo", "--seed-only", "--dir", dir).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("the sample site: %w\n%s", err, out)
	}
	db, err := sql.Open("sqlite", jobstest.SQLiteDSN(filepath.Join(dir, "database/database.sqlite")))
	if err != nil {
		return "", err
	}
	defer db.Close()
	_, err = db.Exec("DELETE FROM jobs") // a job that has waited for a minute is a finding of doctor
	return dir, err
})

func newSandbox(t *testing.T, page string) *sandbox {
	t.Helper()
	s := &sandbox{t: t, root: t.TempDir()}
	s.site, s.checkout = filepath.Join(s.root, "site"), filepath.Join(s.root, "checkout")
	repository, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"bin", "tmp", "home", "checkout", "usr/local/bin", "usr/local/share/man/man1",
		"etc/systemd/system", "var/mail"} {
		if err := os.MkdirAll(filepath.Join(s.root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range hosts {
		if err := os.Symlink(self, filepath.Join(s.root, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(repository, "deploy"), filepath.Join(s.checkout, "deploy")); err != nil {
		t.Fatal(err)
	}
	database := s.seed(page)
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(hook.Close)
	trusted := written(t, "hook.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: hook.Certificate().Raw})))
	s.env = []string{"PATH=" + filepath.Join(s.root, "bin") + ":" + os.Getenv("PATH"), "HOME=" + s.root + "/home",
		"TMPDIR=" + s.root + "/tmp", standInProgram + "=" + program(t), standInRoot + "=" + s.root,
		standInRepository + "=" + repository, "CMSJOBS_CMS_DIR=" + s.site, "CMSJOBS_HTTP_LISTEN=127.0.0.1:0",
		"CMSJOBS_BACKUP_FREE_SPACE=16MiB", "CMSJOBS_WEBHOOK_ALLOW_PRIVATE=127.0.0.0/8", "CMSJOBS_MAIL_HOST=127.0.0.1",
		fmt.Sprintf("CMSJOBS_MAIL_PORT=%d", (&smtptest.Server{}).Listen(t)), "CMSJOBS_MAIL_ENCRYPTION=none",
		"CMSJOBS_MAIL_KEEP_BODY=true",
		"SSL_CERT_FILE=" + trusted}
	s.words = strings.NewReplacer("/var/www/site", s.site, "/var/www/shop-", s.root+"/shop-", "~/site", s.site, "/usr/local/", s.root+"/usr/local/",
		"/etc/", s.root+"/etc/", "/var/mail/", s.root+"/var/mail/", "/tmp", s.root+"/tmp",
		"https://shop.example/hook", hook.URL, "https://…", hook.URL, "URL ", hook.URL+" ",
		"mysql://user@host/copy", database)
	s.files()
	return s
}

// seed makes the site, and says where another database is that a restore may fill.
func (s *sandbox) seed(page string) (database string) {
	s.t.Helper()
	if onMariaDB[page] {
		server := jobstest.Shared(s.t, jobstest.MariaDB)
		names := [2]string{fmt.Sprintf("docs_%d", os.Getpid()), fmt.Sprintf("docs_copy_%d", os.Getpid())}
		db := server.RootMySQL(s.t)
		for _, name := range names {
			if _, err := db.Exec("CREATE DATABASE " + name); err != nil {
				s.t.Fatal(err)
			}
			s.t.Cleanup(func() { _, _ = db.Exec("DROP DATABASE " + name) }) // the server ends soon
		}
		dsn := fmt.Sprintf("mysql://root@127.0.0.1:%d/", server.Port)
		run(s.t, ".", program(s.t), "--dsn", dsn+names[0], "demo", "--seed-only", "--dir", s.site)
		return dsn + names[1]
	}
	sample, err := sampleSite()
	if err != nil {
		s.t.Fatal(err)
	}
	run(s.t, ".", "cp", "-r", sample, s.site)
	return ""
}

// files are those that documents name: a new picture, access logs, bounces, a crontab, a
// private key, other sites.
func (s *sandbox) files() {
	s.t.Helper()
	const visit = `203.0.113.9 - - [22/Nov/2026:10:00:00 +0000] "GET /news HTTP/1.1" 200 512 "-" ` +
		`"Mozilla/5.0 Firefox/140.0"` + "\n"
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	key, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		s.t.Fatal(err)
	}
	for name, text := range map[string]string{"site/public/storage/news/a.jpg": "a picture",
		"shop-a/.env":            "DB_CONNECTION=mysql\nDB_HOST=localhost\nDB_DATABASE=shop_a\nDB_USERNAME=shop_a\n",
		"shop-b/.env":            "DB_CONNECTION=mysql\nDB_HOST=localhost\nDB_DATABASE=shop_b\nDB_USERNAME=shop_b\n",
		"etc/cmsjobs/backup_key": string(pem.EncodeToMemory(key)),
		"site/access.log":        visit, "site/access.log.1": visit, "site/web2/access.log": visit,
		"supervisor.conf":  "[program:worker]\ncommand=php /srv/site/artisan queue:work --tries=3\nnumprocs=2\n",
		"crontab":          "30 6 * * 1 php artisan newsletter:send\n",
		"var/mail/bounces": "From: mailer-daemon@example.com\nSubject: returned\n\nIt came back.\n"} {
		path := filepath.Join(s.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	run(s.t, s.site, "gzip", "access.log.1")
}

// shell runs a script in a folder; each of its lines must succeed.
func (s *sandbox) shell(dir, script string) (out string, err error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", s.words.Replace(script))
	c.Dir, c.Env = dir, s.env
	text, err := c.CombinedOutput()
	return string(text), err
}

// saysSo are texts that the output of a block must hold, where success alone says little.
var saysSo = map[string]string{
	"docs/logging.md": `"type":"backup.generate"`,
}

// runShell runs a block in the site's folder, or in a checkout if it builds or installs.
func runShell(t *testing.T, b docBlock) (string, error) {
	s := newSandbox(t, b.page)
	dir, where := s.site, "in the folder of a sample site"
	if strings.Contains(b.text, "deploy/") || strings.Contains(b.text, "make ") || strings.Contains(b.text, "go run ") {
		dir, where = s.checkout, "in a checkout"
	}
	for begins, needs := range firstNeeds {
		if !strings.HasPrefix(b.text, begins) {
			continue
		}
		if out, err := s.shell(s.site, needs); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", needs, err, out)
		}
	}
	out, err := s.shell(dir, b.text)
	if err == nil && !strings.Contains(out, saysSo[b.page]) {
		err = fmt.Errorf("it does not say %q", saysSo[b.page])
	}
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return "run by bash " + where + s.called(), nil
}

// firstNeeds is what a block takes as done, by how it begins.
var firstNeeds = map[string]string{
	"cmsjobs backup ": "cmsjobs backup create",
	"sudo cmsjobs --cms /var/www/site setup --re": "cmsjobs --cms /var/www/site setup",
	"journalctl ": "touch /etc/systemd/system/cmsjobs.service",
}

// called names the stand-ins for a host's programs that the block called.
func (s *sandbox) called() string {
	text, err := os.ReadFile(filepath.Join(s.root, "called"))
	if err != nil || len(text) == 0 {
		return "" // none
	}
	return "; stand-ins: " + strings.Join(strings.Split(strings.TrimSpace(string(text)), "\n"), ", ")
}

// command runs one command that a sentence names, and says how.
func (s *sandbox) command(line string) (way, out string, err error) {
	script := line
	// it asks a running service, which would do the jobs of other commands
	if strings.HasPrefix(line, "cmsjobs health") {
		s = newSandbox(s.t, "")
		script = "export CMSJOBS_HTTP_LISTEN=" + strings.TrimPrefix(s.service(), "http://") + "\n" + line
	}
	if before := before(line); before != "" {
		if out, err := s.shell(s.site, before); err != nil {
			return "", out, fmt.Errorf("%s: %w", before, err)
		}
	}
	out, err = s.shell(s.site, script)
	var exit *exec.ExitError
	switch answer := honestAnswers[line]; {
	case err == nil:
		return "run", out, nil
	case onlyNamed.MatchString(line) && errors.As(err, &exit) && exit.ExitCode() == 2:
		out, err = s.shell(s.site, line+" --help")
		return "the sentence gives none of the words that it needs: its help", out, err
	case answer != "" && strings.Contains(out, answer):
		return "run, and says: " + answer, out, nil
	}
	return "", out, err
}

// onlyNamed is a command without arguments.
var onlyNamed = regexp.MustCompile(`^cmsjobs( [a-z]+)+$`)

// before is what a command of a sentence takes as done.
func before(line string) string {
	for begins, script := range map[string]string{
		"cmsjobs sitemap check":              "cmsjobs sitemap generate --force",
		"cmsjobs --cms ~/site setup --way c": "cmsjobs --cms ~/site setup --remove",
		"cmsjobs pause mail":                 "cmsjobs enqueue cmsjobs.probe '{}' --queue mail",
		"cmsjobs continue mail":              "cmsjobs pause mail",
		"cmsjobs health --check no_backup":   "cmsjobs backup create",
	} {
		if strings.HasPrefix(line, begins) {
			return script
		}
	}
	return ""
}

// honestAnswers are what commands say that find nothing to do in the sample site.
var honestAnswers = map[string]string{
	"cmsjobs migrate feed":                               "only PostgreSQL is prepared so",
	"cmsjobs migrate feed --replication":                 "only PostgreSQL is prepared so",
	"cmsjobs breakers reset NAME":                        "never failed",
	"cmsjobs breakers reset DEPENDENCY":                  "never failed",
	"cmsjobs access unlock ADDRESS":                      "is locked",
	"cmsjobs workers scale 2 --worker ID":                "not found",
	"cmsjobs doctor --strict":                            "findings need action", // nothing runs beside it
	"cmsjobs failed delete --type webhook.deliver --yes": "no job to delete fits the filter",
	// TestRecipes makes this type and runs it.
	`cmsjobs enqueue example.greet '{"name":"Ada"}'`: "There is no type",
}
