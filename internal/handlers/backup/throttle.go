package backup

import (
	"context"
	"io"

	"golang.org/x/time/rate"
)

// throttleBurst is how much a throttled file may be read at once.
const throttleBurst = 256 << 10

// throttled limits the reading of files as the dump's is limited.
func (r *run) throttled(ctx context.Context, from io.Reader) io.Reader {
	if r.c.Options.Throttle <= 0 {
		return from
	}
	if r.limiter == nil {
		r.limiter = rate.NewLimiter(rate.Limit(r.c.Options.Throttle), throttleBurst)
	}
	return throttledReader{ctx, from, r.limiter}
}

type throttledReader struct {
	ctx     context.Context
	from    io.Reader
	limiter *rate.Limiter
}

func (t throttledReader) Read(p []byte) (int, error) {
	p = p[:min(len(p), throttleBurst)]
	n, err := t.from.Read(p)
	if n > 0 {
		if waitErr := t.limiter.WaitN(t.ctx, n); waitErr != nil {
			return n, context.Cause(t.ctx)
		}
	}
	return n, err
}
