package storage

import (
	"bytes"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/storage/storagetest"
)

// waiting is a limit by a clock that only moves while somebody waits.
type waiting struct {
	sync.Mutex
	now time.Time
}

func (w *waiting) limit(rate int64) *Bandwidth {
	b := NewBandwidth(rate)
	b.now = func() time.Time {
		w.Lock()
		defer w.Unlock()
		return w.now
	}
	b.sleep = func(until time.Time, _ time.Duration) {
		w.Lock()
		defer w.Unlock()
		if until.After(w.now) {
			w.now = until
		}
	}
	return b
}

// What goes to a place and comes back takes the time that its limit allows, by the clock:
// a bucket and a host by SFTP.
func TestAPlaceTakesNoMoreThanItsBandwidth(t *testing.T) {
	const rate, size = 1 << 20, 4 << 20
	clock := waiting{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	bucket, ssh := storagetest.New(t), storagetest.StartSSH(t)
	inBucket, err := NewS3(S3Config{Bucket: bucket.Name, Endpoint: bucket.URL, PathStyle: true,
		AccessKey: storagetest.Key, SecretKey: storagetest.Secret, Bandwidth: clock.limit(rate)})
	if err != nil {
		t.Fatal(err)
	}
	bySFTP, err := NewSFTP(SFTPOptions{Host: ssh.Host, Port: ssh.Port, User: ssh.User, KeyFile: ssh.KeyFile,
		HostKey: ssh.Fingerprint, Dir: ssh.Dir + "/site", Bandwidth: clock.limit(rate)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bySFTP.Close() })
	content := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	for name, store := range map[string]Store{"s3": inBucket, "sftp": bySFTP} {
		took := func(what string, do func()) {
			t.Helper()
			began := clock.now
			do()
			// headers, signatures and encryption come on top
			if d := clock.now.Sub(began); d < size/rate*time.Second || d > size/rate*time.Second*5/4 {
				t.Errorf("%s: %s of %d bytes takes %v at %d bytes a second", name, what, size, d, rate)
			}
		}
		took("writing", func() {
			if err := store.Put(t.Context(), "a", bytes.NewReader(content), PutOptions{}); err != nil {
				t.Fatal(err)
			}
		})
		took("reading", func() {
			body, _, err := store.Open(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(body)
			if err != nil || !bytes.Equal(got, content) || body.Close() != nil {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
		})
	}
	if NewBandwidth(0) != nil {
		t.Error("no limit limits")
	}
}
