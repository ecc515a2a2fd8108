package storagetest

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Key and Secret are the credentials that the server takes.
const (
	Key    = "tester"
	Secret = "tester-secret"
)

// VirtualDomain is where the server looks for buckets' names in the host.
const VirtualDomain = "s3.test"

var server struct {
	sync.Once
	dir, address string
	buckets      atomic.Int64
	err          error
	// stdin stays referenced: were it collected, its end would end the server.
	stdin io.Closer
}

// started starts the server at the first call. Where its program is not installed the
// test is left out; in CI that is a fault.
func started(t testing.TB) {
	t.Helper()
	server.Do(func() { server.err = start() })
	if server.err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("no versitygw: %v", server.err)
	}
	t.Skipf("no versitygw: %v", server.err)
}

// supervise ends the server and removes its folder when our end of its standard input
// closes.
const supervise = `dir=$1; shift; "$@" >"$dir/log" 2>&1 & pid=$!; read -r _; kill -9 $pid; wait $pid 2>/dev/null; rm -rf "$dir"`

func start() error {
	program, err := find()
	if err != nil {
		return err
	}
	if server.dir, err = os.MkdirTemp("", "cmsjobs-versitygw-"); err != nil {
		return err
	}
	for _, sub := range []string{"data", "meta", "versions"} {
		if err := os.Mkdir(filepath.Join(server.dir, sub), 0o700); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server.address = listener.Addr().String()
	listener.Close()
	cmd := exec.Command("/bin/sh", "-c", supervise, "sh", server.dir, program, "--quiet", "--port", server.address,
		"--access", Key, "--secret", Secret, "--virtual-domain", VirtualDomain, "posix", "--sidecar",
		filepath.Join(server.dir, "meta"), "--versioning-dir", filepath.Join(server.dir, "versions"),
		filepath.Join(server.dir, "data"))
	if server.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", server.address)
		if err == nil {
			return c.Close()
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(filepath.Join(server.dir, "log"))
			return errors.Join(err, errors.New(string(text)))
		}
	}
}

// find looks for the program in PATH and where "go install" puts it.
func find() (string, error) {
	program, err := exec.LookPath("versitygw")
	if err == nil {
		return program, nil
	}
	out, goErr := exec.Command("go", "env", "GOPATH").Output()
	if goErr != nil {
		return "", errors.Join(err, goErr)
	}
	if program, err = exec.LookPath(filepath.Join(strings.TrimSpace(string(out)), "bin", "versitygw")); err != nil {
		return "", errors.New("go install github.com/versity/versitygw/cmd/versitygw@v1.8.0")
	}
	return program, nil
}
