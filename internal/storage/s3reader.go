package storage

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// objectReader reads one version of an object over as many connections as it
// takes.
type objectReader struct {
	ctx     context.Context
	store   *S3
	key     string
	tag     *string
	size    int64 // −1 when the store did not say; then nothing is resumed
	at      int64
	body    io.ReadCloser
	resumes int
}

func (r *objectReader) Read(p []byte) (int, error) {
	for {
		n, err := r.body.Read(p)
		r.at += int64(n)
		if err == io.EOF && r.size >= 0 && r.at < r.size {
			err = io.ErrUnexpectedEOF
		}
		if err == nil || err == io.EOF {
			return n, err
		}
		if n > 0 {
			return n, nil // the fault comes back with the next Read
		}
		if err := r.resume(err); err != nil {
			return 0, r.store.failed("reading", r.key, err)
		}
	}
}

// resume opens the object again where the connection broke.
func (r *objectReader) resume(broken error) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if r.size < 0 || r.tag == nil || r.resumes <= 0 {
		return broken
	}
	r.resumes--
	out, err := r.store.client.GetObject(r.ctx, &s3.GetObjectInput{
		Bucket: aws.String(r.store.config.Bucket), Key: aws.String(r.store.full(r.key)),
		IfMatch: r.tag, Range: aws.String(fmt.Sprintf("bytes=%d-", r.at)),
	})
	if err != nil {
		return errors.Join(broken, err)
	}
	if aws.ToInt64(out.ContentLength) != r.size-r.at || aws.ToString(out.ETag) != *r.tag {
		return errors.Join(broken, errors.New("the store cannot resume the object"), out.Body.Close())
	}
	_ = r.body.Close() // it is broken already; its complaint says nothing new
	r.body = out.Body
	return nil
}

func (r *objectReader) Close() error { return r.body.Close() }
