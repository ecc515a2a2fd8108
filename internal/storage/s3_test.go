package storage

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// fakeS3 is an S3 API in this process, with a switch for faults before it.
type fakeS3 struct {
	url string
	// fault sees each request and says whether it answered it itself.
	fault atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
}

func newFakeS3(t *testing.T) *fakeS3 {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	api := gofakes3.New(backend, gofakes3.WithoutVersioning()).Server()
	f := &fakeS3{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fault := f.fault.Load(); fault != nil && (*fault)(w, r) {
			return
		}
		api.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *fakeS3) store(t *testing.T, change func(*S3Config)) *S3 {
	t.Helper()
	c := S3Config{Bucket: "bucket", Prefix: "/site/backups/", Endpoint: f.url, PathStyle: true, AccessKey: "key",
		SecretKey: "secret"}
	if change != nil {
		change(&c)
	}
	s, err := NewS3(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (f *fakeS3) breaks(fault func(http.ResponseWriter, *http.Request) bool) { f.fault.Store(&fault) }

// cut ends the connection in the middle of whatever it was doing.
func cut(http.ResponseWriter) bool {
	panic(http.ErrAbortHandler)
}

var versity struct {
	sync.Once
	port int
	err  error
	// stdin stays referenced: were it collected, its end would end the server.
	stdin io.Closer
}

// newVersity returns an empty bucket of a versitygw process, which checks
// signatures. One process serves the whole test run.
func newVersity(t *testing.T) *S3 {
	t.Helper()
	versity.Do(func() { versity.port, versity.err = startVersity() })
	if versity.err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no versitygw: %v", versity.err)
		}
		t.Skipf("no versitygw: %v", versity.err)
	}
	bucket := strings.ToLower("b" + strconv.FormatInt(time.Now().UnixNano(), 36))
	s, err := NewS3(S3Config{Bucket: bucket, Endpoint: "http://127.0.0.1:" + strconv.Itoa(versity.port),
		PathStyle: true, AccessKey: "tester", SecretKey: "tester-secret"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket}); err != nil {
		t.Fatal(err)
	}
	return s
}

// supervise ends the server and removes its folder when our end of its
// standard input closes, however this process ends.
const supervise = `dir=$1; shift; "$@" >"$dir/log" 2>&1 & pid=$!; read -r _; kill -9 $pid; wait $pid 2>/dev/null; rm -rf "$dir"`

// virtualDomain is where the server looks for buckets' names in the host.
const virtualDomain = "s3.test"

func startVersity() (int, error) {
	program, err := exec.LookPath("versitygw")
	if err != nil {
		out, goErr := exec.Command("go", "env", "GOPATH").Output()
		if goErr != nil {
			return 0, errors.Join(err, goErr)
		}
		if program, err = exec.LookPath(filepath.Join(strings.TrimSpace(string(out)), "bin", "versitygw")); err != nil {
			return 0, errors.New("go install github.com/versity/versitygw/cmd/versitygw@v1.8.0")
		}
	}
	dir, err := os.MkdirTemp("", "cmsjobs-versitygw-")
	if err != nil {
		return 0, err
	}
	for _, sub := range []string{"data", "meta"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return 0, err
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	address := "127.0.0.1:" + strconv.Itoa(port)
	cmd := exec.Command("/bin/sh", "-c", supervise, "sh", dir, program, "--quiet", "--port", address,
		"--access", "tester", "--secret", "tester-secret", "--virtual-domain", virtualDomain, "posix", "--sidecar",
		filepath.Join(dir, "meta"), filepath.Join(dir, "data"))
	if versity.stdin, err = cmd.StdinPipe(); err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return port, c.Close()
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(filepath.Join(dir, "log"))
			return 0, errors.Join(err, errors.New(string(text)))
		}
	}
}

func (s *S3) unfinished(ctx context.Context) (left []string, err error) {
	out, err := s.client.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: aws.String(s.config.Bucket)})
	if err = s.failed("listing", "", err); errors.Is(err, ErrNotFound) {
		return nil, nil // gofakes3's way to say "none"
	}
	if err != nil {
		return nil, err
	}
	for _, u := range out.Uploads {
		left = append(left, aws.ToString(u.Key))
	}
	return left, nil
}

func TestAPartThatIsRefusedOnceIsSentAgain(t *testing.T) {
	f := newFakeS3(t)
	s := f.store(t, nil)
	var refused, cuts atomic.Int32
	f.breaks(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Query().Get("partNumber") == "2" && refused.Add(1) == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		case r.URL.Query().Get("partNumber") == "3" && cuts.Add(1) == 1:
			return cut(w)
		}
		return false
	})
	want := bytes.Repeat([]byte("0123456789abcdef"), 3<<20/2)
	if err := s.Put(t.Context(), "k", bytes.NewReader(want), PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := read(t, s, "k"); got != string(want) || refused.Load() < 2 || cuts.Load() < 2 {
		t.Errorf("%d bytes came back, %d and %d tries", len(got), refused.Load(), cuts.Load())
	}
}

