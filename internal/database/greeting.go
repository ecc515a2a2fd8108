package database

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// ErrGreeting says that what answers at a database's address is no database
// server, or is broken.
var ErrGreeting = errors.New("the greeting of the database server breaks the limits")

// A real greeting has less than 8 KiB, with certificates and the session's
// variables, and comes within a second. A server that looks up names may take
// some.
const (
	greetingBytes = 256 << 10
	greetingTime  = 12 * time.Second
)

// greeting bounds what a server may do to us before it has let us in as a database
// server: the bytes that it sends and the time that it takes, from the dial to
// the end of the authentication. A connection is bounded until its driver has it,
// and free from then on: answers to statements are bounded by the statements and
// by the drivers. What a greeting broke is in the error, which wraps ErrGreeting,
// whatever the driver makes of it.
//
// It is one try to connect, of all the addresses that a driver dials.
type greeting struct {
	until  time.Time
	cancel context.CancelFunc

	mu     sync.Mutex
	over   bool
	broken error
	conns  []*greeted
}

type greetingKey struct{}

// beginGreeting returns a context whose dials are bounded until the greeting ends.
func beginGreeting(ctx context.Context) (context.Context, *greeting) {
	ctx, cancel := context.WithTimeout(ctx, greetingTime)
	g := &greeting{cancel: cancel}
	g.until, _ = ctx.Deadline() // it has one
	return context.WithValue(ctx, greetingKey{}, g), g
}

// end frees the connections, and says what broke the greeting where err does not.
func (g *greeting) end(err error) error {
	defer g.cancel()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	if err == nil {
		for _, c := range g.conns {
			_ = c.Conn.SetReadDeadline(c.deadline) // one that is closed needs none
		}
		return nil
	}
	if g.broken != nil && !errors.Is(err, ErrGreeting) {
		return fmt.Errorf("%w: %w", g.broken, err)
	}
	return err
}

// bound bounds a connection that was dialled for the greeting of ctx. inspect
// sees the first bytes, up to 4 of them, and may refuse them; nil sees nothing.
func bound(ctx context.Context, conn net.Conn, inspect func(first []byte) error) (net.Conn, error) {
	g, there := ctx.Value(greetingKey{}).(*greeting)
	if !there {
		return conn, nil
	}
	c := &greeted{Conn: conn, greeting: g, inspect: inspect}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns = append(g.conns, c)
	if err := conn.SetReadDeadline(g.until); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// greeted is a connection that is bounded until its greeting is over.
type greeted struct {
	net.Conn
	greeting *greeting
	inspect  func([]byte) error

	// under greeting.mu
	read     int
	first    []byte
	deadline time.Time // that the driver set
}

// Read implements net.Conn.
func (c *greeted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	g := c.greeting
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return n, err
	}
	if broken := c.judge(p[:n], err); broken != nil {
		g.broken = broken
		return 0, broken
	}
	return n, err
}

func (c *greeted) judge(piece []byte, err error) error {
	c.read += len(piece)
	switch {
	case c.read > greetingBytes:
		return fmt.Errorf("%w: more than %d KiB, and no end", ErrGreeting, greetingBytes>>10)
	case errors.Is(err, os.ErrDeadlineExceeded) && (c.deadline.IsZero() || c.deadline.After(c.greeting.until)):
		return fmt.Errorf("%w: it did not come within %s", ErrGreeting, greetingTime)
	case c.inspect == nil || len(c.first) == firstBytes:
		return nil
	}
	c.first = append(c.first, piece[:min(len(piece), firstBytes-len(c.first))]...)
	if len(c.first) < firstBytes {
		return nil
	}
	return c.inspect(c.first)
}

// firstBytes are enough for the header of a packet of MySQL.
const firstBytes = 4

// SetDeadline implements net.Conn.
func (c *greeted) SetDeadline(t time.Time) error {
	return errors.Join(c.Conn.SetWriteDeadline(t), c.SetReadDeadline(t))
}

// SetReadDeadline implements net.Conn. It never lengthens the greeting.
func (c *greeted) SetReadDeadline(t time.Time) error {
	g := c.greeting
	g.mu.Lock()
	defer g.mu.Unlock()
	c.deadline = t
	if !g.over && (t.IsZero() || t.After(g.until)) {
		t = g.until
	}
	return c.Conn.SetReadDeadline(t)
}

// SyscallConn lets the MySQL driver look whether an idle connection was closed.
func (c *greeted) SyscallConn() (syscall.RawConn, error) {
	if raw, ok := c.Conn.(syscall.Conn); ok {
		return raw.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}
