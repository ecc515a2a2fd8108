package client_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// service is the program as it ships, on a SQLite database.
type service struct {
	*testing.T
	db          *jobstest.Database
	path, dsn   string
	url, secret string
}

func startService(t *testing.T) *service {
	t.Helper()
	s := &service{T: t, db: jobstest.Open(t, jobstest.SQLite), path: filepath.Join(t.TempDir(), "cmsjobs")}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", s.path,
		"./cmd/cmsjobs").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := tables.CreateTables(t.Context(), s.db.DB, tables.Stock, "bb_"); err != nil {
		t.Fatal(err)
	}
	file, _, _ := strings.Cut(strings.TrimPrefix(s.db.DSN, "file:"), "?")
	s.dsn = "--dsn=sqlite:" + file
	cmd := s.command("run")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	address := make(chan string, 1)
	go func() {
		defer close(address)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			var line struct{ Msg, URL string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "admin page" {
				address <- strings.TrimSuffix(line.URL, "/")
			}
		}
	}()
	if s.url = <-address; s.url == "" {
		t.Fatal("the service ended without an address")
	}
	s.awaitReady()
	s.secret = s.token("admin")
	return s
}

// command is the program with the configuration of the service.
func (s *service) command(words ...string) *exec.Cmd {
	config := filepath.Join(s.TempDir(), "cmsjobs.yaml")
	if err := os.WriteFile(config, []byte("schedule: {enabled: false}\ndatabase: {prefix: bb_}\n"), 0o600); err != nil {
		s.Fatal(err)
	}
	cmd := exec.Command(s.path, append([]string{s.dsn}, words...)...)
	cmd.Env = []string{"CMSJOBS_CONFIG=" + config, "CMSJOBS_HTTP_LISTEN=127.0.0.1:0", "CMSJOBS_LOG_FORMAT=json",
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.TempDir()}
	return cmd
}

func (s *service) token(scopes string) string {
	s.Helper()
	out, err := s.command("--json", "token", "create", "test-"+scopes, "--scopes", scopes).Output()
	if err != nil {
		s.Fatal(err)
	}
	var made struct{ Secret string }
	if err := json.Unmarshal(out, &made); err != nil {
		s.Fatal(err)
	}
	return made.Secret
}

func (s *service) awaitReady() {
	s.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		answer, err := http.Get(s.url + "/readyz")
		if err != nil {
			continue
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return
		}
	}
	s.Fatal("the service is not ready")
}
