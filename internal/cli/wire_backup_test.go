package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/storage"
	"github.com/cmsjobs/cmsjobs/internal/storage/storagetest"
)

// TestMediaInABucketAreBackedUpAndBroughtBack has a CMS whose settings name a
// bucket for its media, a real S3 API behind them, and only the CMS's settings
// to find it by.
func TestMediaInABucketAreBackedUpAndBroughtBack(t *testing.T) {
	t.Parallel()
	dir, db := sampleSite(t)
	bucket := storagetest.New(t)
	store, err := storage.NewS3(storage.S3Config{Bucket: bucket.Name, Endpoint: bucket.Server, PathStyle: true,
		AccessKey: storagetest.Key, SecretKey: storagetest.Secret})
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{"media_driver": "s3", "media_aws_access_key_id": storagetest.Key,
		"media_aws_secret_key": storagetest.Secret, "media_aws_default_region": "us-east-1",
		"media_aws_bucket": bucket.Name, "media_aws_endpoint": bucket.URL, "media_aws_use_path_style_endpoint": "1"} {
		db.MustExec(`INSERT INTO settings ("key", value) VALUES (?, ?)`, key, value)
	}
	// The bucket has ACLs: invoice.pdf is private, everything else public.
	var acls sync.Map
	bucket.Break(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			key := strings.TrimPrefix(r.URL.Path, "/"+bucket.Name+"/")
			acls.LoadOrStore(key, r.Header.Get("X-Amz-Acl")) // the server then refuses ACLs
		}
		if !r.URL.Query().Has("acl") {
			return false
		}
		to := "AllUsers"
		if strings.HasSuffix(r.URL.Path, "invoice.pdf") {
			to = "LogDelivery"
		}
		w.Header().Set("Content-Type", "application/xml")
		fmt.Fprintf(w, `<AccessControlPolicy><AccessControlList><Grant><Grantee xsi:type="Group" `+
			`xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><URI>http://acs.amazonaws.com/groups/global/%s</URI>`+
			`</Grantee><Permission>READ</Permission></Grant></AccessControlList></AccessControlPolicy>`, to)
		return true
	})
	photo := bytes.Repeat([]byte("photo \x00\xff"), 500_000) // read in several turns
	put := func(key string, content []byte) {
		t.Helper()
		if err := store.Put(t.Context(), key, bytes.NewReader(content), storage.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(key string, want []byte) {
		t.Helper()
		if got := bucket.Read(key); !bytes.Equal(got, want) {
			t.Errorf("%s holds %d bytes, not the %d that it had", key, len(got), len(want))
		}
	}
	put("news/photo ü.jpg", photo)
	put("logo.svg", []byte("<svg/>"))
	put("invoice.pdf", []byte("secret"))
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
	acls.Clear()
	for _, key := range []string{"logo.svg", "invoice.pdf"} {
		if err := store.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	restore := []string{"backup", "restore", "latest", "--paths", "media/**"}
	plan := on(append(restore, "--dry-run")...)
	want(t, plan, 0, "Creates 2 files and overwrites 1; ", "media/logo.svg", "media/news/photo ü.jpg", "To do it: --confirm")
	holds("news/photo ü.jpg", []byte("spoiled"))
	word := regexp.MustCompile(`--confirm (\S+)`).FindStringSubmatch(plan.out)[1]
	want(t, on(append(restore, "--confirm", word)...), 0)
	holds("news/photo ü.jpg", photo)
	holds("logo.svg", []byte("<svg/>"))
	holds("invoice.pdf", []byte("secret"))
	for name, want := range map[string]string{"logo.svg": "public-read", "invoice.pdf": ""} {
		if acl, _ := acls.Load(name); acl != want {
			t.Errorf("%s is written with the ACL %q, not %q", name, acl, want)
		}
	}

	bucket.Close()
	want(t, on("backup", "create", "--only-files"), 1, "media")
	want(t, on("backup", "show", "latest"), 0, `"complete"`)
}
