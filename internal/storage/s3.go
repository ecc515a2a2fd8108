package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	tmtypes "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// S3Config says where a bucket is and how to reach it.
type S3Config struct {
	Bucket string
	// Prefix is put before every key, without slashes at its ends.
	Prefix string
	// Endpoint is the URL of a store that speaks S3's API; "" means AWS.
	Endpoint string
	// Region defaults to us-east-1, which stores beside AWS mostly ignore.
	Region string
	// PathStyle puts the bucket into the path instead of the host's name
	// (minio, most private stores).
	PathStyle bool
	AccessKey string
	SecretKey string
	// SessionToken of temporary credentials; mostly "".
	SessionToken string
	// MaxParts of one upload; 0 means 10,000 at AWS and 1,000 elsewhere, as
	// some vendors allow no more.
	MaxParts int
	// Retries of one request; 0 means 3 attempts.
	Retries int
	// Watch wraps what sends the requests; nil is nothing.
	Watch func(http.RoundTripper) http.RoundTripper
	// Dial opens connections; nil is the system's. With it no proxy is used.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Bandwidth limits the connections; nil is no limit.
	Bandwidth *Bandwidth
}

// S3 keeps objects in a bucket. Uploads are streamed in parts that are held in
// memory: up to four of 8 MiB, fewer and larger ones for very large objects.
type S3 struct {
	client *s3.Client
	config S3Config
	acl    atomic.Int32 // an aclState
	// aclHidden says that the bucket does not show ACLs.
	aclHidden atomic.Bool
}

// NewS3 checks the configuration; it does not talk to the bucket yet.
func NewS3(c S3Config) (*S3, error) {
	if c.Bucket == "" || c.AccessKey == "" || c.SecretKey == "" {
		return nil, errors.New("a store in S3 needs bucket, access key and secret key")
	}
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	if c.Retries == 0 {
		c.Retries = 3
	}
	if c.MaxParts == 0 {
		c.MaxParts = 10_000
		if c.Endpoint != "" {
			c.MaxParts = 1000
		}
	}
	c.Prefix = strings.Trim(c.Prefix, "/")
	o := s3.Options{
		Region:       c.Region,
		Credentials:  credentials.NewStaticCredentialsProvider(c.AccessKey, c.SecretKey, c.SessionToken),
		UsePathStyle: c.PathStyle,
		// The SDK's newer default checksums are refused by many other vendors.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
		RetryMaxAttempts:           c.Retries,
	}
	if c.Endpoint != "" {
		o.BaseEndpoint = aws.String(c.Endpoint)
	}
	send := newTransport(c.Dial, c.Bandwidth)
	if c.Watch != nil {
		send = c.Watch(send)
	}
	o.HTTPClient = &http.Client{Transport: &boundedTransport{base: send, answer: answerTime, stall: stallTime},
		CheckRedirect: redirect}
	return &S3{client: s3.New(o), config: c}, nil
}

// String is the store's place, for messages and pages.
func (s *S3) String() string {
	return "s3://" + strings.TrimSuffix(s.config.Bucket+"/"+s.config.Prefix, "/")
}

func (s *S3) full(key string) string {
	if s.config.Prefix == "" {
		return key
	}
	return s.config.Prefix + "/" + key
}

// abortTimeout is what the abort of a failed upload may take after its own
// context ended.
const abortTimeout = 20 * time.Second

// Put streams r in parts. An upload that fails is aborted, so that nobody pays
// for parts that no object has; the former object under key stays.
func (s *S3) Put(ctx context.Context, key string, r io.Reader, o PutOptions) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if o.Public {
		return s.putPublic(ctx, key, r, o)
	}
	return s.failed("writing", key, s.upload(ctx, key, r, o, ""))
}

func (s *S3) upload(ctx context.Context, key string, r io.Reader, o PutOptions, acl tmtypes.ObjectCannedACL) error {
	size, atOnce := parts(o.ExpectedSize, s.config.MaxParts)
	in := &transfermanager.UploadObjectInput{
		Bucket: aws.String(s.config.Bucket), Key: aws.String(s.full(key)), Body: contextReader{ctx, r}, ACL: acl,
	}
	if o.ContentType != "" {
		in.ContentType = aws.String(o.ContentType)
	}
	uploader := transfermanager.New(s.client, func(t *transfermanager.Options) {
		t.PartSizeBytes, t.MultipartUploadThreshold, t.Concurrency = size, size, atOnce
		t.MaxUploadParts = 10_000
		t.FailTimeout = abortTimeout
		t.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	})
	_, err := uploader.UploadObject(ctx, in)
	return err
}

const (
	minPart    = 8 << 20
	partMemory = 24 << 20
)

// parts chooses how large parts are and how many are sent at once: 8 MiB and
// three, unless the object would then have more parts than it may. A quarter
// is added, as sizes are guesses.
func parts(expected int64, limit int) (size int64, atOnce int) {
	size = minPart
	if need := (expected + expected/4) / int64(limit); need > size {
		size = (need>>20 + 1) << 20
	}
	return size, int(max(1, partMemory/size))
}

