package catalog

import (
	"context"
	"fmt"
	"io"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// Read goes through a backup's entries, also those that a repository holds.
func (c *Catalog) Read(ctx context.Context, b Stored, progress func(Step),
	visit func(archive.Entry, io.Reader) error) error {
	_, format, encrypted, ok := archive.Detect(b.Archive)
	if !ok {
		return fmt.Errorf("%s is of no known format", b.Archive)
	}
	body, _, err := c.Download(ctx, b)
	if err != nil {
		return err
	}
	defer body.Close()
	if progress == nil {
		progress = func(Step) {}
	}
	m := archive.NewMeter(ctx, body, func(n int64) { progress(Step{n, b.Size, "reading " + b.ID}) })
	if err := archive.Read(ctx, m, format, encrypted, c.config.Identities,
		c.WithFiles(ctx, b, visit)); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, m); err != nil {
		return err
	}
	// What was read here is held against its hash too: it may have been
	// replaced since it was checked.
	if m.SHA256() != b.SHA256 {
		return fmt.Errorf("%w: the archive changed meanwhile", manifest.ErrUnverified)
	}
	return nil
}
