package spool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/repository"
)

// maxPart bounds what a part unpacks to: a dump makes them of 2 MiB and a row's rest.
const maxPart = 16 << 20

// Spool is a file of compressed parts. Add is not safe for concurrent use; once the last
// part was added, sources are.
type Spool struct {
	file  *os.File
	pack  *zstd.Encoder
	open  *zstd.Decoder
	parts []part
	named map[string]int // where a part is in parts
	size  int64
	bytes int64
	buf   []byte
}

// part is one part and where it lies in the file.
type part struct {
	name           string
	offset, stored int64
	size           int64
}

// Create makes the file of a spool, which only its owner may read.
func Create(name string) (*Spool, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("making a file for the dump: %w", err)
	}
	s := &Spool{file: f, named: map[string]int{}}
	s.pack, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err == nil {
		s.open, err = zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxPart))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing the file for the dump: %w", err), f.Close())
	}
	return s, nil
}

// Add appends a part and returns its SHA-256 in hexadecimal. Parts of a folder are added
// in the order of their names.
func (s *Spool) Add(name string, content []byte) (sum string, err error) {
	if len(content) > maxPart {
		return "", fmt.Errorf("the part %s has %d bytes, and at most %d are expected", name, len(content), maxPart)
	}
	s.buf = s.pack.EncodeAll(content, s.buf[:0])
	if _, err := s.file.Write(s.buf); err != nil {
		return "", fmt.Errorf("writing the dump into a temporary file: %w", err)
	}
	p := part{name: name, offset: s.size, stored: int64(len(s.buf)), size: int64(len(content))}
	s.named[name] = len(s.parts)
	s.parts = append(s.parts, p)
	s.size += p.stored
	s.bytes += p.size
	hash := sha256.Sum256(content)
	return hex.EncodeToString(hash[:]), nil
}

// Parts is how many parts there are.
func (s *Spool) Parts() int64 { return int64(len(s.parts)) }

// Bytes is what the parts have, unpacked.
func (s *Spool) Bytes() int64 { return s.bytes }

// Size is what the parts take in the file.
func (s *Spool) Size() int64 { return s.size }

// Close releases the file, which its folder still has.
func (s *Spool) Close() error {
	s.open.Close()
	return errors.Join(s.pack.Close(), s.file.Close())
}

// Source is the parts of a folder ("database/") as files. A part has no time: one that
// stays is described by the same words in each backup.
func (s *Spool) Source(folder string) repository.Source { return source{s, folder} }

type source struct {
	*Spool
	folder string
}

// Files implements repository.Source.
func (s source) Files(context.Context) iter.Seq2[repository.File, error] {
	return func(yield func(repository.File, error) bool) {
		for _, p := range s.parts {
			if name, in := strings.CutPrefix(p.name, s.folder); in && !yield(p.describe(name), nil) {
				return
			}
		}
	}
}

func (p part) describe(name string) repository.File {
	return repository.File{Name: name, Size: p.size, Mode: 0o600, Modified: time.Unix(0, 0).UTC()}
}

// Open implements repository.Source.
func (s source) Open(_ context.Context, name string) (repository.OpenFile, error) {
	i, known := s.named[s.folder+name]
	if !known {
		return nil, fmt.Errorf("no part %s%s: %w", s.folder, name, fs.ErrNotExist)
	}
	p := s.parts[i]
	stored := make([]byte, p.stored)
	if _, err := s.file.ReadAt(stored, p.offset); err != nil {
		return nil, fmt.Errorf("reading the dump from a temporary file: %w", err)
	}
	content, err := s.open.DecodeAll(stored, make([]byte, 0, p.size))
	if err != nil {
		return nil, fmt.Errorf("unpacking the dump from a temporary file: %w", err)
	}
	return openPart{bytes.NewReader(content), p.describe(name)}, nil
}

type openPart struct {
	io.Reader
	file repository.File
}

// Stat implements repository.OpenFile.
func (p openPart) Stat() (repository.File, error) { return p.file, nil }

// Close implements repository.OpenFile.
func (openPart) Close() error { return nil }
