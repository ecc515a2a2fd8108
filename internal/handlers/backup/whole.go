package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"filippo.io/age"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Whole opens a backup as one archive with everything; the caller closes it. Of one
// whose files are in a repository the archive is packed as it is read, and its size is
// −1: not known. What was read counts only without an error.
func (h *Handler) Whole(ctx context.Context, b catalog.Stored) (io.ReadCloser, storage.Info, error) {
	if b.Repository == nil {
		return h.Download(ctx, b)
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(h.pack(ctx, b, w)) }()
	return r, storage.Info{Key: b.Archive, Size: -1}, nil
}

func (h *Handler) pack(ctx context.Context, b catalog.Stored, to io.Writer) error {
	_, format, encrypted, ok := archive.Detect(b.Archive)
	if !ok {
		return fmt.Errorf("%s is of no known format", b.Archive)
	}
	var recipients []age.Recipient
	if encrypted {
		recipients = h.c.Options.Recipients
		if len(recipients) == 0 {
			return fmt.Errorf("%s is encrypted, and nobody is named to encrypt the whole archive for "+
				"(backup.age_recipients)", b.ID)
		}
	}
	w, err := archive.NewWriter(to, format, recipients)
	if err != nil {
		return err
	}
	err = h.Read(ctx, b, nil, func(e archive.Entry, content io.Reader) error {
		if e.Name == manifest.LastEntry {
			if e, content, err = withFiles(e, content, b); err != nil {
				return err
			}
		}
		_, err := w.AddEntry(e, content)
		return err
	})
	if err != nil {
		w.Abandon()
		return fmt.Errorf("packing %s: %w", b.ID, err)
	}
	return w.Close()
}

// withFiles is the last entry of an archive that has the files too.
func withFiles(e archive.Entry, content io.Reader, b catalog.Stored) (archive.Entry, io.Reader, error) {
	var m *manifest.Manifest
	if err := manifest.DecodeEntry(content, &m); err != nil {
		return e, nil, err
	}
	m.FileCount, m.FileBytes = b.FileCount, b.FileBytes
	data, err := json.MarshalIndent(m, "", "  ")
	e.Size = int64(len(data))
	return e, bytes.NewReader(data), err
}
