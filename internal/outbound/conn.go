package outbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// ErrUnbounded says that a server sent more than a protocol needs: a line, or
// an answer, beyond its limit. The connection is of no more use.
var ErrUnbounded = errors.New("the server's answer breaks the limits")

// ReadLimits bound what one server may send. Zero fields bound nothing.
type ReadLimits struct {
	// Line is how many bytes may come without a line end.
	Line int
	// Answer is how many bytes may come between two writes.
	Answer int64
	// Time is how long an answer may take as a whole, from the first wait for it;
	// the connection's own deadlines apply besides, and the earlier one wins.
	Time time.Duration
	// Inspect sees all that was read, in pieces, before the caller does. Its
	// error ends the connection.
	Inspect func(piece []byte) error
}

// Limit returns conn with bounded reads. Put it above TLS where possible: below
// it, Line means nothing, but Answer still holds.
func Limit(conn net.Conn, l ReadLimits) *LimitedConn {
	return &LimitedConn{Conn: conn, limits: l}
}

// LimitedConn is a connection with ReadLimits. It is read by one goroutine and written by one goroutine at a time,
// as net.Conn is used by clients of request and answer.
type LimitedConn struct {
	net.Conn
	limits ReadLimits

	mu       sync.Mutex
	line     int
	answer   int64
	waiting  bool      // an answer was begun since the last write
	deadline time.Time // that the caller set for reading
	broken   error
}

// Broken is the error that ended the connection, nil while the server kept to
// the limits: for clients that only say that it was closed.
func (c *LimitedConn) Broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// Read implements net.Conn.
func (c *LimitedConn) Read(p []byte) (int, error) {
	if err := c.begin(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if broken := c.count(p[:n]); broken != nil {
		c.broken = broken
		return 0, broken
	}
	return n, err
}

// begin sets the deadline of an answer at its first read.
func (c *LimitedConn) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil || c.limits.Time <= 0 || c.waiting {
		return c.broken
	}
	c.waiting = true
	return c.Conn.SetReadDeadline(earlier(time.Now().Add(c.limits.Time), c.deadline))
}

// earlier is the first of two deadlines; a zero one is none.
func earlier(end, other time.Time) time.Time {
	if !other.IsZero() && other.Before(end) {
		return other
	}
	return end
}

func (c *LimitedConn) count(piece []byte) error {
	c.answer += int64(len(piece))
	if most := c.limits.Answer; most > 0 && c.answer > most {
		return fmt.Errorf("%w: more than %d bytes to one request", ErrUnbounded, most)
	}
	if err := c.countLine(piece); err != nil {
		return err
	}
	if c.limits.Inspect != nil {
		return c.limits.Inspect(piece)
	}
	return nil
}

func (c *LimitedConn) countLine(piece []byte) error {
	if c.limits.Line <= 0 {
		return nil
	}
	for len(piece) > 0 {
		end := bytes.IndexByte(piece, '\n')
		if end < 0 {
			end = len(piece) - 1
		}
		if c.line+end+1 > c.limits.Line {
			return fmt.Errorf("%w: a line of more than %d bytes", ErrUnbounded, c.limits.Line)
		}
		c.line += end + 1
		if piece[end] == '\n' {
			c.line = 0
		}
		piece = piece[end+1:]
	}
	return nil
}

// Write implements net.Conn. A request begins a new answer.
func (c *LimitedConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.answer, c.waiting = 0, false
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// SetDeadline implements net.Conn.
func (c *LimitedConn) SetDeadline(t time.Time) error {
	return errors.Join(c.Conn.SetWriteDeadline(t), c.SetReadDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *LimitedConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline, c.waiting = t, false
	return c.Conn.SetReadDeadline(t)
}

// Dialer opens raw connections to hosts that other people chose, with the same
// check of the address that is really dialled as New has.
type Dialer struct {
	Timeout time.Duration
	// AllowPrivate are ranges that may be reached although they are not public.
	AllowPrivate []netip.Prefix
}

// DialContext connects to a public address, or to one of AllowPrivate, on any
// port. It wraps ErrRefused.
func (d Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	control := func(_ context.Context, _, address string, _ syscall.RawConn) error {
		target, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: %q is no IP address with a port", ErrRefused, address)
		}
		return checkAddress(d.AllowPrivate, target.Addr())
	}
	return (&net.Dialer{Timeout: d.Timeout, ControlContext: control}).DialContext(ctx, network, address)
}

// checkAddress refuses what is neither public nor allowed.
func checkAddress(allowed []netip.Prefix, ip netip.Addr) error {
	ip = ip.Unmap()
	if ip.Zone() == "" && within(allowed, ip) || Public(ip) {
		return nil
	}
	return fmt.Errorf("%w: %s is no public address; if it is meant, allow its range in the configuration", ErrRefused,
		ip)
}
