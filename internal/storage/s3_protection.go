package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// ErrProtected says that a store does not let an object be deleted, or not yet: it is
// locked, or the account lacks the right.
var ErrProtected = errors.New("the store does not let it be deleted")

// Protection is what a bucket does against deletion and overwriting.
type Protection struct {
	// Versions is true when the bucket keeps what was deleted or replaced as an older version.
	Versions bool
	// Locks is true when objects can have a lock; Mode (COMPLIANCE or GOVERNANCE) and For
	// are those that new objects get, "" and 0 where they get none.
	Locks bool
	Mode  string
	For   time.Duration
}

// Strong says whether not even the administrator of the bucket deletes a new object
// before its time.
func (p Protection) Strong() bool {
	return p.Mode == string(types.ObjectLockRetentionModeCompliance) && p.For > 0
}

// Protection asks the bucket. A store that knows neither versions nor locks has none.
func (s *S3) Protection(ctx context.Context) (Protection, error) {
	var p Protection
	bucket := aws.String(s.config.Bucket)
	versions, err := s.client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: bucket})
	switch {
	case err == nil:
		p.Versions = versions.Status == types.BucketVersioningStatusEnabled
	case !unknownCall(err):
		return p, fmt.Errorf("asking whether versions are kept: %w", s.failed("looking at the bucket", "", err))
	}
	lock, err := s.client.GetObjectLockConfiguration(ctx, &s3.GetObjectLockConfigurationInput{Bucket: bucket})
	if err != nil && unknownCall(err) {
		return p, nil
	}
	if err != nil {
		return p, fmt.Errorf("asking for its object lock: %w", s.failed("looking at the bucket", "", err))
	}
	c := lock.ObjectLockConfiguration
	if c == nil || c.ObjectLockEnabled != types.ObjectLockEnabledEnabled {
		return p, nil
	}
	p.Locks = true
	if c.Rule != nil && c.Rule.DefaultRetention != nil {
		days := aws.ToInt32(c.Rule.DefaultRetention.Days) + 365*aws.ToInt32(c.Rule.DefaultRetention.Years)
		p.Mode, p.For = string(c.Rule.DefaultRetention.Mode), time.Duration(days)*24*time.Hour
	}
	return p, nil
}

// unknownCall says whether an answer means that the bucket has no such thing.
func unknownCall(err error) bool {
	r := refusalOf(err)
	if r == nil {
		return false
	}
	switch r.api.ErrorCode() {
	case "ObjectLockConfigurationNotFoundError", "NotImplemented", "MethodNotAllowed", "VersioningNotConfigured",
		"NoSuchObjectLockConfiguration":
		return true
	}
	return false
}

// protected marks the answers of a store that does not let an object be deleted.
func protected(code string, err error) error {
	switch code {
	case "AccessDenied", "Forbidden", "ObjectLocked", "InvalidObjectState":
		return fmt.Errorf("%w: %w", ErrProtected, err)
	}
	return err
}
