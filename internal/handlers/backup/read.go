package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
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
		return fmt.Errorf("%w: the archive changed meanwhile", ErrUnverified)
	}
	return nil
}

// maxEntry bounds what is held in memory of an entry: pieces and lists are
// made far smaller, and a manifest of 5,000 tables has a few MiB.
const (
	maxEntry   = 256 << 20
	usualEntry = 4 << 20
)

func readEntry(e archive.Entry, content io.Reader) ([]byte, error) {
	var data bytes.Buffer
	// Pieces have their size at once; what claims more grows as it comes.
	data.Grow(int(min(max(e.Size, 0), usualEntry)) + bytes.MinRead)
	if _, err := data.ReadFrom(io.LimitReader(content, maxEntry+1)); err != nil {
		return nil, fmt.Errorf("reading %s: %w", e.Name, err)
	}
	if data.Len() > maxEntry {
		return nil, fmt.Errorf("%s is larger than a backup makes it: %w", e.Name, archive.ErrUnsafe)
	}
	return data.Bytes(), nil
}

func decodeEntry[T any](content io.Reader, into **T) error {
	data, err := readEntry(archive.Entry{Name: "the manifest"}, content)
	if err != nil {
		return err
	}
	*into = new(T)
	if err := json.Unmarshal(data, *into); err != nil {
		return fmt.Errorf("reading the manifest: %w", err)
	}
	return nil
}

// partOf reads part and table from an entry's name, which a streaming reader
// has before the manifest.
func partOf(name string) (dump.Part, string) {
	part := dump.Main
	rest, extra := strings.CutPrefix(name, routinesFolder)
	if extra {
		part = dump.Extra
	} else {
		rest = strings.TrimPrefix(name, databaseFolder)
	}
	_, table, _ := strings.Cut(strings.TrimSuffix(rest, ".sql"), "-")
	return part, tableOfEntry(table)
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
