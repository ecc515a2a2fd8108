package storage

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/cmsjobs/cmsjobs/internal/storage/storagetest"
)

// lockedBucket is a bucket with versions and a lock of a day on each new object, which the
// account that the store uses also owns.
func lockedBucket(t *testing.T) *S3 {
	t.Helper()
	b := storagetest.NewLocked(t, 1)
	s, err := NewS3(S3Config{Bucket: b.Name, Prefix: "site", Endpoint: b.URL, PathStyle: true,
		AccessKey: storagetest.Key, SecretKey: storagetest.Secret})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A bucket says how it protects, and a locked copy outlives whatever the account of the
// service does: overwriting it, deleting it, deleting its version.
func TestALockedCopyCannotBeDeletedByTheAccountThatWroteIt(t *testing.T) {
	plain := newVersity(t)
	if p, err := plain.Protection(t.Context()); err != nil || p != (Protection{}) {
		t.Errorf("a plain bucket: %+v, %v", p, err)
	}
	s := lockedBucket(t)
	p, err := s.Protection(t.Context())
	if err != nil || !p.Versions || !p.Locks || !p.Strong() || p.For != 24*time.Hour {
		t.Fatalf("%+v, %v", p, err)
	}
	put := func(text string) {
		t.Helper()
		if err := s.Put(t.Context(), "copy", strings.NewReader(text), PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	put("the backup")
	bucket, key := aws.String(s.config.Bucket), aws.String(s.full("copy"))
	head, err := s.client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: bucket, Key: key})
	if err != nil || head.VersionId == nil {
		t.Fatalf("%+v, %v", head, err)
	}
	put("overwritten")
	if err := s.Delete(t.Context(), "copy"); err != nil && !errors.Is(err, ErrProtected) {
		t.Fatal(err)
	}
	var denied smithy.APIError
	if _, err := s.client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: bucket, Key: key,
		VersionId: head.VersionId, BypassGovernanceRetention: aws.Bool(true)}); !errors.As(err, &denied) {
		t.Errorf("deleting the version: %v", err)
	}
	out, err := s.client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: bucket, Key: key, VersionId: head.VersionId})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	if text, err := io.ReadAll(out.Body); err != nil || string(text) != "the backup" {
		t.Errorf("it holds %q, %v", text, err)
	}
}
