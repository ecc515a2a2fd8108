package binlog

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// spool writes the events that a server sends into segments, one at a time, in a
// temporary file.
type spool struct {
	server     string
	dir        string // of the temporary file; "" is the usual one
	recipients []age.Recipient
	signer     manifest.Signer
	most       int64 // bytes of a segment, after which it ends
	// resumed is the file from whose middle the events come; its Created must be the same.
	resumed *File
	// store keeps a segment that is whole.
	store func(s Segment, stored *os.File) error

	open  *writing
	now   File
	after int64
}

// errOtherFile says that the server has another file of that name: it began its log again.
var errOtherFile = errors.New("the server has another file of the same name")

func (s *spool) file(name string, created, after int64) error {
	if err := s.flush(); err != nil {
		return err
	}
	s.now, s.after = File{s.server, created, name}, after
	if s.resumed != nil && *s.resumed != s.now {
		return errOtherFile
	}
	s.resumed = nil
	return nil
}

func (s *spool) event(h header, offset int64) error {
	if s.open != nil && s.open.End-s.open.Start >= s.most {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if s.open == nil {
		segment := Segment{File: s.now, Start: offset, End: offset, Encrypted: len(s.recipients) > 0}
		if offset == int64(len(magic)) {
			segment.Start, segment.After = 0, s.after
		}
		w, err := newWriting(s.dir, segment, s.recipients)
		if err != nil {
			return fmt.Errorf("beginning a segment of the log: %w", err)
		}
		s.open = w
		if segment.Start == 0 {
			if _, err := w.plain.Write([]byte(magic)); err != nil {
				return err
			}
		}
	}
	o := s.open
	o.End = offset + h.size
	if h.time > 0 {
		if o.From == 0 {
			o.From = h.time
		}
		o.From, o.To = min(o.From, h.time), max(o.To, h.time)
	}
	return nil
}

func (s *spool) Write(b []byte) (int, error) { return s.open.plain.Write(b) }

func (s *spool) ended() error {
	s.open.whole = s.open.End
	return nil
}

// flush stores the segment that is open.
func (s *spool) flush() error {
	w := s.open
	if w == nil {
		return nil
	}
	s.open = nil
	defer w.remove()
	if err := w.finish(s.signer); err != nil {
		return fmt.Errorf("writing a segment of the log: %w", err)
	}
	return s.store(w.Segment, w.f)
}

// discard drops the segment that is open: an event of it may be torn.
func (s *spool) discard() {
	if s.open != nil {
		s.open.remove()
		s.open = nil
	}
}

// writing is a segment on its way into a temporary file.
type writing struct {
	Segment
	f      *os.File
	sealed io.WriteCloser // nil where it is not encrypted
	packed *zstd.Encoder
	sum    hash.Hash
	plain  io.Writer
	whole  int64 // where the last whole event ends
}

func newWriting(dir string, s Segment, recipients []age.Recipient) (w *writing, err error) {
	w = &writing{Segment: s, sum: sha256.New()}
	if w.f, err = temporaryFile(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			w.remove()
		}
	}()
	var to io.Writer = w.f
	if len(recipients) > 0 {
		if w.sealed, err = age.Encrypt(w.f, recipients...); err != nil {
			return nil, err
		}
		to = w.sealed
	}
	if w.packed, err = zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window)); err != nil {
		return nil, err
	}
	w.plain = io.MultiWriter(w.packed, w.sum)
	return w, nil
}

const window = 1 << 20

func (w *writing) finish(signer manifest.Signer) error {
	if w.whole != w.End {
		return fmt.Errorf("%w: it ends within an event", io.ErrUnexpectedEOF)
	}
	if err := w.packed.Close(); err != nil {
		return err
	}
	var to io.Writer = w.f
	if w.sealed != nil {
		to = w.sealed
	}
	if _, err := to.Write(trailer(signer, w.Segment, w.sum.Sum(nil))); err != nil {
		return err
	}
	if w.sealed != nil {
		if err := w.sealed.Close(); err != nil {
			return err
		}
	}
	info, err := w.f.Stat()
	if err != nil {
		return err
	}
	w.Size = info.Size()
	_, err = w.f.Seek(0, io.SeekStart)
	return err
}

// temporaryFile makes a file that nobody else may read, without a name where the system can:
// it is gone with the process, however that ends.
func temporaryFile(dir string) (*os.File, error) {
	if f, err := unnamedFile(cmp.Or(dir, os.TempDir())); err == nil {
		return f, nil
	}
	f, err := os.CreateTemp(dir, "cmsjobs-binlog-*")
	if err == nil {
		_ = os.Remove(f.Name()) // Windows keeps the name until removeFile
	}
	return f, err
}

// removeFile removes a temporary file; that it fails costs space only.
func removeFile(f *os.File) {
	_ = f.Close()
	_ = os.Remove(f.Name())
}

func (w *writing) remove() { removeFile(w.f) }

// The signature of a segment follows its bytes as a frame that zstd skips, so that any
// zstd unpacks it: the key, and its signature of the segment's name and content.
const (
	signContext   = "cmsjobs binary log segment 1\n"
	skippable     = 0x184d2a5c
	frameHeader   = 8
	trailerSize   = frameHeader + ed25519.PublicKeySize + ed25519.SignatureSize
	maxCompressed = 1 << 40
)

func signed(s Segment, sum []byte) []byte { return append([]byte(signContext+s.key()+"\n"), sum...) }

func trailer(signer manifest.Signer, s Segment, sum []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, skippable)
	b = binary.LittleEndian.AppendUint32(b, trailerSize-frameHeader)
	b = append(b, signer.Private.Public().(ed25519.PublicKey)...)
	return append(b, ed25519.Sign(signer.Private, signed(s, sum))...)
}
