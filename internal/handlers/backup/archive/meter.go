package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
)

// Meter counts and hashes what is read through it.
type Meter struct {
	ctx  context.Context
	from io.Reader
	tell func(int64)
	sum  hash.Hash
	n    int64
}

// NewMeter measures a reader. tell gets the number of bytes after each
// reading; the reading ends with the context.
func NewMeter(ctx context.Context, from io.Reader, tell func(int64)) *Meter {
	return &Meter{ctx: ctx, from: from, tell: tell, sum: sha256.New()}
}

// Read implements io.Reader.
func (m *Meter) Read(p []byte) (int, error) {
	if m.ctx.Err() != nil {
		return 0, context.Cause(m.ctx)
	}
	n, err := m.from.Read(p)
	m.sum.Write(p[:n])
	m.n += int64(n)
	m.tell(m.n)
	return n, err
}

// Size is how many bytes were read.
func (m *Meter) Size() int64 { return m.n }

// SHA256 is the hash of what was read, in hex.
func (m *Meter) SHA256() string { return hex.EncodeToString(m.sum.Sum(nil)) }
