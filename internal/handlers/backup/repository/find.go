package repository

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
)

// item is a file on its way through a backup.
type item struct {
	file  File
	open  func(ctx context.Context) (OpenFile, error)
	entry Entry
	// small is the stored form of the file's only piece, which shares an object with
	// others.
	small  *[smallFile]byte
	length int           // bytes of small
	gone   bool          // it vanished or cannot be read
	done   chan struct{} // closed when the rest is set
}

var already = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// smallFile is read whole, and put together with others to one object.
const smallFile = 512 << 10

// find sends every file to ordered, and those that must be read to todo before.
func (b *run) find(ctx context.Context, ordered, todo chan<- *item) error {
	last := &lastBackup{run: b}
	defer last.close()
	if b.base != nil {
		last.next, last.stop = iter.Pull2(b.Entries(ctx, b.base))
	}
	previous := ""
	for _, source := range b.q.Sources {
		for file, err := range source.Source.Files(ctx) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			name := source.Label + "/" + file.Name
			if err != nil {
				b.missing("%s is missing: %v", name, err)
				continue
			}
			if b.q.Wanted != nil && !b.q.Wanted(name) || !b.holds(name, file) {
				continue
			}
			if name <= previous {
				return fmt.Errorf("%q comes after %q: the source has another order than that of the names", name,
					previous)
			}
			previous = name
			it := &item{file: file, entry: Entry{Name: name}, done: already}
			if e, same := last.unchanged(name, file); same {
				it.entry = e
				b.report.Unchanged++
			} else {
				it.done = make(chan struct{})
				it.open = func(ctx context.Context) (OpenFile, error) { return source.Source.Open(ctx, file.Name) }
				if !send(ctx, todo, it) {
					return context.Cause(ctx)
				}
			}
			if !send(ctx, ordered, it) {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

func send[T any](ctx context.Context, to chan<- T, v T) bool {
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}

// holds says whether a backup can hold a file, and warns where it cannot.
func (b *run) holds(name string, f File) bool {
	switch {
	case !f.Mode.IsRegular():
		b.warn("%s is %s and is left out", name, typeName(f.Mode))
	case checkName(name) != nil:
		b.missing("%.200q is missing: the path is too long", name)
	default:
		return true
	}
	return false
}

func typeName(m fs.FileMode) string {
	if m&fs.ModeSymlink != 0 {
		return "a link"
	}
	return "a device, a pipe or a socket"
}

// lastBackup goes through the base beside the walk, as both have one order.
type lastBackup struct {
	*run
	next func() (Entry, error, bool)
	stop func()
	at   Entry
}

func (l *lastBackup) close() {
	if l.stop != nil {
		l.stop()
	}
}

// unchanged finds the entry of a file that is as the base saw it, and whose content
// the store still has.
func (l *lastBackup) unchanged(name string, f File) (Entry, bool) {
	for l.next != nil && l.at.Name < name {
		e, err, more := l.next()
		if err != nil {
			l.warn("the last backup's manifest cannot be read, and the files from here on are read: %v", err)
		}
		if err != nil || !more {
			l.next = nil
			break
		}
		l.at = e
	}
	e := l.at
	same := e.Name == name && f.Identity != "" && e.Identity == f.Identity && e.Size == f.Size &&
		e.Modified.Equal(f.Modified)
	return e, same && l.has(e.Pieces...)
}
