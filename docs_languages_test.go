package cmsjobs_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// written writes a block into a new file.
func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// passes runs a program that says by its exit code whether it takes something.
func passes(dir, program string, args ...string) error {
	c := exec.Command(program, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(program), err, out)
	}
	return nil
}

// checkYAML gives a configuration to "config check", and one of Prometheus to promtool.
func checkYAML(t *testing.T, b docBlock) (string, error) {
	var top map[string]any
	if err := yaml.Unmarshal([]byte(b.text), &top); err != nil {
		return "", err
	}
	if _, ours := top["scrape_configs"]; ours {
		promtool, dir := tool(t, "promtool"), t.TempDir()
		text := strings.ReplaceAll(b.text, "/etc/prometheus/", dir+"/")
		for name, content := range map[string]string{"cmsjobs-alerts.yml": read(t, "deploy/prometheus/alerts.yml"),
			"cmsjobs-token": "token", "prometheus.yml": text} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return "promtool check config", passes(dir, promtool, "check", "config", "prometheus.yml")
	}
	s := newSandbox(t, "")
	args := []string{"--config", written(t, "config.yaml", s.words.Replace(b.text)), "config", "check"}
	if _, several := top["sites"]; !several { // a flag is for all of them
		args = append(args, "--dsn", "mysql://localhost/cms")
	}
	c := exec.Command(program(t), args...)
	c.Env, c.Dir = s.env, s.site
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return "cmsjobs config check", nil
}

// runSQL runs statements as the administrator of a server that they are for.
func runSQL(t *testing.T, b docBlock) (string, error) {
	engine := jobstest.MariaDB
	if regexp.MustCompile("SET PERSIST|REPLICATION_APPLIER").MatchString(b.text) { // MariaDB has none
		engine = jobstest.MySQL
	}
	db := jobstest.Shared(t, engine).RootMySQL(t)
	made := regexp.MustCompile(`CREATE USER (\S+)`).FindAllStringSubmatch(b.text, -1)
	if len(made) == 0 { // it is for accounts that are there
		made = regexp.MustCompile(`TO ('\w+'@'\w+')`).FindAllStringSubmatch(b.text, -1)
		for _, user := range made {
			if _, err := db.Exec("CREATE USER " + user[1]); err != nil {
				return "", err
			}
		}
	}
	if _, err := db.Exec(b.text); err != nil {
		return "", err
	}
	for _, user := range made {
		if _, err := db.Exec("DROP USER " + user[1]); err != nil {
			return "", err
		}
	}
	return "run on " + string(engine), nil
}

// runPHP runs code in a Laravel application with our package, and looks at the rows that it made.
func runPHP(t *testing.T, b docBlock) (string, error) {
	if _, err := os.Stat("/usr/share/php/Illuminate/autoload.php"); err != nil {
		jobstest.Skip(t, "apt-get install php-cli php-laravel-framework php-mysql: %v", err)
	}
	db := jobstest.Open(t, jobstest.MariaDB)
	run(t, ".", program(t), "--dsn", cliDSN(t, db), "migrate", "up", "--create-jobs")
	var name string
	var port int
	if err := db.QueryRow("SELECT DATABASE(), @@port").Scan(&name, &port); err != nil {
		t.Fatal(err)
	}
	code := "<?php\nuse Illuminate\\Support\\Facades\\DB;\nrequire getcwd() . '/sdk/php/tests/application.php';\n" +
		"$user = (object) ['email' => 'zoe@example.com'];\n$order = new class {\n" +
		"    public function save() {}\n    public function toArray() { return ['id' => 17]; }\n};\n" + b.text
	c := exec.Command("php", written(t, "snippet.php", code))
	c.Env = append(os.Environ(), fmt.Sprintf("DB_PORT=%d", port), "DB_DATABASE="+name)
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	var rows int
	if err := db.Get(&rows, "SELECT COUNT(*) FROM jobs"); err != nil {
		return "", err
	}
	if asked := len(regexp.MustCompile(`enqueue\(`).FindAllString(b.text, -1)); rows != asked {
		return "", fmt.Errorf("%d jobs are in the table, and it asks for %d", rows, asked)
	}
	return "run in Laravel with the package, on mariadb", nil
}

// cliDSN is a test database as the command line names it.
func cliDSN(t *testing.T, db *jobstest.Database) string {
	t.Helper()
	var name string
	var port int
	if err := db.QueryRow("SELECT DATABASE(), @@port").Scan(&name, &port); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("mysql://root@127.0.0.1:%d/%s", port, name)
}

