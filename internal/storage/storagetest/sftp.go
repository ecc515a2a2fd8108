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

// SSH is a real server of SFTP with a folder.
type SSH struct {
	User, Host, KeyFile string
	Port                int
	// Fingerprint is the server's key, KnownHosts a file that names it.
	Fingerprint, KnownHosts string
	Dir                     string // the folder, by its path
}

// StartRclone starts an rclone that serves files by SFTP: another server than OpenSSH's,
// with fewer of its extensions. It takes the password "password".
func StartRclone(t testing.TB) *SSH {
	t.Helper()
	program := found(t, "rclone", "rclone")
	dir := t.TempDir()
	s := &SSH{User: "site", Host: "127.0.0.1", Dir: filepath.Join(dir, "files")}
	s.Fingerprint = ssh.FingerprintSHA256(newKey(t, filepath.Join(dir, "host")))
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.Port = freePort(t)
	s.run(t, program, "serve", "sftp", s.Dir, "--addr", fmt.Sprintf("127.0.0.1:%d", s.Port), "--user", s.User, "--pass",
		"password", "--key", filepath.Join(dir, "host"), "--config", filepath.Join(dir, "none"), "--vfs-cache-mode",
		"writes",
		"--cache-dir", filepath.Join(dir, "cache"), "--vfs-write-back", "0", "--dir-cache-time", "0")
	return s
}

// found is where a program is. Where it is not installed the test is left out; in CI that
// is a fault.
func found(t testing.TB, program, pack string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%v (apt install %s)", err, pack)
	}
	t.Skip(err)
	return ""
}

func freePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// StartSSH starts an sshd that serves files. Where it is not installed the test is left
// out; in CI that is a fault. more are lines of its configuration.
func StartSSH(t testing.TB, more ...string) *SSH {
	t.Helper()
	program := found(t, "/usr/sbin/sshd", "openssh-server")
	dir := t.TempDir()
	s := &SSH{User: user(t), Host: "127.0.0.1", KeyFile: filepath.Join(dir, "client"), Dir: filepath.Join(dir, "files"),
		KnownHosts: filepath.Join(dir, "known_hosts")}
	host := newKey(t, filepath.Join(dir, "host"))
	s.Fingerprint = ssh.FingerprintSHA256(host)
	own := newKey(t, s.KeyFile)
	s.Port = freePort(t)
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
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.run(t, program, "-D", "-e", "-f", filepath.Join(dir, "config"))
	return s
}

func (s *SSH) run(t testing.TB, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	said, err := os.Create(filepath.Join(t.TempDir(), "said")) // a pipe would be kept open by sessions
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stderr = said
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
		if time.Since(begun) > 30*time.Second {
			text, _ := os.ReadFile(said.Name()) // it says why, if it can be read
			t.Fatalf("%s does not answer: %v\n%s", program, err, text)
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