// Open implements Store. A connection that breaks while the object is read is
// made again where it broke, as long as the object is still the same.
func (s *S3) Open(ctx context.Context, key string) (io.ReadCloser, Info, error) {
	if err := CheckKey(key); err != nil {
		return nil, Info{}, err
	}
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(s.config.Bucket),
		Key: aws.String(s.full(key))})
	if err != nil {
		return nil, Info{}, s.failed("reading", key, err)
	}
	size := int64(-1)
	if out.ContentLength != nil {
		size = *out.ContentLength
	}
	body := &objectReader{ctx: ctx, store: s, key: key, tag: out.ETag, size: size, body: out.Body,
		resumes: s.config.Retries}
	return body, Info{Key: key, Size: size, Modified: aws.ToTime(out.LastModified)}, nil
}

// Stat implements Store.
func (s *S3) Stat(ctx context.Context, key string) (Info, error) {
	if err := CheckKey(key); err != nil {
		return Info{}, err
	}
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: aws.String(s.config.Bucket),
		Key: aws.String(s.full(key))})
	if err != nil {
		return Info{}, s.failed("looking for", key, err)
	}
	return Info{Key: key, Size: aws.ToInt64(out.ContentLength), Modified: aws.ToTime(out.LastModified)}, nil
}

// Delete implements Store.
func (s *S3) Delete(ctx context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(s.config.Bucket),
		Key: aws.String(s.full(key))})
	if r := refusalOf(err); r != nil {
		return s.undeleted(key, r)
	}
	return s.failed("deleting", key, err)
}

// undeleted is what a refused deletion means; one of an object that is not there is no
// error.
func (s *S3) undeleted(key string, r *refusal) error {
	err := s.failed("deleting", key, r)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return protected(r.api.ErrorCode(), err)
}

// deleteAtOnce is how many objects the protocol deletes with one call.
const deleteAtOnce = 1000

// DeleteAll removes objects, 1,000 with each call; those that are not there are
// no error. Where the store refuses some, the error names the first. A store
// that does not know the call is asked for each object.
func (s *S3) DeleteAll(ctx context.Context, keys []string) error {
	for batch := range slices.Chunk(keys, deleteAtOnce) {
		objects := make([]types.ObjectIdentifier, len(batch))
		for i, key := range batch {
			if err := CheckKey(key); err != nil {
				return err
			}
			objects[i].Key = aws.String(s.full(key))
		}
		out, err := s.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: aws.String(s.config.Bucket),
			Delete: &types.Delete{Objects: objects, Quiet: aws.Bool(true)}})
		if err != nil {
			for _, key := range batch {
				if err := s.Delete(ctx, key); err != nil {
					return err
				}
			}
			continue
		}
		for _, e := range out.Errors {
			if aws.ToString(e.Code) != "NoSuchKey" {
				return protected(aws.ToString(e.Code), fmt.Errorf("deleting %s and %d others in %s: %s: %s",
					aws.ToString(e.Key), len(out.Errors)-1, s, aws.ToString(e.Code), aws.ToString(e.Message)))
			}
		}
	}
	return nil
}

// List implements Store. Objects whose names are no keys (a folder's marker
// that ends in "/") are left out.
func (s *S3) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{
			Bucket: aws.String(s.config.Bucket), Prefix: aws.String(s.full(prefix)),
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(Info{}, s.failed("listing", prefix, err))
				return
			}
			for _, object := range page.Contents {
				key := strings.TrimPrefix(aws.ToString(object.Key), s.full(""))
				if CheckKey(key) != nil {
					continue
				}
				if !yield(Info{Key: key, Size: aws.ToInt64(object.Size), Modified: aws.ToTime(object.LastModified),
					Tag: aws.ToString(object.ETag)}, nil) {
					return
				}
			}
		}
	}
}

// Sweep aborts uploads under prefix that were begun before the given moment
// and never completed, and says how many.
func (s *S3) Sweep(ctx context.Context, prefix string, before time.Time) (removed int, err error) {
	pages := s3.NewListMultipartUploadsPaginator(s.client, &s3.ListMultipartUploadsInput{
		Bucket: aws.String(s.config.Bucket), Prefix: aws.String(s.full(prefix)),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if errors.Is(s.failed("", "", err), ErrNotFound) {
			return removed, nil // some stores say so where there is none
		}
		if err != nil {
			return removed, s.failed("listing unfinished uploads under", prefix, err)
		}
		for _, u := range page.Uploads {
			if !aws.ToTime(u.Initiated).Before(before) {
				continue
			}
			_, err := s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
				Bucket: aws.String(s.config.Bucket), Key: u.Key, UploadId: u.UploadId,
			})
			if err = s.failed("aborting an unfinished upload of", aws.ToString(u.Key), err); err != nil &&
				!errors.Is(err, ErrNotFound) {
				return removed, err
			}
			removed++
		}
	}
	return removed, nil
}