// service is the program, running in a sandbox's site with settings.
func (s *sandbox) service(settings ...string) (url string) {
	s.t.Helper()
	where := address(s.t)
	args := []string{"run", "--set", "http.listen=" + where}
	for _, v := range settings {
		args = append(args, "--set", v)
	}
	log := written(s.t, "log", "")
	f, err := os.OpenFile(log, os.O_WRONLY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	c := exec.Command(program(s.t), args...)
	c.Env, c.Dir, c.Stdout, c.Stderr = s.env, s.site, f, f
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = c.Wait() // with what Kill made of it
		close(ended)
	}()
	s.t.Cleanup(func() {
		_ = c.Process.Kill() // it may have ended
		<-ended
		f.Close()
	})
	await(s.t, "the service", func() error {
		select {
		case <-ended:
			s.t.Fatalf("the service ended:\n%s", read(s.t, log))
		default:
		}
		return answers("http://"+where+"/healthz", "")
	})
	return "http://" + where
}

// runTypeScript runs code by node with the package as it is built, against a running service.
func runTypeScript(t *testing.T, b docBlock) (string, error) {
	node, dist := tool(t, "node"), builtPackage(t)
	s := newSandbox(t, "")
	url := s.service("queue.worker=false")
	c := exec.Command(program(t), "token", "create", "docs", "--scopes", "admin", "--json")
	c.Env = s.env
	out, err := c.Output()
	if err != nil {
		return "", err
	}
	var token struct{ Secret string }
	if err := json.Unmarshal(out, &token); err != nil {
		return "", err
	}
	code := strings.NewReplacer("@cmsjobs/sdk", filepath.Join(dist, "index.js"), "https://cms.example", url).Replace(
		b.text)
	c = exec.Command(node, written(t, "main.mjs", code))
	c.Env = append(s.env, "CMSJOBS_TOKEN="+token.Secret)
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return "run by node against the service", answersWith(url+"/api/v1/jobs?type=sitemap.generate", token.Secret,
		`"sitemap.generate"`)
}

func answersWith(url, token, text string) error {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && !bytes.Contains(body, []byte(text)) {
		err = fmt.Errorf("%s answers %s", url, body)
	}
	return err
}

// vetGo compiles and vets lines of a program of another module, with the names that they take as given.
func vetGo(t *testing.T, b docBlock) (string, error) {
	if b.page == "docs/enqueue.md" && strings.Contains(b.text, "client.New") {
		return "run by TestTheSameJobFromEverywhere", nil
	}
	code := "package snippet\n\nimport " +
		"(\n\t\"context\"\n\t\"database/sql\"\n\n\t\"github.com/cmsjobs/cmsjobs/worker\"\n)\n\n" +
		"type Invoice struct{ Number int `json:\"number\"` }\n\n" +
		"func print(context.Context, Invoice) map[string]any { return nil }\n\n" +
		"func snippet(ctx context.Context, db *sql.DB) error {\n" + b.text + "\treturn err\n}\n\nvar _ = snippet\n"
	where, err := filepath.Abs("worker/snippet/snippet.go") // only in the overlay
	if err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{where: written(t, "snippet.go", code)}})
	if err != nil {
		return "", err
	}
	return "go build", passes(".", "go", "build", "-overlay", written(t, "overlay.json", string(overlay)),
		"./worker/snippet")
}

// checkJSON holds a line of the log beside a real one, and sends what a provider sends.
func checkJSON(t *testing.T, b docBlock) (string, error) {
	var value any
	if err := json.Unmarshal([]byte(b.text), &value); err != nil {
		return "", err
	}
	s := newSandbox(t, "")
	line, isLine := value.(map[string]any)
	if !isLine {
		return s.bounces(b.text)
	}
	out, err := s.shell(s.site, "cmsjobs enqueue "+fmt.Sprint(line["type"])+"; cmsjobs work --stop-when-empty")
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	for _, text := range strings.Split(out, "\n") {
		var logged map[string]any
		if json.Unmarshal([]byte(text), &logged) != nil || logged["type"] != line["type"] {
			continue // another line
		}
		for _, a := range [][2]map[string]any{{line, logged}, {logged, line}} {
			for key := range a[0] {
				if _, there := a[1][key]; !there {
					return "", fmt.Errorf("the field %s is only in one of both:\n%s", key, text)
				}
			}
		}
		return "its fields are those of a logged line", nil
	}
	return "", fmt.Errorf("no such line in\n%s", out)
}

