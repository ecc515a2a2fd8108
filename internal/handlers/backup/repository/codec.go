package repository

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// ErrLocked says that an object is encrypted and no identity opens it.
var ErrLocked = errors.New("the backup is encrypted and none of the age identities opens it")

// packer packs pieces. It belongs to one goroutine.
type packer struct {
	zstd *zstd.Encoder
	buf  []byte
}

func newPacker() (*packer, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("preparing compression: %w", err)
	}
	return &packer{zstd: z}, nil
}

// probe is how much of a content shows whether it shrinks.
const probe = 64 << 10

// shrinks says whether compression takes at least a twentieth off.
func shrinks(packed, plain int) bool { return packed < plain-plain/20 }

// pack returns the stored form of a content: a zstd frame, or the content where
// that does not help. The result is valid until the next call.
func (p *packer) pack(content []byte) (stored []byte, packed bool) {
	if len(content) > probe {
		p.buf = p.zstd.EncodeAll(content[:probe], p.buf[:0])
		if !shrinks(len(p.buf), probe) {
			return content, false
		}
	}
	p.buf = p.zstd.EncodeAll(content, p.buf[:0])
	if !shrinks(len(p.buf), len(content)) {
		return content, false
	}
	return p.buf, true
}

// seal encrypts an object's bytes into out.
func seal(out *bytes.Buffer, plain []byte, recipients []age.Recipient) error {
	out.Reset()
	w, err := age.Encrypt(out, recipients...)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return fmt.Errorf("encrypting an object: %w", err)
	}
	if out.Len() > maxObject {
		return errors.New("encrypting an object: there are too many recipients")
	}
	return nil
}

// unseal decrypts what is read from an object.
func unseal(stored io.Reader, identities []age.Identity) (io.Reader, error) {
	if len(identities) == 0 {
		return nil, ErrLocked
	}
	r, err := age.Decrypt(stored, identities...)
	var noMatch *age.NoIdentityMatchError
	if errors.As(err, &noMatch) {
		return nil, fmt.Errorf("%w: %w", ErrLocked, err)
	}
	return r, err
}

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

// cachedObjects is how many objects a reader keeps: the files of a folder are
// mostly in one, and those that changed in another.
const cachedObjects = 2

// reader reads pieces. It belongs to one goroutine.
type reader struct {
	*Repository
	zstd    *zstd.Decoder
	objects []*cachedObject // the last one used is the last
	buf     []byte
}

// cachedObject is an object, decrypted. Its memory is used again for the next.
type cachedObject struct {
	name  string
	plain []byte
}

func (r *Repository) newReader() (*reader, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(pieceSize), zstd.WithDecoderMaxWindow(pieceSize))
	if err != nil {
		return nil, fmt.Errorf("preparing decompression: %w", err)
	}
	return &reader{Repository: r, zstd: z}, nil
}

func (r *reader) close() { r.zstd.Close() }

// object reads an object and decrypts it. The result is valid until the next call.
func (r *reader) object(ctx context.Context, name string) ([]byte, error) {
	for i, o := range r.objects {
		if o.name == name {
			r.objects = append(slices.Delete(r.objects, i, i+1), o)
			return o.plain, nil
		}
	}
	var o *cachedObject
	if len(r.objects) < cachedObjects {
		o = &cachedObject{plain: objectBuffer()}
	} else {
		o, r.objects = r.objects[0], r.objects[1:]
	}
	o.name = name
	var err error
	if o.plain, err = readObject(ctx, o.plain, r.store, name, true, r.o.Identities); err != nil {
		return nil, err
	}
	r.objects = append(r.objects, o)
	return o.plain, nil
}

// piece reads a piece and checks it. The result is valid until the next call.
func (r *reader) piece(ctx context.Context, p Piece) ([]byte, error) {
	object, err := r.object(ctx, p.Object)
	if err != nil {
		return nil, err
	}
	if p.Offset+p.Stored > int64(len(object)) {
		return nil, fmt.Errorf("%w: %s is shorter than it was", ErrDamaged, p.Object)
	}
	content := object[p.Offset : p.Offset+p.Stored]
	if p.Packed {
		if r.buf, err = r.zstd.DecodeAll(content, r.buf[:0]); err != nil {
			return nil, fmt.Errorf("%w: unpacking %d bytes at %d of %s: %w", ErrDamaged, p.Stored, p.Offset, p.Object,
				err)
		}
		content = r.buf
	}
	if int64(len(content)) != p.Length || Sum(sha256.Sum256(content)) != p.Sum {
		return nil, fmt.Errorf("%w: %d bytes at %d of %s are not those that were stored", ErrDamaged, p.Stored,
			p.Offset, p.Object)
	}
	return content, nil
}
