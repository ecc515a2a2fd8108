package storagetest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Bucket is a bucket of the server, with a proxy before it.
type Bucket struct {
	Name string
	// URL is the proxy's address; Server that of the server itself. The bucket's name is in
	// the path.
	URL, Server string
	// Close ends the proxy: the store is away.
	Close func()

	t     testing.TB
	dir   string
	proxy *httputil.ReverseProxy
	fault atomic.Pointer[Fault]
}

// Fault sees a request and says whether it answered it itself.
type Fault func(http.ResponseWriter, *http.Request) bool

// New makes an empty bucket. One server process serves the whole test run; where the
// program is not installed the test is left out, and fails in CI.
func New(t testing.TB) *Bucket {
	t.Helper()
	started(t)
	b := &Bucket{Name: fmt.Sprintf("bucket-%d", server.buckets.Add(1)), Server: "http://" + server.address, t: t}
	b.dir = filepath.Join(server.dir, "data", b.Name)
	if err := os.Mkdir(b.dir, 0o700); err != nil { // a folder is a bucket
		t.Fatal(err)
	}
	target, err := url.Parse(b.Server)
	if err != nil {
		t.Fatal(err)
	}
	b.proxy = &httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}}
	s := httptest.NewUnstartedServer(b)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	b.URL, b.Close = s.URL, s.Close
	return b
}

// NewLocked makes a bucket with versions and object lock, in which each new object is
// locked for some days from its writing; 0 is for none that says nothing of it. Keys and
// Read do not know its objects.
func NewLocked(t testing.TB, days int32) *Bucket {
	t.Helper()
	b := New(t)
	b.Name += "-locked"
	client := s3.New(s3.Options{BaseEndpoint: aws.String(b.URL), UsePathStyle: true, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider(Key, Secret, "")})
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(b.Name),
		ObjectLockEnabledForBucket: aws.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	if days == 0 {
		return b
	}
	if _, err := client.PutObjectLockConfiguration(t.Context(), &s3.PutObjectLockConfigurationInput{
		Bucket: aws.String(b.Name), ObjectLockConfiguration: &types.ObjectLockConfiguration{
			ObjectLockEnabled: types.ObjectLockEnabledEnabled,
			Rule: &types.ObjectLockRule{DefaultRetention: &types.DefaultRetention{Days: aws.Int32(days),
				Mode: types.ObjectLockRetentionModeCompliance}}}}); err != nil {
		t.Fatal(err)
	}
	return b
}

// ServeHTTP is the proxy.
func (b *Bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if fault := b.fault.Load(); fault == nil || !(*fault)(w, r) {
		b.Forward(w, r)
	}
}

// Forward gives a request to the server, for faults that change its answer.
func (b *Bucket) Forward(w http.ResponseWriter, r *http.Request) { b.proxy.ServeHTTP(w, r) }

// Break puts a fault before the server; nil takes it away.
func (b *Bucket) Break(fault Fault) {
	if fault == nil {
		b.fault.Store(nil)
		return
	}
	b.fault.Store(&fault)
}

// Keys are the objects, sorted, as the server has them on its disk.
func (b *Bucket) Keys() []string {
	b.t.Helper()
	var keys []string
	err := filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			key, _ := filepath.Rel(b.dir, path)
			keys = append(keys, filepath.ToSlash(key))
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	slices.Sort(keys)
	return keys
}

// Read is an object's content; it fails the test where there is none.
func (b *Bucket) Read(key string) []byte {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.dir, filepath.FromSlash(key)))
	if errors.Is(err, fs.ErrNotExist) {
		b.t.Fatalf("the bucket has %q and no %s", b.Keys(), key)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return content
}
