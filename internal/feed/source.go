package feed

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Report is what a source says.
type Report int

const (
	// Alive says that the source works, though nothing happened. A source says so
	// every aliveEvery at least, and once when it begins to work.
	Alive Report = iota
	// Written says that something was written, into the jobs table or another.
	Written
	// Inserted says that rows were inserted into the jobs table.
	Inserted
	// Edited says that a table of the CMS's content changed. No row of the jobs table
	// is looked for.
	Edited
)

// Row is a row of the CMS's content; or, where Job is not empty, of the jobs table.
type Row struct {
	Table string // as the options of the source name it
	ID    string
	Job   string // what Options.Wake is called with: a queue, and the row as it was sent
}

// Told receives what a source says. The rows of an Edited are those that changed, where
// the source knows. An Inserted has at most one.
type Told func(Report, ...Row)

// Source tells of changes that others make to the jobs table.
type Source interface {
	// Name is what logs and people call the source.
	Name() string
	// Run reports until ctx ends or the source breaks, and says why it did. The
	// watcher starts it again.
	Run(ctx context.Context, report Told) error
}

// ContentSource is a source that may see each change of the CMS's content too.
type ContentSource interface {
	Source
	// SeesContent says that it does: by Edited, or by Written where it cannot tell
	// what was written.
	SeesContent() bool
}

// UnavailableError says that a source cannot work until a person changes something.
type UnavailableError struct {
	What string // what is missing
	Fix  string // what to do
}

func (e *UnavailableError) Error() string { return e.What }

// unavailable finds an UnavailableError in err.
func unavailable(err error) (*UnavailableError, bool) {
	var u *UnavailableError
	ok := errors.As(err, &u)
	return u, ok
}

// Try runs a source until it first reports, and says why it does not. It takes at
// most limit.
func Try(ctx context.Context, s Source, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	works := make(chan struct{}, 1)
	err := s.Run(ctx, func(Report, ...Row) {
		select {
		case works <- struct{}{}:
		default:
		}
		cancel()
	})
	select {
	case <-works:
		return nil
	default:
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the %s said nothing within %v", s.Name(), limit)
	}
	return err
}
