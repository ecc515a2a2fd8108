package storagetest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// SSH is a real sshd with a folder of its own: the account is the one that runs the
// tests.
type SSH struct {
	User, Host, KeyFile string
	Port                int
	// Fingerprint is the server's key, KnownHosts a file that names it.
	Fingerprint, KnownHosts string
	Dir                     string // the folder, by its path
}

// StartSSH starts an sshd that serves files. Where it is not installed the test is left
// out; in CI that is a fault. more are lines of its configuration.
func StartSSH(t testing.TB, more ...string) *SSH {
	t.Helper()
	program := "/usr/sbin/sshd"
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no sshd: %v (apt install openssh-server)", err)
		}
		t.Skipf("no sshd: %v", err)
	}
	dir := t.TempDir()
	s := &SSH{User: user(t), Host: "127.0.0.1", KeyFile: filepath.Join(dir, "client"), Dir: filepath.Join(dir, "files"),
		KnownHosts: filepath.Join(dir, "known_hosts")}
	host := newKey(t, filepath.Join(dir, "host"))
	s.Fingerprint = ssh.FingerprintSHA256(host)
	own := newKey(t, s.KeyFile)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Port = listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"authorized":  string(ssh.MarshalAuthorizedKey(own)),
		"known_hosts": fmt.Sprintf("[127.0.0.1]:%d %s", s.Port, ssh.MarshalAuthorizedKey(host)),
		"config": strings.Join(append([]string{fmt.Sprintf("Port %d", s.Port), "ListenAddress 127.0.0.1",
			"HostKey " + filepath.Join(dir, "host"), "AuthorizedKeysFile " + filepath.Join(dir, "authorized"),
			"StrictModes no", "UsePAM no", "PasswordAuthentication no", "PidFile none",
			"Subsystem sftp internal-sftp"}, more...), "\n") + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.run(t, program, filepath.Join(dir, "config"))
	return s
}

func (s *SSH) run(t testing.TB, program, config string) {
	t.Helper()
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "-D", "-e", "-f", config)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be gone
		_ = cmd.Wait()
	})
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port))
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Since(begun) > 10*time.Second {
			t.Fatalf("sshd does not answer: %v\n%s", err, said.String())
		}
	}
}

func user(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("id", "-un").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// newKey writes a private key and returns its public one.
func newKey(t testing.TB, path string) ssh.PublicKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
