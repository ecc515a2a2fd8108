package jobs

import (
	"errors"
	"time"
)

// ErrLeaseLost says that a claim is no longer the worker's: its lease ran out
// and another took the job, or a person removed it. Nothing was written.
var ErrLeaseLost = errors.New("the lease on the job is lost")

// ErrShutdown is the cause of a cancelled context when the worker stops.
var ErrShutdown = errors.New("the worker is shutting down")

// ErrCancelled is the cause of a cancelled context when a person cancelled
// the running job.
var ErrCancelled = errors.New("the job was cancelled")

// ErrTimeout is the cause of a cancelled context when a run took longer than
// its type may.
var ErrTimeout = errors.New("the job ran longer than it may")

// ErrTooLarge says that a payload has more bytes than MaxPayload.
var ErrTooLarge = errors.New("the payload is too large")

type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// Permanent marks an error that repeating would not fix: the job fails permanently
// at once. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanentError{err}
}

// IsPermanent says whether err, or one that it wraps, was marked by Permanent.
func IsPermanent(err error) bool {
	var p permanentError
	return errors.As(err, &p)
}

type retryAfterError struct {
	error
	delay      time.Duration
	dependency string
}

func (e retryAfterError) Unwrap() error { return e.error }

// RetryAfter marks an error whose other side said when to come again (a rate
// limit): the job is released for d, and the attempt is not charged.
// RetryAfter(nil, d) is nil.
func RetryAfter(err error, d time.Duration) error { return WaitFor(err, "", d) }

// WaitFor is RetryAfter for a job that needs a dependency which is out (an open
// circuit breaker): it runs after d, or as soon as the dependency is back.
func WaitFor(err error, dependency string, d time.Duration) error {
	if err == nil {
		return nil
	}
	return retryAfterError{err, max(d, 0), dependency}
}

// AsRetryAfter returns the wait that RetryAfter or WaitFor put on err.
func AsRetryAfter(err error) (time.Duration, bool) {
	var r retryAfterError
	if errors.As(err, &r) {
		return r.delay, true
	}
	return 0, false
}

// waitsFor returns the dependency that WaitFor put on err, or "".
func waitsFor(err error) string {
	var r retryAfterError
	if errors.As(err, &r) {
		return r.dependency
	}
	return ""
}

// tooLargeError is ErrTooLarge with what a person needs to know.
type tooLargeError struct{ error }

// Unwrap returns the text.
func (e tooLargeError) Unwrap() error { return e.error }

func (e tooLargeError) Is(target error) bool { return target == ErrTooLarge }
