package repository

import (
	"context"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// storeReader remembers a fault of the store: what is above cannot tell one from
// damage.
type storeReader struct {
	io.Reader
	fault error
}

func (r *storeReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		r.fault = err
	}
	return n, err
}

// errTooLong says that something is longer than the memory for it.
var errTooLong = errors.New("it is larger than it can be")

// readAll reads r to its end into memory that does not grow.
func readAll(into []byte, r io.Reader) ([]byte, error) {
	n, err := io.ReadFull(r, into[:cap(into)])
	switch {
	case err == nil:
		return into, errTooLong
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
		return into[:n], nil
	}
	return into, err
}

// objectBuffer is memory for an object, and a byte that shows whether it is too long.
func objectBuffer() []byte { return make([]byte, 0, maxObject+1) }

// readObject reads an object as it is stored, or decrypted.
func readObject(ctx context.Context, into []byte, s storage.Store, name string, decrypt bool,
	identities []age.Identity) ([]byte, error) {
	body, _, err := s.Open(ctx, objectKey(name))
	if err != nil {
		return into, err
	}
	defer body.Close()
	stored := &storeReader{Reader: io.LimitReader(body, maxObject+1)}
	var content io.Reader = stored
	if decrypt && isSealed(name) {
		content, err = unseal(stored, identities)
	}
	if err == nil {
		into, err = readAll(into, content)
	}
	switch {
	case stored.fault != nil:
		return into, fmt.Errorf("reading %s: %w", name, stored.fault)
	case errors.Is(err, ErrLocked):
		return into, fmt.Errorf("%s: %w", name, err)
	case err != nil:
		return into, fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	return into, nil
}

// readBounded reads what a store has under key, at most limit bytes.
func readBounded(ctx context.Context, s storage.Store, key string, limit int64) ([]byte, error) {
	body, _, err := s.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, key, errTooLong)
	}
	return data, nil
}
