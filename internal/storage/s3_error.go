package storage

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// refusal is a store's own answer to a request, without the SDK's words around it.
type refusal struct {
	error
	api    smithy.APIError
	status int    // 0 when unknown
	date   string // of the answer; "" when unknown
	id     string // by which the vendor finds the request; often ""
}

// refusalOf finds a store's answer in an error of the SDK; nil where none came.
func refusalOf(err error) *refusal {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return nil
	}
	r := &refusal{error: err, api: api}
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) && answer.Response != nil {
		r.status, r.date = answer.HTTPStatusCode(), answer.Response.Header.Get("Date")
	}
	var known interface{ ServiceRequestID() string }
	if errors.As(err, &known) {
		r.id = known.ServiceRequestID()
	}
	return r
}

func (r *refusal) Unwrap() error { return r.error }

func (r *refusal) Error() string {
	text := r.api.ErrorCode()
	if r.status != 0 {
		text = strings.TrimSpace(fmt.Sprintf("%d %s", r.status, text))
	}
	if message := r.api.ErrorMessage(); message != "" && message != r.api.ErrorCode() {
		text += ": " + message
	}
	if r.id != "" {
		text += " (request " + r.id + ")"
	}
	return text
}

// clock is what the store's clock says, for people.
func (r *refusal) clock() string {
	at, err := http.ParseTime(r.date)
	if err != nil {
		return ""
	}
	return " (its clock says " + at.UTC().Format(time.DateTime) + " UTC)"
}

// failed names the place and says what to do about the errors that people meet.
func (s *S3) failed(doing, key string, err error) error {
	if err == nil {
		return nil
	}
	if r := refusalOf(err); r != nil {
		err = s.explained(r)
	}
	if key != "" {
		doing += " " + key
	}
	return fmt.Errorf("%s in %s: %w", doing, s, err)
}

func (s *S3) explained(r *refusal) error {
	switch r.api.ErrorCode() {
	case "NoSuchKey", "NotFound", "NoSuchUpload":
		return fmt.Errorf("%w (%w)", ErrNotFound, r)
	case "NoSuchBucket":
		return fmt.Errorf("there is no bucket %s: create it or correct the configuration: %w", s.config.Bucket, r)
	case "InvalidAccessKeyId", "SignatureDoesNotMatch":
		return fmt.Errorf("the store refuses the credentials: check access key, secret key and region: %w", r)
	case "AccessDenied", "Forbidden":
		return fmt.Errorf("the credentials do not allow this: grant them objects and listing under the prefix: %w", r)
	case "RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture":
		return fmt.Errorf("the store says that this host's clock is wrong%s: set it, best by NTP (timedatectl "+
			"set-ntp true): %w", r.clock(), r)
	}
	return r
}
