package storage

import (
	"context"
	"net"
	"sync"
	"time"
)

// Bandwidth limits what connections to one place send and receive together. nil does not
// limit.
type Bandwidth struct {
	rate  int64 // bytes a second
	now   func() time.Time
	sleep func(until time.Time, d time.Duration)

	lock sync.Mutex
	free time.Time // when what was sent and received so far is paid for
}

// NewBandwidth limits to a number of bytes a second; from 1, else there is no limit.
func NewBandwidth(rate int64) *Bandwidth {
	if rate <= 0 {
		return nil
	}
	return &Bandwidth{rate: rate, now: time.Now, sleep: func(_ time.Time, d time.Duration) { time.Sleep(d) }}
}

// pieces is how many of them a second's bytes are sent in, so that each wait is short.
const pieces = 20

// piece is how many bytes are sent or received at once.
func (b *Bandwidth) piece() int { return int(max(b.rate/pieces, 1)) }

// wait waits until n more bytes may have been sent or received.
func (b *Bandwidth) wait(n int) {
	if n <= 0 {
		return
	}
	b.lock.Lock()
	now := b.now()
	if b.free.Before(now) {
		b.free = now // what was not used is not saved up
	}
	b.free = b.free.Add(time.Duration(int64(n) * int64(time.Second) / b.rate))
	until := b.free
	b.lock.Unlock()
	b.sleep(until, until.Sub(now))
}

// dial is how connections are opened.
type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// limited opens connections whose bytes are limited.
func (b *Bandwidth) limited(open dial) dial {
	if b == nil {
		return open
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := open(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &limitedConn{conn, b}, nil
	}
}

// limitedConn is a connection with a limit.
type limitedConn struct {
	net.Conn
	limit *Bandwidth
}

func (c *limitedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p[:min(len(p), c.limit.piece())])
	c.limit.wait(n)
	return n, err
}

func (c *limitedConn) Write(p []byte) (written int, err error) {
	for written < len(p) && err == nil {
		var n int
		n, err = c.Conn.Write(p[written:min(len(p), written+c.limit.piece())])
		written += n
		c.limit.wait(n)
	}
	return written, err
}
