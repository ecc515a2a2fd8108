package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// List finds the backups at a destination, newest first; "" means at all of
// them. It reads the manifest files, so that it works where our own tables are lost;
// where they are not, it reads only those that changed since the last list. A
// destination that cannot be listed is an error beside what the others have.
func (c *Catalog) List(ctx context.Context, destination string) ([]Stored, error) {
	names := c.Destinations()
	if destination != "" {
		names = []string{destination}
	}
	k, err := c.knowledge(ctx)
	if err != nil {
		return nil, err
	}
	var all []Stored
	var failed []error
	for _, name := range names {
		store, err := c.Destination(name)
		if err != nil {
			return nil, err
		}
		found, err := c.listOne(ctx, name, store)
		if err != nil {
			failed = append(failed, fmt.Errorf("destination %s: %w", name, err))
		}
		for _, e := range found {
			all = append(all, k.stored(e, name))
		}
	}
	slices.SortFunc(all, func(a, b Stored) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.ID, a.ID), cmp.Compare(a.Destination, b.Destination))
	})
	return all, errors.Join(failed...)
}

// knowledge is what our own tables know of all backups.
type knowledge struct {
	signer        manifest.Signer
	verifications map[copyOf]*manifest.VerificationSummary
	sums          map[string]string // archives' hashes by id
}

func (c *Catalog) knowledge(ctx context.Context) (knowledge, error) {
	k := knowledge{sums: map[string]string{}}
	var err error
	if k.signer, err = c.Signer(ctx); err != nil {
		return k, err
	}
	if k.verifications, err = c.newestVerifications(ctx, ""); err != nil {
		return k, err
	}
	var rows []struct {
		ID  string `db:"id"`
		Sum string `db:"archive_sha256"`
	}
	if err := c.config.DB.SelectContext(ctx, &rows, "SELECT id, archive_sha256 FROM cmsjobs_backups"); err != nil {
		return k, fmt.Errorf("reading the hashes of the backups: %w", err)
	}
	for _, r := range rows {
		k.sums[r.ID] = r.Sum
	}
	return k, nil
}

// stored joins what a manifest file says with what our tables know: of a copy that
// they know a verification of, theirs counts, as a manifest file can be replaced.
func (k knowledge) stored(e indexEntry, destination string) Stored {
	b := Stored{File: e.File, Destination: destination, Key: strings.TrimSuffix(e.key, manifest.Ending),
		TableCount: e.TableCount}
	b.Origin = k.signer.Judge(e.Signer, b.SHA256, k.sums[b.ID])
	if p, known := k.verifications[copyOf{b.ID, destination}]; known {
		b.Settle(p)
	}
	return b
}

// Full reads a backup's manifest file again, with all tables.
func (c *Catalog) Full(ctx context.Context, b Stored) (Stored, error) {
	store, err := c.Destination(b.Destination)
	if err != nil {
		return b, err
	}
	side, err := manifest.ReadFile(ctx, store, b.Key+manifest.Ending)
	if err != nil {
		return b, err
	}
	k, err := c.knowledge(ctx)
	if err != nil {
		return b, err
	}
	return k.stored(entryOf(b.Key+manifest.Ending, side, true), b.Destination), nil
}

// Download opens a backup's archive; the caller closes it.
func (c *Catalog) Download(ctx context.Context, b Stored) (io.ReadCloser, storage.Info, error) {
	if b.Local != "" {
		return openStaged(b)
	}
	store, err := c.Destination(b.Destination)
	if err != nil {
		return nil, storage.Info{}, err
	}
	return store.Open(ctx, b.Archive)
}

// Destinations are the names of the configured places, sorted.
func (c *Catalog) Destinations() []string {
	return slices.Sorted(maps.Keys(c.config.Destinations))
}

// CheckDestinations refuses a destination that is not configured.
func (c *Catalog) CheckDestinations(names ...string) error {
	for _, name := range names {
		if _, err := c.Destination(name); err != nil {
			return err
		}
	}
	return nil
}

func (c *Catalog) Destination(name string) (storage.Store, error) {
	if d, ok := c.config.Destinations[name]; ok {
		return d, nil
	}
	return nil, jobs.Permanent(phrase.Errorf("no backup destination is named %q; configured are %v", name,
		c.Destinations()))
}

func openStaged(b Stored) (io.ReadCloser, storage.Info, error) {
	f, err := os.Open(b.Local)
	if err != nil {
		return nil, storage.Info{}, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close() // it was only read
		return nil, storage.Info{}, err
	}
	return f, storage.Info{Key: b.Archive, Size: info.Size(), Modified: info.ModTime()}, nil
}