// bounces posts a provider's report, signed by the program's own secret.
func (s *sandbox) bounces(body string) (string, error) {
	secret := "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	url := s.service("queue.worker=false", "mail.bounce_secret="+secret)
	id, at := "msg_1", time.Now()
	r, err := http.NewRequest(http.MethodPost, url+"/api/v1/mail/bounces", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", fmt.Sprint(at.Unix()))
	r.Header.Set("Webhook-Signature", signature(s.t, secret, id, at, body))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode/100 != 2 {
		return "", fmt.Errorf("%s %s: %w", answer.Status, text, err)
	}
	out, err := s.shell(s.site, "cmsjobs mail suppressions list")
	if err == nil && !strings.Contains(out, "gone@example.net") {
		err = fmt.Errorf("the address is not suppressed:\n%s", out)
	}
	return "posted to the service, which suppresses the address", err
}

// fetchHTML asks a running service for what the page's script names.
func fetchHTML(t *testing.T, b docBlock) (string, error) {
	m := regexp.MustCompile(`<script defer src="https://jobs\.example\.com(/[\w.]+)"></script>`).FindStringSubmatch(
		b.text)
	if m == nil {
		return "", errors.New("no script of ours")
	}
	url := newSandbox(t, "").service("analytics.collect=true")
	return "fetched from the service", answers(url+m[1], "sendBeacon")
}

// readINI gives options to the server that they are for.
func readINI(t *testing.T, b docBlock) (string, error) {
	server, err := exec.LookPath("mariadbd")
	if err != nil {
		server = "/usr/sbin/mariadbd"
	}
	if _, err := os.Stat(server); err != nil {
		jobstest.Skip(t, "%v", err)
	}
	out, err := exec.Command(server, "--defaults-file="+written(t, "my.cnf", b.text), "--user=root", "--verbose",
		"--help").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	for _, m := range regexp.MustCompile(`(?m)^(\w+) = (\S+)$`).FindAllStringSubmatch(b.text, -1) {
		if !regexp.MustCompile(`(?m)^` + strings.ReplaceAll(m[1], "_", "-") + `\s+` + regexp.QuoteMeta(m[2]) +
			`\b`).Match(out) {
			return "", fmt.Errorf("the server does not take %s", m[0])
		}
	}
	return "read by mariadbd --verbose --help", nil
}

// compileVCL compiles a part of a configuration of Varnish.
func compileVCL(t *testing.T, b docBlock) (string, error) {
	varnish := tool(t, "varnishd")
	file := written(t, "site.vcl", "vcl 4.1;\nbackend default { .host = \"127.0.0.1\"; }\n"+b.text)
	for _, dir := range []string{filepath.Dir(file), filepath.Dir(filepath.Dir(file))} { // the compiler is another user
		if err := os.Chmod(dir, 0o755); err != nil {
			return "", err
		}
	}
	return "varnishd -C", passes(".", varnish, "-C", "-f", file, "-n", t.TempDir())
}

// readNginx checks a location as a server's.
func readNginx(t *testing.T, b docBlock) (string, error) {
	nginx, dir := tool(t, "nginx"), t.TempDir()
	file := written(t, "nginx.conf", fmt.Sprintf("pid %s/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n"+
		"server {\nlisten 127.0.0.1:8099;\n%s}\n}\n", dir, b.text))
	return "nginx -t", passes(".", nginx, "-t", "-q", "-p", dir, "-c", file)
}

// checkDiagram reads the lines of a diagram: what a box names exists, states are those of jobs.
func checkDiagram(_ *testing.T, b docBlock) (string, error) {
	lines := strings.Split(strings.TrimSpace(b.text), "\n")
	states := []string{"[*]", "queued", "processing", "completed", "failed", "cancelled"}
	arrow := regexp.MustCompile(`^\s+(\S+) --> (\w+)(?:: .+)?$`)
	node := regexp.MustCompile(`^\s+(?:subgraph )?[\w &]+(?:\["[^"]+"\])?(?: --> [\w &]+(?:\["[^"]+"\])?)?$|^\s+end$`)
	for _, line := range lines[1:] {
		m := arrow.FindStringSubmatch(line)
		switch {
		case lines[0] == "stateDiagram-v2" && (m == nil || !slices.Contains(states, m[1]) ||
			!slices.Contains(states, m[2])),
			strings.HasPrefix(lines[0], "flowchart ") && !node.MatchString(line):
			return "", fmt.Errorf("cannot read %q", line)
		}
		for _, found := range regexp.MustCompile(`"((?:cmd|internal)/[a-z/]+)`).FindAllStringSubmatch(line, -1) {
			if _, err := os.Stat(strings.TrimSuffix(found[1], "/")); err != nil {
				return "", err
			}
		}
	}
	return "read line by line; packages and states exist", nil
}

// signature is that of Standard Webhooks.
func signature(t *testing.T, secret, id string, at time.Time, body string) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
