package repository

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

var versity struct {
	sync.Once
	port  int
	dir   string
	err   error
	stdin io.Closer // referenced: were it collected, its end would end the server
}

// supervise ends the server and removes its folder when our end of its standard
// input closes, however this process ends.
const supervise = `dir=$1; shift; "$@" >"$dir/log" 2>&1 & pid=$!; read -r _; kill -9 $pid; wait $pid 2>/dev/null; rm -rf "$dir"`

func startVersity() error {
	program, err := exec.LookPath("versitygw")
	if err != nil {
		out, goErr := exec.Command("go", "env", "GOPATH").Output()
		if goErr != nil {
			return errors.Join(err, goErr)
		}
		if program, err = exec.LookPath(filepath.Join(strings.TrimSpace(string(out)), "bin", "versitygw")); err != nil {
			return errors.New("go install github.com/versity/versitygw/cmd/versitygw@v1.8.0")
		}
	}
	if versity.dir, err = os.MkdirTemp("", "cmsjobs-versitygw-"); err != nil {
		return err
	}
	for _, sub := range []string{"data", "meta"} {
		if err := os.Mkdir(filepath.Join(versity.dir, sub), 0o700); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	versity.port = listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	address := "127.0.0.1:" + strconv.Itoa(versity.port)
	cmd := exec.Command("/bin/sh", "-c", supervise, "sh", versity.dir, program, "--quiet", "--port", address,
		"--access", "tester", "--secret", "tester-secret", "posix", "--sidecar", filepath.Join(versity.dir, "meta"),
		filepath.Join(versity.dir, "data"))
	if versity.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return c.Close()
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(filepath.Join(versity.dir, "log"))
			return errors.Join(err, errors.New(string(text)))
		}
	}
}

// requests counts what is sent, as the server sees it.
type requests struct {
	http.RoundTripper
	n atomic.Int64
}

func (r *requests) RoundTrip(q *http.Request) (*http.Response, error) {
	r.n.Add(1)
	return r.RoundTripper.RoundTrip(q)
}

// bucket is an empty bucket of a versitygw process, which checks signatures, and
// the folder where that keeps it.
func bucket(t *testing.T) (s *storage.S3, sent *requests, dir string) {
	t.Helper()
	versity.Do(func() { versity.err = startVersity() })
	if versity.err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no versitygw: %v", versity.err)
		}
		t.Skipf("no versitygw: %v", versity.err)
	}
	name := "b" + strconv.FormatInt(time.Now().UnixNano(), 36)
	dir = filepath.Join(versity.dir, "data", name)
	if err := os.Mkdir(dir, 0o700); err != nil { // a folder is a bucket
		t.Fatal(err)
	}
	sent = &requests{}
	s, err := storage.NewS3(storage.S3Config{
		Bucket: name, Prefix: "site/files", Endpoint: "http://127.0.0.1:" + strconv.Itoa(versity.port), PathStyle: true,
		AccessKey: "tester", SecretKey: "tester-secret",
		Watch: func(next http.RoundTripper) http.RoundTripper { sent.RoundTripper = next; return sent },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, sent, filepath.Join(dir, "site/files")
}

// Everything in a bucket, and the requests of each step counted as the server sees
// them.
func TestARepositoryInABucket(t *testing.T) {
	s3, sent, dir := bucket(t)
	s := newSite(t, 300)
	o := options(s3)
	o.Grace = -1
	r := create(t, o)
	counted := func(what string, o Operations) {
		t.Helper()
		if n := sent.n.Swap(0); n != o.Requests() {
			t.Errorf("%s: %d requests are reported (%+v) and %d were sent", what, o.Requests(), o, n)
		}
		t.Logf("%s: %d requests, %d kB written", what, o.Requests(), o.Written>>10)
	}
	sent.n.Store(0)
	first := backup(t, r, s.request(t))
	counted("first", first.Operations)
	was := shot(t, s.dir)
	second := backup(t, r, s.request(t))
	counted("unchanged", second.Operations)
	if second.Read != 0 || second.Operations.Requests() > 15 {
		t.Errorf("%+v", second)
	}
	s.write(t, "uploads/new", s.noise(10_000))
	s.write(t, "large/changing", s.noise(smallFile*2))
	third := backup(t, r, s.request(t))
	counted("two new files", third.Operations)
	if third.Operations.Requests() > 20 {
		t.Errorf("%+v", third.Operations)
	}
	before := r.Operations()
	same(t, "the first", was, restore(t, r, first.Record))
	counted("restore", r.Operations().since(before))
	before = r.Operations()
	if v := verify(t, r, VerifyRequest{Level: Contents}); len(v.Problems) != 0 || v.Backups != 3 {
		t.Errorf("%+v", v)
	}
	counted("verify", r.Operations().since(before))
	before = r.Operations()
	if c := collect(t, r, third.Record.ID); c.Deleted != 3 { // the two files, and the manifest
		t.Errorf("%+v", c)
	}
	counted("collect", r.Operations().since(before))
	same(t, "the second", was, restore(t, r, second.Record))
	// What the server keeps are the files that a local repository has.
	need(t, "zstd")
	into := filepath.Join(t.TempDir(), "into")
	if out, err := script(t, []string{"sh"}, dir, "", "latest", into); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	same(t, "by restore.sh", was, shot(t, filepath.Join(into, "media")))
}

// Objects of a bucket are a source too: those with the tag of the last backup are
// not read.
func TestABucketIsASource(t *testing.T) {
	media, sent, _ := bucket(t)
	for i := range 30 {
		if err := media.Put(t.Context(), fmt.Sprintf("folder/%02d", i), strings.NewReader(strings.Repeat("x", i*100)),
			storage.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	i := identity(t)
	o := options(local(t, t.TempDir()))
	o.Recipients, o.Identities = []age.Recipient{i.Recipient()}, []age.Identity{i}
	r := create(t, o)
	q := Request{Sources: []Labelled{{"media", Store{media}}}}
	first := backup(t, r, q)
	if first.Record.Files != 30 || len(first.Warnings) != 0 {
		t.Errorf("%+v", first)
	}
	sent.n.Store(0)
	if again := backup(t, r, q); again.Read != 0 || again.Unchanged != 30 || sent.n.Load() != 1 {
		t.Errorf("%+v, %d requests", again, sent.n.Load())
	}
	if err := media.Put(t.Context(), "folder/07", strings.NewReader(strings.Repeat("y", 700)),
		storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if third := backup(t, r, q); third.Unchanged != 29 || third.Read != 700 {
		t.Errorf("%+v", third)
	}
	if v := verify(t, r, VerifyRequest{Level: Contents}); len(v.Problems) != 0 {
		t.Errorf("%+v", v.Problems)
	}
}
