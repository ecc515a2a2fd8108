package framing

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
)

// maxHead is above what the server takes as a head (http.Server.MaxHeaderBytes
// and the 4 KiB that net/http adds).
const maxHead = 40 << 10

type key struct{}

// Context is for http.Server.ConnContext.
func Context(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// Clear says whether a request's length is said once. Call it before the body
// is read.
func Clear(r *http.Request) bool {
	c, ours := r.Context().Value(key{}).(interface{ watched() *conn })
	if !ours {
		return true // HTTP/2, or not by Listen: a test without a connection
	}
	head, whole := c.watched().take()
	encoded := len(r.TransferEncoding) > 0
	if !whole {
		return !encoded
	}
	length, encoding := false, false
	for line := range bytes.Lines(head) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		switch strings.ToLower(string(bytes.TrimSpace(name))) {
		case "content-length":
			length = true
		case "transfer-encoding":
			encoding = true
		}
	}
	return !(length && (encoding || encoded))
}

// conn remembers what came since the last answer, up to the head's end.
type conn struct {
	net.Conn

	mu    sync.Mutex
	head  []byte
	ended bool // head is whole, or too long
	whole bool
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.head = append(c.head, p[:n]...)
		if end := headEnd(c.head); end >= 0 {
			c.head, c.ended, c.whole = c.head[:end], true, true
		} else if len(c.head) > maxHead {
			c.head, c.ended = nil, true
		}
	}
	return n, err
}

// headEnd is where the empty line after a head begins, or −1.
func headEnd(b []byte) int {
	end := bytes.Index(b, []byte("\n\r\n"))
	if bare := bytes.Index(b, []byte("\n\n")); bare >= 0 && (end < 0 || bare < end) {
		end = bare
	}
	return end
}

func (c *conn) watched() *conn { return c }

// CloseWrite lets net/http say that it is done and still read for a moment: a
// client that sends on then sees the refusal instead of a reset.
func (c *conn) CloseWrite() error {
	if half, can := c.Conn.(interface{ CloseWrite() error }); can {
		return half.CloseWrite()
	}
	return nil
}

// Write is an answer: what comes then is another request.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.head, c.ended, c.whole = nil, false, false
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// take returns the head once.
func (c *conn) take() ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	head, whole := c.head, c.whole
	c.head, c.ended, c.whole = nil, true, false // a body comes now
	return head, whole
}
