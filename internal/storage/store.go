package storage

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// ErrNotFound says that no object has the key.
var ErrNotFound = errors.New("no such file")

// ErrKey says that no object can ever have the key; see CheckKey.
var ErrKey = errors.New("it is no key")

// Info describes an object.
type Info struct {
	Key      string
	Size     int64 // bytes; −1 when unknown
	Modified time.Time
	// Tag changes when the object does, where the store says one in a list (S3's
	// ETag); "" otherwise.
	Tag string
}

// PutOptions are hints for Put; the zero value is good.
type PutOptions struct {
	ContentType string
	// ExpectedSize in bytes helps to choose part sizes; 0 when unknown.
	ExpectedSize int64
	// Public makes the object readable by everybody, where the store knows that.
	Public bool
}

// Store keeps objects.
type Store interface {
	// Put writes all of r under key, replacing what was there.
	Put(ctx context.Context, key string, r io.Reader, o PutOptions) error
	// Open reads an object; the caller closes it. ErrNotFound when there is none.
	Open(ctx context.Context, key string) (io.ReadCloser, Info, error)
	// Stat describes an object. ErrNotFound when there is none.
	Stat(ctx context.Context, key string) (Info, error)
	// List yields the objects whose key begins with prefix, in key order.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]
	// Delete removes an object; one that is not there is no error.
	Delete(ctx context.Context, key string) error
}
