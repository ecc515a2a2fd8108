package cache

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// Bounds of what a Redis server may send to one command. The client library
// takes announced lengths ("$2147483647", "*2147483647") for granted.
const (
	maxReply    = 8 << 20
	maxLine     = 64 << 10
	maxString   = 4 << 20
	maxElements = 256 << 10 // of all lists together
	maxLists    = 1000      // that may lie inside one another
	replyTime   = 30 * time.Second
)

// bounded is a client that reads no more than the bounds. It leaves o as it is.
func bounded(o *redis.Options) redis.UniversalClient { return boundedFor(o, replyTime) }

func boundedFor(o *redis.Options, answer time.Duration) redis.UniversalClient {
	c := *o
	o = &c
	dial := redis.NewDialer(o)
	o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		b := new(replyBounds)
		limited := outbound.Limit(conn, outbound.ReadLimits{Answer: maxReply, Time: answer, Inspect: b.inspect})
		return &requests{LimitedConn: limited, bounds: b}, nil
	}
	return redis.NewClient(o)
}

// requests tells the bounds when a new answer begins.
type requests struct {
	*outbound.LimitedConn
	bounds *replyBounds
}

func (r *requests) Write(p []byte) (int, error) {
	r.bounds.begin()
	return r.LimitedConn.Write(p)
}

// replyBounds follows the lines and strings of a server's answer (RESP 2, 3).
// Write and Read of a connection of go-redis never happen at the same time.
type replyBounds struct {
	skip            int64 // bytes of a string that are still to come
	kind            byte  // of the line, 0 at its begin
	line            int
	length          int64
	number          bool // the line was only digits so far
	elements, lists int64
}

func (b *replyBounds) begin() { b.elements, b.lists = 0, 0 }

// inspect implements outbound.ReadLimits.Inspect.
func (b *replyBounds) inspect(piece []byte) error {
	for i := 0; i < len(piece); {
		if b.skip > 0 {
			n := min(b.skip, int64(len(piece)-i))
			b.skip -= n
			i += int(n)
			continue
		}
		if err := b.step(piece[i]); err != nil {
			return fmt.Errorf("%w: %w", outbound.ErrUnbounded, err)
		}
		i++
	}
	return nil
}

// step takes one byte outside strings.
func (b *replyBounds) step(c byte) error {
	switch b.line++; {
	case b.line > maxLine:
		return fmt.Errorf("a line of more than %d bytes", maxLine)
	case b.line == 1 && c != '\n':
		b.kind, b.length, b.number = c, 0, true
	case c == '\n':
		announced := b.line > 1 && b.number
		b.line = 0
		if announced {
			return b.announced()
		}
	case c >= '0' && c <= '9':
		b.length = min(b.length*10+int64(c-'0'), 1<<40)
	case c != '\r' && c != '+':
		b.number = false // "-1" is none, the rest is text
	}
	return nil
}

// announced takes a whole line that is a kind and a length.
func (b *replyBounds) announced() error {
	switch b.kind {
	case '$', '=', '!':
		if b.length > maxString {
			return fmt.Errorf("a string of more than %d bytes", maxString)
		}
		b.skip = b.length + 2
	case '*', '%', '~', '>', '|':
		b.lists++
		b.elements += b.length
		if b.elements > maxElements {
			return fmt.Errorf("lists of more than %d elements", maxElements)
		}
		if b.lists > maxLists {
			return errors.New("too many lists")
		}
	}
	return nil
}
