package sitemap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// endpoint submits addresses of one host to the configured search engines.
type endpoint struct {
	http      *http.Client
	now       func() time.Time
	addresses []string
	host, key string
	keyURL    string
}

// body is what indexnow.org/documentation asks for.
type body struct {
	Host        string   `json:"host"`
	Key         string   `json:"key"`
	KeyLocation string   `json:"keyLocation"`
	URLList     []string `json:"urlList"`
}

// send submits one call to every endpoint. It is accepted when one of them
// took it, as they pass it on to each other; what others said is kept.
func (e *endpoint) send(ctx context.Context, locs []string, s *Submission) error {
	text, err := json.Marshal(body{e.host, e.key, e.keyURL, locs})
	if err != nil {
		return fmt.Errorf("encoding the submission: %w", err)
	}
	accepted := false
	var failed []error
	for _, address := range e.addresses {
		status, err := e.post(ctx, address, text)
		if err != nil {
			failed = append(failed, err)
			if len(s.Refusals) < maxSkipped {
				s.Refusals = append(s.Refusals, e.hide(err.Error()))
			}
			continue
		}
		accepted, s.Status = true, status
	}
	if s.Calls++; accepted {
		return nil
	}
	return e.worst(failed)
}

// worst joins what all endpoints said into what the job should do: wait where
// one asked for it, else retry where one may get over it, else give up.
func (e *endpoint) worst(failed []error) error {
	all := errors.New(e.hide(errors.Join(failed...).Error()))
	permanent, addresses := true, true
	for _, err := range failed {
		addresses = addresses && errors.As(err, new(addressError))
		if wait, ok := jobs.AsRetryAfter(err); ok {
			return jobs.RetryAfter(all, wait)
		}
		permanent = permanent && jobs.IsPermanent(err)
	}
	switch {
	case addresses:
		return jobs.Permanent(addressError{all})
	case permanent:
		return jobs.Permanent(all)
	}
	return all
}

// addressError is a refusal that may be for one address among others.
type addressError struct{ error }

func (e addressError) Unwrap() error { return e.error }

// ours says whether an address is of the site's host: the only ones that a
// call may have.
func (e *endpoint) ours(loc string) bool {
	u, err := url.Parse(loc)
	return err == nil && strings.EqualFold(u.Host, e.host)
}

// hide keeps the key out of logs.
func (e *endpoint) hide(text string) string { return strings.ReplaceAll(text, e.key, "<key>") }

// post returns the status of an accepted call, an error for every other.
func (e *endpoint) post(ctx context.Context, address string, text []byte) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		return 0, jobs.Permanent(fmt.Errorf("the IndexNow endpoint %q is no address: %w", address, err))
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	resp, err := e.http.Do(r) //nolint:bodyclose // ReadBody does
	if errors.Is(err, outbound.ErrRefused) {
		return 0, jobs.Permanent(fmt.Errorf("submitting to IndexNow: %w", err))
	}
	if err != nil {
		return 0, fmt.Errorf("submitting to IndexNow: %w", err)
	}
	answer, err := outbound.ReadBody(resp)
	if resp.StatusCode/100 == 2 {
		return resp.StatusCode, nil // 200 and 202: accepted; what the body says does not matter
	}
	if err != nil {
		answer = nil
	}
	return 0, e.refusal(r.URL.Host, resp, answer)
}

// refusal turns an answer into what to do about it.
func (e *endpoint) refusal(host string, resp *http.Response, answer []byte) error {
	said := fmt.Sprintf("%s answered %s %.200q", host, resp.Status, bytes.TrimSpace(answer))
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests:
		return jobs.RetryAfter(fmt.Errorf("%s: too many submissions", said),
			e.retryAfter(resp.Header.Get("Retry-After")))
	case code == http.StatusBadRequest:
		return jobs.Permanent(addressError{fmt.Errorf("%s: it does not understand the submission; check that the "+
			"endpoint speaks IndexNow", said)})
	case code == http.StatusForbidden:
		return jobs.Permanent(fmt.Errorf("%s: it does not accept the key; check that %s shows the key and nothing "+
			"else to everybody", said, e.keyURL))
	case code == http.StatusUnprocessableEntity:
		return jobs.Permanent(addressError{fmt.Errorf("%s: the addresses are not of the host %s or the key is not "+
			"for it; check APP_URL in the CMS's .env", said, e.host)})
	case code == http.StatusRequestTimeout || code >= 500:
		return errors.New(said)
	case code/100 == 3:
		return jobs.Permanent(fmt.Errorf("%s: it sends to %q; configure the endpoint that is meant", said,
			resp.Header.Get("Location")))
	}
	return jobs.Permanent(fmt.Errorf("%s: check the endpoint's address", said))
}

const (
	defaultWait = time.Minute
	longestWait = 24 * time.Hour
)

// retryAfter reads seconds or a date (RFC 9110 §10.2.3).
func (e *endpoint) retryAfter(header string) time.Duration {
	if wait, said := outbound.RetryAfter(header, e.now()); said {
		return min(wait, longestWait)
	}
	return defaultWait
}
