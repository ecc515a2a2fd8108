package mail

import (
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// Bounds of what an IMAP server may send. The client library takes a literal's
// announced length ("{4294967295}") for granted and calls itself for each "(".
const (
	maxIMAPAnswer = maxReport + 1<<20 // to one command
	maxIMAPLine   = 1 << 20           // without literals; a SEARCH answers in one
	maxIMAPWord   = 8 << 10
	maxIMAPLists  = 100 // inside one another
)

// boundIMAP bounds what is read from conn, which is above TLS.
func boundIMAP(conn net.Conn) *outbound.LimitedConn {
	return outbound.Limit(conn, outbound.ReadLimits{Answer: maxIMAPAnswer, Inspect: new(imapBounds).inspect})
}

// imapBounds follows the lines and literals (RFC 3501, 4.3) of a server.
type imapBounds struct {
	literal           int64 // bytes of it that are still to come
	line, word, lists int
	next              announcement
}

// inspect implements outbound.ReadLimits.Inspect.
func (b *imapBounds) inspect(piece []byte) error {
	for i := 0; i < len(piece); {
		if b.literal > 0 {
			n := min(b.literal, int64(len(piece)-i))
			b.literal -= n
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

// step takes one byte outside literals.
func (b *imapBounds) step(c byte) error {
	b.line++
	b.word++
	switch c {
	case '\n':
		b.word = 0
		if b.next.closed { // a literal's line goes on behind it
			b.literal = b.next.length
		} else {
			b.line, b.lists = 0, 0
		}
		b.next = announcement{}
		return nil
	case ' ':
		b.word = 0
	case '(':
		b.lists++
		b.word = 0
	case ')':
		b.lists = max(b.lists-1, 0)
	}
	if err := b.next.step(c); err != nil {
		return err
	}
	switch {
	case b.line > maxIMAPLine:
		return fmt.Errorf("a line of more than %d bytes", maxIMAPLine)
	case b.word > maxIMAPWord:
		return fmt.Errorf("a word of more than %d bytes", maxIMAPWord)
	case b.lists > maxIMAPLists:
		return fmt.Errorf("more than %d lists inside one another", maxIMAPLists)
	}
	return nil
}

// announcement follows what may announce a literal at a line's end: "{123}" or
// "{123+}".
type announcement struct {
	open, closed bool
	length       int64
}

func (a *announcement) step(c byte) error {
	switch {
	case c == '{':
		*a = announcement{open: true}
	case c == '\r' && a.closed, c == '+' && a.open:
	case a.open && c >= '0' && c <= '9':
		a.length = min(a.length*10+int64(c-'0'), maxReport+1)
	case a.open && c == '}':
		*a = announcement{closed: true, length: a.length}
	default:
		*a = announcement{}
	}
	if a.closed && a.length > maxReport {
		return fmt.Errorf("a literal of more than %d bytes", maxReport)
	}
	return nil
}

// startTLS asks for TLS before the client library sees the connection, which
// would put TLS above our bounds. Nothing is read beyond the answer's line.
func startTLS(raw net.Conn) error {
	lines := &plainLines{raw}
	greeting, err := lines.next()
	if err != nil {
		return err
	}
	if !strings.HasPrefix(greeting, "* OK") {
		return fmt.Errorf("the server greets with %.80q", greeting)
	}
	if _, err := io.WriteString(raw, "s1 STARTTLS\r\n"); err != nil {
		return err
	}
	for range 20 { // untagged lines may come first
		line, err := lines.next()
		if err != nil {
			return err
		}
		if answer, ours := strings.CutPrefix(line, "s1 "); ours {
			if !strings.HasPrefix(strings.ToUpper(answer), "OK") {
				return fmt.Errorf("the server refuses STARTTLS: %.80q", answer)
			}
			return nil
		}
	}
	return fmt.Errorf("%w: no answer to STARTTLS", outbound.ErrUnbounded)
}

// plainLines reads a few short lines, byte by byte.
type plainLines struct{ io.Reader }

func (l *plainLines) next() (string, error) {
	var line []byte
	for one := make([]byte, 1); len(line) < 1<<10; {
		if _, err := io.ReadFull(l, one); err != nil {
			return "", err
		}
		if one[0] == '\n' {
			return strings.TrimSuffix(string(line), "\r"), nil
		}
		line = append(line, one[0])
	}
	return "", fmt.Errorf("%w: a line of more than 1024 bytes before TLS", outbound.ErrUnbounded)
}

// greeted is a connection that begins with a separate greeting.
type greeted struct {
	net.Conn
	greeting *strings.Reader
}

func (g *greeted) Read(p []byte) (int, error) {
	if g.greeting.Len() > 0 {
		return g.greeting.Read(p)
	}
	return g.Conn.Read(p)
}
