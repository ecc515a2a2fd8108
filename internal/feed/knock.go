package feed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// Knock listens on a Unix socket in the CMS's folder, where the Laravel package
// sends a datagram after it has committed a job, or an edit of content. It hears nothing of programs
// without the package: give it to Options.Partial.
type Knock struct {
	Path string
}

// The system bounds the path of a socket; a datagram is read to knockBytes. It says
// "jobs", maybe with a queue and, in the next line, the row that was inserted into it
// (see queue.Store.NoteRow); or "content" with a table and an id. All else is ignored:
// where the socket lies among those of the workers, it gets the wake-ups that it causes.
const (
	knockPath    = 104
	knockBytes   = 8 << 10 // what the calls to workers take (wake.Longest)
	knockJobs    = "jobs"
	knockContent = "content"
)

// Name implements Source.
func (*Knock) Name() string { return "socket for PHP" }

// Run implements Source. A socket that is there is one that a dead process left:
// only the process that leads those of its host listens.
func (k *Knock) Run(ctx context.Context, report Told) error {
	if len(k.Path) >= knockPath {
		return &UnavailableError{fmt.Sprintf("the path of the socket %s is too long (%d bytes of at most %d)", k.Path,
			len(k.Path), knockPath-1), "name a shorter one in feed.socket"}
	}
	if err := os.Remove(k.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing an old socket: %w", err)
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: k.Path, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("listening for PHP: %w", err)
	}
	defer func() { _ = os.Remove(k.Path) }()
	defer conn.Close()
	// PHP may run as another user. A datagram does no more than cause a look.
	if err := os.Chmod(k.Path, 0o666); err != nil { //nolint:gosec // see above
		return fmt.Errorf("opening the socket to PHP: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	report(Alive)
	buffer := make([]byte, knockBytes)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("listening for PHP: %w", err)
		}
		message := string(buffer[:n])
		if about, edited := strings.CutPrefix(message, knockContent); edited {
			if row := strings.Fields(about); len(row) == 2 {
				report(Edited, Row{Table: row[0], ID: row[1]})
			} else {
				report(Edited)
			}
		} else if message == knockJobs {
			report(Inserted)
		} else if job, sent := strings.CutPrefix(message, knockJobs+" "); sent {
			report(Inserted, Row{Job: job})
		}
	}
}
