package repository

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
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
