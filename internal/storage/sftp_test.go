package storage

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/storage/storagetest"
)

func sftpOptions(s *storagetest.SSH) SFTPOptions {
	return SFTPOptions{Host: s.Host, Port: s.Port, User: s.User, KeyFile: s.KeyFile, HostKey: s.Fingerprint, Dir: s.Dir + "/new"}
}

func newSFTP(t *testing.T) *SFTP {
	t.Helper()
	s, err := NewSFTP(sftpOptions(storagetest.StartSSH(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newRclone(t *testing.T) *SFTP {
	t.Helper()
	server := storagetest.StartRclone(t)
	s, err := NewSFTP(SFTPOptions{Host: server.Host, Port: server.Port, User: server.User, Password: "password",
		HostKey: server.Fingerprint, Dir: "new"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Who answers must be who is meant: the error names the key that the server has.
func TestSFTPKnowsItsServer(t *testing.T) {
	server := storagetest.StartSSH(t)
	other := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(other, []byte("example.org ssh-ed25519 "+
		"AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		key  string
		good bool
	}{"its fingerprint": {server.Fingerprint, true}, "known hosts": {server.KnownHosts, true},
		"another": {"SHA256:AAAA", false}, "none": {"", false}, "other hosts": {other, false}} {
		o := sftpOptions(server)
		o.HostKey = c.key
		s, err := NewSFTP(o)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Put(t.Context(), "a", strings.NewReader("x"), PutOptions{})
		if c.good != (err == nil) || !c.good && !strings.Contains(err.Error(), server.Fingerprint) {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	o := sftpOptions(server)
	o.KeyFile = storagetest.StartSSH(t).KeyFile
	s, err := NewSFTP(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(t.Context(), "a"); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("with another's key: %v", err)
	}
	for what, change := range map[string]func(*SFTPOptions){
		"host and user": func(o *SFTPOptions) { o.User = "" }, "password or a key_file": func(o *SFTPOptions) { o.KeyFile = "" },
		"private key": func(o *SFTPOptions) { o.KeyFile = other }, "known hosts": func(o *SFTPOptions) { o.HostKey = "/none" }} {
		o := sftpOptions(server)
		change(&o)
		if _, err := NewSFTP(o); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s is not said: %v", what, err)
		}
	}
}

// cable is a way to a server that can be cut.
type cable struct {
	lock  sync.Mutex
	conns []net.Conn
	port  int
}

func newCable(t *testing.T, to int) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c := &cable{port: l.Addr().(*net.TCPAddr).Port}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: to})
			if err != nil {
				in.Close()
				continue
			}
			c.lock.Lock()
			c.conns = append(c.conns, in, out)
			c.lock.Unlock()
			through := func(to, from net.Conn) {
				_, _ = io.Copy(to, from) // until one of them is closed
				to.Close()
			}
			go through(in, out)
			go through(out, in)
		}
	}()
	return c
}

func (c *cable) cut() {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

// A connection that breaks in the middle of a file leaves the former one, and the next
// call has a new connection.
func TestSFTPWhoseConnectionBreaks(t *testing.T) {
	server := storagetest.StartSSH(t)
	way := newCable(t, server.Port)
	o := sftpOptions(server)
	o.Port = way.port
	s, err := NewSFTP(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put(t, s, "d/a", "former")
	text, w := io.Pipe()
	go func() {
		_, _ = w.Write(make([]byte, 1<<20))
		way.cut()
		w.Close()
	}()
	err = s.Put(t.Context(), "d/a", text, PutOptions{})
	text.Close()
	if err == nil {
		t.Fatal("a broken connection is no error")
	}
	if got := read(t, s, "d/a"); got != "former" {
		t.Errorf("d/a is %q", got)
	}
	if got := keys(t, s, ""); len(got) != 1 {
		t.Errorf("listed are %v", got)
	}
	if n, err := s.Sweep(t.Context(), "", time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("a young one was removed: %d, %v", n, err)
	}
	if n, err := s.Sweep(t.Context(), "", time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("%d unfinished ones were removed, %v", n, err)
	}
	if left, err := os.ReadDir(filepath.Join(o.Dir, "d")); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// A call that is given up disturbs no other.
func TestSFTPCallsEndAlone(t *testing.T) {
	s := newSFTP(t)
	put(t, s, "a", "x")
	ctx, cancel := context.WithCancel(t.Context())
	text, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- s.Put(ctx, "b", text, PutOptions{})
		text.Close() // nobody reads on
	}()
	if _, err := w.Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := w.Write(make([]byte, 1<<16)); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Fatal(err)
	}
	w.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the one that was given up: %v", err)
	}
	s.conn.lock.Lock()
	alive := s.conn.client != nil
	s.conn.lock.Unlock()
	if got := read(t, s, "a"); got != "x" || !alive {
		t.Errorf("the other has %q, connected %v", got, alive)
	}
	if got := keys(t, s, ""); len(got) != 1 {
		t.Errorf("left are %v", got)
	}
}

// Links of the server's folder are no objects, and nothing is written through them.
func TestSFTPFollowsNoLinks(t *testing.T) {
	s := newSFTP(t)
	put(t, s, "a", "x")
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(s.o.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Open(t.Context(), "link"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a link is read: %v", err)
	}
	if err := s.Put(t.Context(), "link", strings.NewReader("new"), PutOptions{}); err == nil {
		t.Error("a link is written")
	}
	if got := keys(t, s, ""); len(got) != 1 || got[0] != "a" {
		t.Errorf("listed are %v", got)
	}
	info, err := os.Stat(filepath.Join(s.o.Dir, "a"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info.Mode(), err)
	}
	if free, err := s.Free(); err != nil || free <= 0 {
		t.Errorf("%d bytes are free, %v", free, err)
	}
}
