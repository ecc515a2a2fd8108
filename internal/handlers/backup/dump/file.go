package dump

import (
	"errors"
	"os"
)

// PieceLoader restores the pieces of a dump, in order. Close reports what is missing;
// Abort ends a restore that is not to be kept.
type PieceLoader interface {
	Load(part Part, table string, piece []byte) error
	Close() error
	Abort() error
}

// FileLoader joins the pieces of a dump that is a file.
type FileLoader struct{ f *os.File }

// NewFileLoader makes a new file.
func NewFileLoader(name string) (FileLoader, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return FileLoader{f}, err
}

// Load appends a piece.
func (l FileLoader) Load(_ Part, _ string, piece []byte) error {
	_, err := l.f.Write(piece)
	return err
}

// Close makes the file durable.
func (l FileLoader) Close() error { return errors.Join(l.f.Sync(), l.f.Close()) }

// Abort leaves the file as it is.
func (l FileLoader) Abort() error { return l.f.Close() }