func TestAnUploadThatCannotEndIsAborted(t *testing.T) {
	for name, breaks := range map[string]func(r *http.Request) bool{
		"part refused": func(r *http.Request) bool { return r.URL.Query().Get("partNumber") == "2" },
		"completion refused": func(r *http.Request) bool {
			return r.Method == http.MethodPost &&
				r.URL.Query().Has("uploadId")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeS3(t)
			s := f.store(t, nil)
			put(t, s, "k", "former")
			f.breaks(func(w http.ResponseWriter, r *http.Request) bool {
				if breaks(r) {
					w.WriteHeader(http.StatusForbidden)
					return true
				}
				return false
			})
			if err := s.Put(t.Context(), "k", bytes.NewReader(make([]byte, 20<<20)), PutOptions{}); err == nil {
				t.Error("the upload succeeded")
			}
			f.breaks(func(http.ResponseWriter, *http.Request) bool { return false })
			if got := read(t, s, "k"); got != "former" {
				t.Errorf("the former object holds %.20q", got)
			}
			noLeftovers(t, s)
		})
	}
}

func TestABrokenDownloadIsResumed(t *testing.T) {
	f := newFakeS3(t)
	s := f.store(t, nil)
	want := strings.Repeat("0123456789abcdef", 1<<16)
	put(t, s, "k", want)
	var gets atomic.Int32
	f.breaks(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || gets.Add(1) > 1 {
			return false
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(want)))
		info := fetchHead(t, f.url+r.URL.Path)
		w.Header().Set("ETag", info.Get("ETag"))
		w.Header().Set("Last-Modified", info.Get("Last-Modified"))
		io.WriteString(w, want[:300_000])
		return cut(w)
	})
	if got := read(t, s, "k"); got != want {
		t.Errorf("%d bytes came back as others", len(got))
	}
	if gets.Load() != 2 {
		t.Errorf("%d requests, want one and its continuation", gets.Load())
	}
}

func fetchHead(t *testing.T, url string) http.Header {
	resp, err := http.Head(url)
	if err != nil {
		t.Error(err)
		return http.Header{}
	}
	resp.Body.Close()
	return resp.Header
}

func TestWrongCredentialsSayWhatToDo(t *testing.T) {
	good := newVersity(t)
	c := good.config
	c.SecretKey = "wrong"
	s, err := NewS3(c)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Put(t.Context(), "k", strings.NewReader("x"), PutOptions{})
	if err == nil || !strings.Contains(err.Error(), "check access key") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("%v", err)
	}
	c = good.config
	c.Bucket = "nobody-has-this"
	if s, err = NewS3(c); err != nil {
		t.Fatal(err)
	}
	if err = s.Put(t.Context(), "k", strings.NewReader("x"), PutOptions{}); err == nil ||
		!strings.Contains(err.Error(), "create it") {
		t.Errorf("%v", err)
	}
}

func TestSweepAbortsForgottenUploads(t *testing.T) {
	for _, s := range []*S3{newFakeS3(t).store(t, nil), newVersity(t)} {
		if _, err := s.client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{
			Bucket: aws.String(s.config.Bucket), Key: aws.String(s.full("a/k"))}); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Sweep(t.Context(), "", time.Now().Add(-time.Hour)); n != 0 || err != nil {
			t.Errorf("a young upload is swept: %d, %v", n, err)
		}
		if n, err := s.Sweep(t.Context(), "a/", time.Now().Add(time.Hour)); n != 1 || err != nil {
			t.Errorf("an old upload is not swept: %d, %v", n, err)
		}
		noLeftovers(t, s)
	}
}

func TestPartSizes(t *testing.T) {
	for _, c := range []struct {
		expected int64
		limit    int
		size     int64
		atOnce   int
	}{
		{0, 1000, 8 << 20, 3},
		{5 << 30, 1000, 8 << 20, 3},
		{10 << 30, 1000, 13 << 20, 1},
		{100 << 30, 10_000, 13 << 20, 1},
		{1 << 40, 1000, 1311 << 20, 1},
	} {
		size, atOnce := parts(c.expected, c.limit)
		if size != c.size || atOnce != c.atOnce {
			t.Errorf("parts(%d, %d) = %d MiB × %d, want %d MiB × %d", c.expected, c.limit, size>>20, atOnce,
				c.size>>20, c.atOnce)
		}
		if c.expected > 0 && c.expected/size >= int64(c.limit) {
			t.Errorf("%d bytes in parts of %d are more than %d", c.expected, size, c.limit)
		}
	}
}

// Reading many objects at once, again and again, needs no more connections than
// are read from at once.
func TestConnectionsAreKeptForManyReaders(t *testing.T) {
	const readers = 64
	var opened atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "content")
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	store := (&fakeS3{url: server.URL}).store(t, nil)
	var group sync.WaitGroup
	for range readers {
		group.Go(func() {
			for range 20 {
				body, _, err := store.Open(t.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := io.ReadAll(body); err != nil {
					t.Error(err)
				}
				body.Close()
			}
		})
	}
	group.Wait()
	if n := opened.Load(); n > 2*readers {
		t.Errorf("%d connections for %d readers", n, readers)
	}
}
