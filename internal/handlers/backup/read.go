package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// readBackup goes through a backup's entries.
func (h *Handler) readBackup(ctx context.Context, b Stored, progress func(Step), visit func(archive.Entry, io.Reader) error) error {
	_, format, encrypted, ok := archive.Detect(b.Archive)
	if !ok {
		return fmt.Errorf("%s is of no known format", b.Archive)
	}
	body, _, err := h.Download(ctx, b)
	if err != nil {
		return err
	}
	defer body.Close()
	if progress == nil {
		progress = func(Step) {}
	}
	m := &measured{ctx: ctx, from: body, sum: sha256.New(), tell: func(n int64) { progress(Step{n, b.Size, "reading " + b.ID}) }}
	if err := archive.Read(ctx, m, format, encrypted, h.c.Options.Identities, visit); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, m); err != nil {
		return err
	}
	// What was read here is held against its hash too: it may have been
	// replaced since it was checked.
	if hex.EncodeToString(m.sum.Sum(nil)) != b.SHA256 {
		return fmt.Errorf("%w: the archive changed meanwhile", manifest.ErrUnverified)
	}
	return nil
}

// measured counts and hashes what is read.
type measured struct {
	ctx  context.Context
	from io.Reader
	sum  hash.Hash
	n    int64
	tell func(int64)
}

func (m *measured) Read(p []byte) (int, error) {
	if m.ctx.Err() != nil {
		return 0, context.Cause(m.ctx)
	}
	n, err := m.from.Read(p)
	m.sum.Write(p[:n])
	m.n += int64(n)
	m.tell(m.n)
	return n, err
}
