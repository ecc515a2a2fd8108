package binlog

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// ErrDamaged says that a segment is not what was archived.
var ErrDamaged = errors.New("the archived log is damaged")

// ErrUntrusted says that a segment is not signed by this installation or one that it trusts.
var ErrUntrusted = errors.New("the archived log is not of this installation, nor of one that it trusts")

// Reader reads segments of a place.
type Reader struct {
	Store      storage.Store // below Folder
	Identities []age.Identity
	Signer     manifest.Signer
	// Dir is for temporary files; "" is the usual one.
	Dir string
}

// open copies a segment into a temporary file, checks its signature and its content,
// and returns its plain bytes. What is read is what was checked. The caller removes
// the file by close.
func (r *Reader) open(ctx context.Context, s Segment) (plain io.ReadSeeker, closeIt func(), err error) {
	body, _, err := r.Store.Open(ctx, s.key())
	if err != nil {
		return nil, nil, fmt.Errorf("reading the archived log: %w", err)
	}
	defer body.Close()
	f, err := temporaryFile(r.Dir)
	if err != nil {
		return nil, nil, err
	}
	closeIt = func() { removeFile(f) }
	if err = r.unpack(body, s, f); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		closeIt()
		return nil, nil, fmt.Errorf("%s: %w", s.key(), err)
	}
	return f, closeIt, nil
}

func (r *Reader) unpack(body io.Reader, s Segment, to io.Writer) error {
	in := io.LimitReader(body, maxCompressed)
	if s.Encrypted {
		opened, err := age.Decrypt(in, r.Identities...)
		if err != nil {
			return fmt.Errorf("opening it with the age identities that are here (backup.age_identities): %w", err)
		}
		in = opened
	}
	last := &ending{from: in}
	z, err := zstd.NewReader(last, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8*window))
	if err != nil {
		return err
	}
	defer z.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(z, s.End-s.Start+1))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	case n != s.End-s.Start:
		return fmt.Errorf("%w: it has not the %d bytes that it should", ErrDamaged, s.End-s.Start)
	}
	return r.judge(s, last.bytes, sum.Sum(nil))
}

// judge checks the signature.
func (r *Reader) judge(s Segment, b, sum []byte) error {
	u := binary.LittleEndian
	if len(b) != trailerSize || u.Uint32(b) != skippable || u.Uint32(b[4:]) != trailerSize-frameHeader {
		return fmt.Errorf("%w: it has no signature", ErrUntrusted)
	}
	name := "ed25519:" + base64.StdEncoding.EncodeToString(b[frameHeader:][:ed25519.PublicKeySize])
	key := r.Signer.KeyOf(name)
	switch {
	case key == nil:
		return fmt.Errorf("%w: it is signed by %s; if that is the key of your old server, set backup.trusted_keys",
			ErrUntrusted, name)
	case !ed25519.Verify(key, signed(s, sum), b[frameHeader+ed25519.PublicKeySize:]):
		return fmt.Errorf("%w: its signature is of another content", ErrDamaged)
	}
	return nil
}

// ending remembers the last bytes that were read.
type ending struct {
	from  io.Reader
	bytes []byte
}

func (e *ending) Read(b []byte) (int, error) {
	n, err := e.from.Read(b)
	e.bytes = append(e.bytes, b[:n]...)
	if more := len(e.bytes) - trailerSize; more > 0 {
		e.bytes = bytes.Clone(e.bytes[more:])
	}
	return n, err
}
