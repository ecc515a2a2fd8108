package storage

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/cmsjobs/cmsjobs/internal/storage/storagetest"
)

// faultyS3 is a bucket of a real server, behind a proxy with a switch for faults.
type faultyS3 struct{ *storagetest.Bucket }

func newFaultyS3(t *testing.T) faultyS3 {
	t.Helper()
	return faultyS3{storagetest.New(t)}
}

func (f faultyS3) store(t *testing.T, change func(*S3Config)) *S3 {
	t.Helper()
	c := S3Config{Bucket: f.Name, Prefix: "/site/backups/", Endpoint: f.URL, PathStyle: true,
		AccessKey: storagetest.Key, SecretKey: storagetest.Secret}
	if change != nil {
		change(&c)
	}
	s, err := NewS3(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// at is a store at an address where the test answers itself.
func at(t *testing.T, url string) *S3 {
	t.Helper()
	s, err := NewS3(S3Config{Bucket: "bucket", Prefix: "/site/backups/", Endpoint: url, PathStyle: true,
		AccessKey: "key", SecretKey: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// cut ends the connection in the middle of whatever it was doing.
func cut(http.ResponseWriter) bool {
	panic(http.ErrAbortHandler)
}

// newVersity is an empty bucket, straight at the server.
func newVersity(t *testing.T) *S3 {
	t.Helper()
	b := storagetest.New(t)
	s, err := NewS3(S3Config{Bucket: b.Name, Endpoint: b.Server, PathStyle: true, AccessKey: storagetest.Key,
		SecretKey: storagetest.Secret})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *S3) unfinished(ctx context.Context) (left []string, err error) {
	out, err := s.client.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: aws.String(s.config.Bucket)})
	if err = s.failed("listing", "", err); err != nil {
		return nil, err
	}
	for _, u := range out.Uploads {
		left = append(left, aws.ToString(u.Key))
	}
	return left, nil
}

func TestAPartThatIsRefusedOnceIsSentAgain(t *testing.T) {
	f := newFaultyS3(t)
	s := f.store(t, nil)
	var refused, cuts atomic.Int32
	f.Break(func(w http.ResponseWriter, r *http.Request) bool {
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
			f := newFaultyS3(t)
			s := f.store(t, nil)
			put(t, s, "k", "former")
			f.Break(func(w http.ResponseWriter, r *http.Request) bool {
				if breaks(r) {
					w.WriteHeader(http.StatusForbidden)
					return true
				}
				return false
			})
			if err := s.Put(t.Context(), "k", bytes.NewReader(make([]byte, 20<<20)), PutOptions{}); err == nil {
				t.Error("the upload succeeded")
			}
			f.Break(nil)
			if got := read(t, s, "k"); got != "former" {
				t.Errorf("the former object holds %.20q", got)
			}
			noLeftovers(t, s)
		})
	}
}

func TestABrokenDownloadIsResumed(t *testing.T) {
	f := newFaultyS3(t)
	s := f.store(t, nil)
	want := strings.Repeat("0123456789abcdef", 1<<16)
	put(t, s, "k", want)
	var gets atomic.Int32
	f.Break(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || gets.Add(1) > 1 {
			return false
		}
		whole := httptest.NewRecorder()
		f.Forward(whole, r)
		maps.Copy(w.Header(), whole.Header())
		_, _ = w.Write(whole.Body.Bytes()[:300_000])
		return cut(w)
	})
	if got := read(t, s, "k"); got != want {
		t.Errorf("%d bytes came back as others", len(got))
	}
	if gets.Load() != 2 {
		t.Errorf("%d requests, want one and its continuation", gets.Load())
	}
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
	for _, s := range []*S3{newFaultyS3(t).store(t, nil), newVersity(t)} { // with and without a prefix
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
	store := at(t, server.URL)
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
