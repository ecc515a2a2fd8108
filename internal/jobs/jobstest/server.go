package jobstest

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Server is a process that tests started: a database server on a free port of
// loopback, its data in a private folder.
type Server struct {
	Port int
	Dir  string
	Env  []string // beside ours, as NAME=value

	args  []string
	host  string // its address; loopback's when empty
	space string // the network namespace that it runs in; ours when empty
	owner *credential
	stdin io.Closer
	cmd   *exec.Cmd
	ready func() error
	gone  func() // waits until what a killed server leaves has ended
}

// Skip leaves out a test whose server is not installed; in CI that is a fault.
func Skip(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// program finds an executable in PATH or in the folders where Debian hides it.
func program(names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
		for _, pattern := range []string{"/usr/sbin/" + name, "/usr/lib/postgresql/*/bin/" + name, "/usr/local/sbin/" +
			name} {
			if found, _ := filepath.Glob(pattern); len(found) > 0 {
				return found[len(found)-1], nil
			}
		}
	}
	return "", fmt.Errorf("%s is not installed", strings.Join(names, " or "))
}

// freePort asks the kernel for a port that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// account returns the credentials of a system user, which servers that refuse
// to run as root need; nil when we are not root.
func account(name string) (*credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return &credential{uid: uint32(uid), gid: uint32(gid)}, nil
}

// privateDir makes a folder that owner may use.
func privateDir(name string, owner *credential) (string, error) {
	dir, err := os.MkdirTemp("", "cmsjobs-"+name+"-")
	if err == nil && owner != nil {
		err = os.Chown(dir, int(owner.uid), int(owner.gid))
	}
	return dir, err
}

// supervise keeps a server alive while its standard input, a pipe from us, is
// open. The kernel closes the pipe when the test process ends, however it
// ends; then the server is killed and its folder removed.
const supervise = `dir=$1; shift; "$@" >"$dir/server.log" 2>&1 & pid=$!
read -r keep; if [ "$keep" = keep ]; then kill -9 $pid 2>/dev/null; wait $pid 2>/dev/null; exit 0; fi
kill -9 $pid 2>/dev/null; wait $pid 2>/dev/null; rm -rf "$dir"`

// Start starts the server and waits until it answers.
func (s *Server) Start() error {
	_ = os.Remove(filepath.Join(s.Dir, "s.sock.lock")) // a killed MySQL leaves it, and its process id may be another's
	s.cmd = exec.Command("/bin/sh", append([]string{"-c", supervise, "sh", s.Dir}, s.args...)...)
	runAs(s.cmd, s.owner, true)
	s.cmd.Dir = s.Dir
	s.cmd.Env = append(os.Environ(), s.Env...)
	pipe, err := s.cmd.StdinPipe()
	if err != nil {
		return err
	}
	s.stdin = pipe
	if err := InNamespace(s.space, s.cmd.Start); err != nil {
		return err
	}
	deadline := time.Now().Add(60 * time.Second)
	for {
		if err = s.ready(); err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(s.Dir, "server.log"))
			return fmt.Errorf("%s did not answer within 60 s: %w\n%s", s.args[0], err, tail(log))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Kill ends the server as a power cut would (SIGKILL) and keeps its data, so
// that Start brings it back on the same port.
func (s *Server) Kill() error {
	if w, ok := s.stdin.(io.Writer); ok {
		if _, err := io.WriteString(w, "keep\n"); err != nil {
			return err
		}
	}
	err := s.cmd.Wait()
	if s.gone != nil {
		s.gone()
	}
	return err
}

// Stop ends the server, if it runs, and removes its data.
func (s *Server) Stop() {
	if s.stdin != nil {
		s.stdin.Close()
		_ = s.cmd.Wait() // a killed server's exit code says nothing
	}
	_ = os.RemoveAll(s.Dir) // mostly gone: see supervise
}

// Signal sends sig to the server's whole process group (SIGSTOP, SIGCONT).
func (s *Server) Signal(sig syscall.Signal) error {
	return signalGroup(s.cmd.Process.Pid, sig)
}

func tail(log []byte) []byte {
	if len(log) > 2000 {
		return log[len(log)-2000:]
	}
	return log
}

// shared is what the tests of one process have in common: one server an engine.
// variable names the port of one that somebody else started on loopback: how CI
// tests versions that are not installed here.
var shared = map[Engine]struct {
	*once
	variable string
	make     func() (*Server, error)
}{
	MariaDB:    {&sharedMariaDB, "CMSJOBS_TEST_MARIADB_PORT", func() (*Server, error) { return NewMariaDB() }},
	MySQL:      {&sharedMySQL, mysqlPort, func() (*Server, error) { return NewMySQL() }},
	PostgreSQL: {&sharedPostgres, "CMSJOBS_TEST_POSTGRES_PORT", func() (*Server, error) { return NewPostgres() }},
}

// Shared returns the test process's server of an engine, started on first use, or
// the one whose port the environment names (CMSJOBS_TEST_MARIADB_PORT,
// CMSJOBS_TEST_MYSQL_PORT, CMSJOBS_TEST_POSTGRES_PORT).
func Shared(t testing.TB, engine Engine) *Server {
	t.Helper()
	s, ok := shared[engine]
	if !ok {
		t.Fatalf("%s has no server", engine)
	}
	server := &Server{}
	if port, err := strconv.Atoi(os.Getenv(s.variable)); err == nil {
		server.Port = port
	} else {
		server = s.start(t, string(engine), s.make)
	}
	if engine != PostgreSQL {
		makeAccount(t, server)
	}
	return server
}

// Own starts a server of the test's own, for tests that kill it or set it up
// otherwise, and stops it when the test ends. options are added to its command line.
func Own(t testing.TB, engine Engine, options ...string) *Server {
	t.Helper()
	switch engine {
	case MariaDB:
		return OwnMariaDB(t, options...)
	case MySQL:
		return OwnMySQL(t, options...)
	case PostgreSQL:
		return OwnPostgres(t, options...)
	}
	t.Fatalf("no server of a test's own for %s", engine)
	return nil
}

func own(t testing.TB, engine Engine, prepare func() (*Server, error)) *Server {
	t.Helper()
	server, err := prepare()
	if err != nil {
		Skip(t, "no %s for the test: %v", engine, err)
	}
	t.Cleanup(server.Stop)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	return server
}

// once is one server a test process.
type once struct {
	sync.Once
	server *Server
	err    error
}

func (o *once) start(t testing.TB, name string, begin func() (*Server, error)) *Server {
	t.Helper()
	o.Do(func() {
		if o.server, o.err = begin(); o.err == nil {
			o.err = o.server.Start()
		}
	})
	if o.err != nil {
		Skip(t, "no %s for the test: %v", name, o.err)
	}
	return o.server
}
