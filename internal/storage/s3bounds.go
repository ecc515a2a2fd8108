package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Bounds of what a store may send. A page of 1,000 keys has 0.5 MiB.
const (
	maxAnswer = 2 << 20
	// answerTime is for a whole answer that is no object. Large uploads are
	// completed by some vendors within minutes.
	answerTime = 10 * time.Minute
	// stallTime is how long an object's next bytes may take.
	stallTime = time.Minute
	// headerTime is the wait between a request and its answer's beginning.
	headerTime = 5 * time.Minute
)

// ErrUnbounded says that a store sent more, or more slowly, than an answer may
// be.
var ErrUnbounded = errors.New("the store's answer breaks the limits")

// redirect follows what keeps method and body, as the SDK's own client does:
// Amazon sends it while a bucket is new.
func redirect(next *http.Request, via []*http.Request) error {
	status := next.Response.StatusCode
	if len(via) < 4 && (status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect) {
		return nil
	}
	return http.ErrUseLastResponse
}

// boundedTransport bounds answers: what the SDK reads into memory as a whole,
// and the time of the rest.
type boundedTransport struct {
	base http.RoundTripper
	// Time limits; those above, and shorter ones in tests.
	answer, stall time.Duration
}

// maxIdle connections are kept: one for each object that a caller reads at the
// same time. Go's own number is 2; the others would be closed after each object.
const maxIdle = 128

func newTransport(open dial, limit *Bandwidth) http.RoundTripper {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.ResponseHeaderTimeout = headerTime
	base.MaxResponseHeaderBytes = 256 << 10
	base.MaxIdleConns, base.MaxIdleConnsPerHost = maxIdle, maxIdle
	if open != nil {
		base.DialContext, base.Proxy = open, nil // a proxy would dial for us, unchecked
	}
	base.DialContext = limit.limited(base.DialContext)
	return base
}

// RoundTrip implements http.RoundTripper.
func (t *boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	answer, err := t.base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel(err)
		return nil, err
	}
	body := &boundedBody{ReadCloser: answer.Body, ctx: ctx, cancel: cancel, left: maxAnswer, stall: t.stall}
	if r.Method == http.MethodGet && r.URL.Query().Get("x-id") == "GetObject" && answer.StatusCode/100 == 2 {
		body.left = -1 // streamed
	} else {
		body.end = time.AfterFunc(t.answer,
			func() { cancel(fmt.Errorf("%w: it takes longer than %s", ErrUnbounded, t.answer)) })
	}
	answer.Body = body
	return answer, nil
}

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
func (t *boundedTransport) CloseIdleConnections() {
	if c, can := t.base.(interface{ CloseIdleConnections() }); can {
		c.CloseIdleConnections()
	}
}

// boundedBody is an answer that must go on, and, unless left is negative, end.
type boundedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	end    *time.Timer
	stall  time.Duration
	left   int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	stalled := time.AfterFunc(b.stall,
		func() { b.cancel(fmt.Errorf("%w: nothing came for %s", ErrUnbounded, b.stall)) })
	defer stalled.Stop()
	if b.left >= 0 && int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil && errors.Is(err, context.Canceled) {
		err = context.Cause(b.ctx)
	}
	if b.left < 0 {
		return n, err
	}
	if int64(n) > b.left {
		return 0, fmt.Errorf("%w: more than %d bytes", ErrUnbounded, maxAnswer)
	}
	b.left -= int64(n)
	return n, err
}

func (b *boundedBody) Close() error {
	if b.end != nil {
		b.end.Stop()
	}
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
