package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// binary is the program itself, built once for all tests that need a process.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "cmsjobs-service-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "cmsjobs")
	builtBinary = path // here, once: services are started side by side
	if out, err := exec.Command("go", "build", "-o", path, "../../cmd/cmsjobs").CombinedOutput(); err != nil {
		return path, fmt.Errorf("building: %w\n%s", err, out)
	}
	return path, nil
})

// asProcess runs the program as a process and returns what it says. It is for what the
// race detector makes ten times as long, and what another test does with it.
func asProcess(t *testing.T, args ...string) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), path, args...)
	c.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// builtBinary is set when binary was asked for, so that TestMain need not
// build it to remove it.
var builtBinary string

func TestMain(m *testing.M) {
	code := m.Run()
	if builtBinary != "" {
		os.RemoveAll(filepath.Dir(builtBinary))
	}
	os.Exit(code)
}

// service is "cmsjobs run" as a process, on a free port.
type service struct {
	t     *testing.T
	url   string
	flags []string // that name its database and configuration
	env   []string

	cmd  *exec.Cmd
	said jobstest.Log
	done chan struct{}
}

// startService runs the program with flags and a configuration (YAML, may be
// empty) and waits until it is ready. It is stopped by TERM when the test ends.
func startService(t *testing.T, config string, flags ...string) *service {
	t.Helper()
	s := newService(t, config, flags...)
	s.start()
	return s
}

// newService is startService without the start.
func newService(t *testing.T, config string, flags ...string) *service {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cmsjobs.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, flags: flags, done: make(chan struct{}), env: []string{
		"CMSJOBS_CONFIG=" + file, "CMSJOBS_HTTP_LISTEN=127.0.0.1:0",
		"CMSJOBS_LOG_FORMAT=json", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}}
	s.cmd = exec.Command(path, append(slices.Clone(flags), "run")...)
	return s
}

// launch starts the process and returns where its address will come.
func (s *service) launch() <-chan string {
	s.t.Helper()
	s.cmd.Env = s.env
	log, err := s.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	address := make(chan string, 1)
	go s.listen(log, address)
	s.t.Cleanup(s.stop)
	return address
}

func (s *service) start() {
	s.t.Helper()
	select {
	case s.url = <-s.launch():
	case <-s.done:
		s.t.Fatalf("the service ended at once:\n%s", s.log())
	case <-time.After(time.Minute):
		s.t.Fatalf("the service names no address:\n%s", s.log())
	}
	s.awaitReady()
}

// listen keeps the log and finds the address in it.
func (s *service) listen(log io.Reader, address chan<- string) {
	defer close(s.done)
	for lines := bufio.NewScanner(log); lines.Scan(); {
		fmt.Fprintln(&s.said, lines.Text())
		var line struct{ Msg, URL string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "admin page" {
			address <- strings.TrimSuffix(line.URL, "/")
		}
	}
}

func (s *service) log() string { return s.said.String() }

func (s *service) awaitReady() {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if status, _ := s.try("GET", "/readyz", "", nil); status == http.StatusOK {
			return
		}
	}
	s.t.Fatalf("the service is not ready:\n%s", s.log())
}

// stop ends the service as a supervisor does; it must end in order.
func (s *service) stop() {
	if s.cmd.ProcessState != nil {
		return
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Errorf("stopping: %v", err)
	}
	select {
	case <-s.done: // the log ends when the process does
	case <-time.After(time.Minute):
		s.t.Error("the service does not stop; it is killed")
		s.cmd.Process.Kill()
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("the service ended with %v:\n%s", err, s.log())
	}
}

// command runs another command of the program on the same site.
func (s *service) command(args ...string) string {
	s.t.Helper()
	c := exec.Command(s.cmd.Path, append(slices.Clone(s.flags), args...)...)
	c.Env = s.env
	out, err := c.Output()
	if err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// token makes one with these scopes.
func (s *service) token(scopes string) string {
	s.t.Helper()
	var made struct{ Secret string }
	if err := json.Unmarshal([]byte(s.command("--json", "token", "create", "test", "--scopes", scopes)),
		&made); err != nil {
		s.t.Fatal(err)
	}
	return made.Secret
}

// try sends a request; status 0 is no answer. A page that
// still counts on a slow machine is asked for again, as a browser does.
func (s *service) try(method, path, body string, header http.Header) (int, []byte) {
	s.t.Helper()
	const asksAgain = `hx-trigger="load delay:600ms"`
	status, text := s.tryOnce(method, path, body, header)
	for end := time.Now().Add(time.Minute); bytes.Contains(text, []byte(asksAgain)) && time.Now().Before(end); {
		status, text = s.tryOnce(method, path, body, header)
	}
	return status, text
}

// tryOnce is try without asking again.
func (s *service) tryOnce(method, path, body string, header http.Header) (int, []byte) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, values := range header {
		r.Header[name] = values
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, nil
	}
	return answer.StatusCode, text
}

// ask sends a request that must be answered with status, and decodes the
// answer where into is not nil.
func (s *service) ask(status int, method, path, body string, header http.Header, into any) {
	s.t.Helper()
	got, text := s.try(method, path, body, header)
	if got != status {
		s.t.Fatalf("%s %s: %d, want %d: %s\n%s", method, path, got, status, text, s.log())
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			s.t.Fatalf("%v in %s", err, text)
		}
	}
}

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// loadDump fills an empty MySQL database with a real CMS's dump.
func loadDump(t *testing.T, db *jobstest.Database, name string) {
	t.Helper()
	text, err := os.ReadFile(jobstest.Fixture(t, name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(string(text)); err != nil {
		t.Fatalf("loading %s: %v", name, err)
	}
}
