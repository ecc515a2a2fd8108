package framing

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// handshakeTime is how long a TLS handshake may take.
const handshakeTime = 10 * time.Second

// Listen returns a listener whose connections remember the head of a request.
// Handshakes of a TLS listener are made by it, side by side, as only they tell
// the protocol. Close ends it and the handshakes.
func Listen(l net.Listener) net.Listener {
	ours := &listener{Listener: l, accepted: make(chan accepted)}
	ours.ctx, ours.cancel = context.WithCancel(context.Background())
	go ours.accept()
	return ours
}

type listener struct {
	net.Listener
	accepted chan accepted
	ctx      context.Context // until Close
	cancel   context.CancelFunc
	close    sync.Once
	closed   error
}

// accepted is what Accept returns.
type accepted struct {
	conn net.Conn
	err  error
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case a := <-l.accepted:
		return a.conn, a.err
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.close.Do(func() {
		l.cancel()
		l.closed = l.Listener.Close()
	})
	return l.closed
}

// accept takes connections until the listener is closed. Errors go to the
// caller of Accept, who waits before it asks again (net/http does).
func (l *listener) accept() {
	for l.ctx.Err() == nil {
		c, err := l.Listener.Accept()
		switch encrypted, is := c.(*tls.Conn); {
		case err != nil:
			l.hand(nil, err)
		case is:
			go l.shake(encrypted)
		default:
			l.hand(&conn{Conn: c}, nil)
		}
	}
}

// shake makes the handshake. What speaks HTTP/2, and what failed, goes to
// net/http as it is: it finds the end of the handshake in the connection.
func (l *listener) shake(c *tls.Conn) {
	ctx, cancel := context.WithTimeout(l.ctx, handshakeTime)
	defer cancel()
	if c.HandshakeContext(ctx) != nil || c.ConnectionState().NegotiatedProtocol == "h2" {
		l.hand(c, nil)
		return
	}
	l.hand(&encryptedConn{conn{Conn: c}, c}, nil)
}

// hand gives a connection to the next Accept, or closes it when there is none.
func (l *listener) hand(c net.Conn, err error) {
	select {
	case l.accepted <- accepted{c, err}:
	case <-l.ctx.Done():
		if c != nil {
			_ = c.Close() // nobody has spoken on it
		}
	}
}

// encryptedConn says by its ConnectionState that it is encrypted: net/http then
// sets Request.TLS.
type encryptedConn struct {
	conn
	encrypted *tls.Conn
}

func (c *encryptedConn) ConnectionState() tls.ConnectionState { return c.encrypted.ConnectionState() }

func (c *encryptedConn) watched() *conn { return &c.conn }
