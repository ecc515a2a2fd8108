package storage

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// everybody is whom an ACL names for visitors.
const everybody = "http://acs.amazonaws.com/groups/global/AllUsers"

// Private says that an object's ACL lets visitors not read it. A bucket that has no ACLs,
// or does not show them, knows no private objects; it is asked once. A bucket whose policy
// decides shows the owner alone: its objects need no ACL either.
func (s *S3) Private(ctx context.Context, key string) (bool, error) {
	if s.aclHidden.Load() {
		return false, nil
	}
	if err := CheckKey(key); err != nil {
		return false, err
	}
	out, err := s.client.GetObjectAcl(ctx, &s3.GetObjectAclInput{Bucket: aws.String(s.config.Bucket),
		Key: aws.String(s.full(key))})
	if refused := refusalOf(err); refused != nil && slices.Contains(aclRefusals, refused.api.ErrorCode()) {
		s.aclHidden.Store(true)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking who may read: %w", s.failed("reading", key, err))
	}
	return !slices.ContainsFunc(out.Grants, func(g types.Grant) bool {
		return g.Grantee != nil && aws.ToString(g.Grantee.URI) == everybody &&
			(g.Permission == types.PermissionRead || g.Permission == types.PermissionFullControl)
	}), nil
}
