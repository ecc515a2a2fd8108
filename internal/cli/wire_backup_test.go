package cli

import (
	"bytes"
	"io"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// TestMediaInABucketAreBackedUpAndBroughtBack has a CMS whose settings name a
// bucket for its media, a real S3 API behind them, and only the CMS's settings
// to find it by.
func TestMediaInABucketAreBackedUpAndBroughtBack(t *testing.T) {
	dir, db := sampleSite(t)
	backend := s3mem.New()
	if err := backend.CreateBucket("media"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend, gofakes3.WithoutVersioning()).Server())
	t.Cleanup(server.Close)
	for key, value := range map[string]string{"media_driver": "s3", "media_aws_access_key_id": "key",
		"media_aws_secret_key": "secret", "media_aws_default_region": "us-east-1",
		"media_aws_bucket": "media", "media_aws_endpoint": server.URL, "media_aws_use_path_style_endpoint": "1"} {
		db.MustExec(`INSERT INTO settings ("key", value) VALUES (?, ?)`, key, value)
	}
	photo := bytes.Repeat([]byte("photo \x00\xff"), 500_000) // read in several turns
	put := func(key string, content []byte) {
		t.Helper()
		if _, err := backend.PutObject("media", key, map[string]string{}, bytes.NewReader(content),
			int64(len(content)), nil); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(key string, want []byte) {
		t.Helper()
		o, err := backend.GetObject("media", key, nil)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		defer o.Contents.Close()
		if got, err := io.ReadAll(o.Contents); !bytes.Equal(got, want) || err != nil {
			t.Errorf("%s holds %d bytes, not the %d that it had, %v", key, len(got), len(want), err)
		}
	}
	put("news/photo ü.jpg", photo)
	put("logo.svg", []byte("<svg/>"))
	on := func(args ...string) result {
		return call(t, nil, append([]string{"--cms", dir, "--set", "backup.free_space=1MiB"}, args...)...)
	}
	// Who may write the settings must not reach what only this machine can.
	want(t, on("backup", "create", "--only-files"), 1, "media.allow_private")
	private := on
	on = func(args ...string) result {
		return private(append([]string{"--set", "media.allow_private=127.0.0.0/8"}, args...)...)
	}
	want(t, on("backup", "create", "--only-files"), 0, "complete")

	put("news/photo ü.jpg", []byte("spoiled"))
	if _, err := backend.DeleteObject("media", "logo.svg"); err != nil {
		t.Fatal(err)
	}
	restore := []string{"backup", "restore", "latest", "--paths", "media/**"}
	plan := on(append(restore, "--dry-run")...)
	want(t, plan, 0, "1 new, 1 overwritten", "media/logo.svg", "media/news/photo ü.jpg", "To do it: --confirm")
	holds("news/photo ü.jpg", []byte("spoiled"))
	word := regexp.MustCompile(`--confirm (\S+)`).FindStringSubmatch(plan.out)[1]
	want(t, on(append(restore, "--confirm", word)...), 0)
	holds("news/photo ü.jpg", photo)
	holds("logo.svg", []byte("<svg/>"))

	server.Close()
	want(t, on("backup", "create", "--only-files"), 1, "media")
	want(t, on("backup", "show", "latest"), 0, `"complete"`)
}
