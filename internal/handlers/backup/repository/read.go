package repository

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

const (
	// fileTries is how often a small file that changes is read.
	fileTries = 3
)

// worker reads files.
type worker struct {
	*run
	packer  *packer
	content []byte // pieceSize
}

func (b *run) work(ctx context.Context, todo <-chan *item) error {
	p, err := newPacker()
	if err != nil {
		return err
	}
	w := &worker{run: b, packer: p}
	for it := range todo {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := w.read(ctx, it); err != nil {
			return err
		}
		close(it.done)
	}
	return nil
}

var errChanged = errors.New("the file changed while it was read")

// readError is a fault of the file, not of the repository.
type readError struct{ error }

func (e readError) Unwrap() error { return e.error }

// read reads a file into the backup. Only a fault of the repository is an error.
func (w *worker) read(ctx context.Context, it *item) error {
	if w.content == nil {
		w.content = make([]byte, pieceSize)
	}
	var err error
	for range fileTries {
		if err = w.try(ctx, it); !errors.Is(err, errChanged) || it.entry.Size > smallFile {
			break
		}
	}
	var fault readError
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errChanged):
		w.warn("%s kept changing while it was read: its copy may be torn", it.entry.Name)
		it.entry.Identity = ""
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, storage.ErrNotFound) && errors.As(err, &fault):
		w.warn("%s vanished while the backup was made", it.entry.Name)
		it.gone = true
	case errors.As(err, &fault):
		w.missing("%s cannot be read and is missing: %v", it.entry.Name, fault.error)
		it.gone = true
	default:
		return err
	}
	return nil
}

// try reads a file once. What it stores is what it hashed, whatever the file became.
func (w *worker) try(ctx context.Context, it *item) error {
	file, err := it.open(ctx)
	if err != nil {
		return readError{err}
	}
	defer file.Close()
	before, err := file.Stat()
	if err != nil {
		return readError{err}
	}
	it.small, it.length = nil, 0
	it.entry = Entry{Name: it.entry.Name, Mode: before.Mode.Perm(), Modified: before.Modified,
		Identity: w.identity(it.file, before)}
	if before.Size <= smallFile {
		err = w.readSmall(file, it)
	} else {
		err = w.readLarge(ctx, file, it)
	}
	if err != nil {
		return err
	}
	after, err := file.Stat()
	if err != nil {
		return readError{err}
	}
	if after.Identity != before.Identity || !after.Modified.Equal(before.Modified) || it.entry.Size != before.Size &&
		before.Size >= 0 {
		return errChanged
	}
	return nil
}

// identity is by what the next backup knows a file: nothing where that could be the
// same after another change.
func (w *worker) identity(listed, opened File) string {
	if !opened.Changed.IsZero() && !opened.Changed.Before(w.started.Add(-restTime)) {
		return ""
	}
	if opened.Identity == "" && opened.Size == listed.Size && opened.Modified.Equal(listed.Modified) {
		return listed.Identity // some stores say it in a list only
	}
	return opened.Identity
}

func (w *worker) readSmall(file io.Reader, it *item) error {
	n, err := io.ReadFull(file, w.content[:smallFile])
	w.run.read.Add(int64(n))
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return readError{err}
	}
	content := w.content[:n]
	it.entry.Size, it.entry.Sum = int64(n), sha256.Sum256(content)
	if n == 0 {
		return nil
	}
	if p, found := w.known().find(it.entry.Sum); found {
		it.entry.Pieces = []Piece{p}
		return nil
	}
	stored, packed := w.packer.pack(content)
	it.small, _ = w.small.Get().(*[smallFile]byte)
	if it.small == nil {
		it.small = new([smallFile]byte)
	}
	it.length = copy(it.small[:], stored)
	it.entry.Pieces = []Piece{{Stored: int64(len(stored)), Packed: packed, Length: int64(n), Sum: it.entry.Sum}}
	return nil
}

// readLarge stores each piece of a file as an object.
func (w *worker) readLarge(ctx context.Context, file io.Reader, it *item) error {
	whole := sha256.New()
	for {
		n, err := io.ReadFull(file, w.content)
		w.run.read.Add(int64(n))
		if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
			return readError{err}
		}
		last := err != nil
		if n > 0 {
			content := w.content[:n]
			whole.Write(content)
			p, err := w.storePiece(ctx, content)
			if err != nil {
				return err
			}
			it.entry.Pieces = append(it.entry.Pieces, p)
			it.entry.Size += int64(n)
		}
		if last {
			whole.Sum(it.entry.Sum[:0])
			return nil
		}
	}
}

// storePiece stores one piece, unless it is known.
func (w *worker) storePiece(ctx context.Context, content []byte) (Piece, error) {
	sum := Sum(sha256.Sum256(content))
	if p, found := w.known().find(sum); found {
		return p, nil
	}
	stored, packed := w.packer.pack(content)
	known := &sum
	if packed {
		known = nil
	}
	object, err := w.put(ctx, stored, known)
	return Piece{Object: object, Stored: int64(len(stored)), Packed: packed, Length: int64(len(content)), Sum: sum}, err
}
