package outbound

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// RetryAfter reads the header of that name in its two forms (RFC 9110, 10.2.3), and
// whether it says when to come back. The caller bounds the wait.
func RetryAfter(text string, now time.Time) (wait time.Duration, said bool) {
	if seconds, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 1<<30)) * time.Second, true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	return max(at.Sub(now), time.Second), true
}

// WithoutAddress takes the address out of an error of a client's Do: its path or
// query may be a secret.
func WithoutAddress(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
