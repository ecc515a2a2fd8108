package feed

import (
	"context"
	"errors"
)

// Report is what a source says.
type Report int

const (
	// Alive says that the source works, though nothing happened. A source says so
	// every aliveEvery at least, and once when it begins to work.
	Alive Report = iota
	// Inserted says that rows were inserted into the jobs table.
	Inserted
	// Written says that something was written, into the jobs table or another.
	Written
)

// Source tells of changes that others make to the jobs table.
type Source interface {
	// Name is what logs and people call the source.
	Name() string
	// Run reports until ctx ends or the source breaks, and says why it did. The
	// watcher starts it again.
	Run(ctx context.Context, report func(Report)) error
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
