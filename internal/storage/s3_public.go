package storage

import (
	"bytes"
	"context"
	"io"
	"slices"

	tmtypes "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
)

// aclState says whether a bucket takes the ACL of public objects. Where objects are
// private without it (DigitalOcean Spaces, older buckets of AWS), visitors need it: the CMS
// sends it with its own uploads. Buckets without ACLs, AWS's default since 2023, refuse it
// and have a policy instead.
type aclState = int32

const (
	aclUnknown aclState = iota
	aclTaken
	aclRefused
)

// aclRefusals are the answers of stores that do not take an ACL, or not from us.
var aclRefusals = []string{"AccessControlListNotSupported", "AccessDenied", "InvalidArgument", "InvalidRequest",
	"MethodNotAllowed", "NotImplemented"}

// putPublic writes an object that everybody may read. The first one that fits into
// memory shows whether the bucket takes the ACL.
func (s *S3) putPublic(ctx context.Context, key string, r io.Reader, o PutOptions) error {
	const acl = tmtypes.ObjectCannedACLPublicRead
	switch s.acl.Load() {
	case aclTaken:
		return s.failed("writing", key, s.upload(ctx, key, r, o, acl))
	case aclRefused:
		return s.failed("writing", key, s.upload(ctx, key, r, o, ""))
	}
	begin, err := io.ReadAll(io.LimitReader(r, minPart))
	if err != nil {
		return s.failed("writing", key, err)
	}
	if len(begin) == minPart { // could not be sent twice
		return s.failed("writing", key, s.upload(ctx, key, io.MultiReader(bytes.NewReader(begin), r), o, ""))
	}
	err = s.upload(ctx, key, bytes.NewReader(begin), o, acl)
	if err == nil {
		s.acl.Store(aclTaken)
		return nil
	}
	if refused := refusalOf(err); refused == nil || !slices.Contains(aclRefusals, refused.api.ErrorCode()) {
		return s.failed("writing", key, err)
	}
	if again := s.upload(ctx, key, bytes.NewReader(begin), o, ""); again != nil {
		return s.failed("writing", key, again)
	}
	s.acl.Store(aclRefused)
	return nil
}
