package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/repository"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// RepositoryFolder is where a destination keeps the files of backups whose archives
// do not hold them, below the prefix of the archives.
const RepositoryFolder = "repository/"

// repositoryLease is how long a repository is held by a process that died.
const repositoryLease = 10 * time.Minute

// Repository opens the repository at a destination; repository.ErrNoRepository where
// there is none. create makes it.
func (c *Catalog) Repository(ctx context.Context, destination string, create bool) (*repository.Repository, error) {
	store, err := c.Destination(destination)
	if err != nil {
		return nil, err
	}
	o := repository.Options{Store: storage.Under(store, c.config.Prefix+RepositoryFolder),
		Recipients: c.config.Recipients, Identities: c.config.Identities, Lease: repositoryLease, Now: c.config.Now,
		Logger: c.config.Logger}
	if len(o.Recipients) > 0 && len(o.Identities) == 0 && c.config.ManifestCache != "" {
		o.Cache = filepath.Join(c.config.ManifestCache, destination) // each keeps what it needs only
	}
	if create {
		return repository.Create(ctx, o)
	}
	return repository.Open(ctx, o)
}

// recordOf reads the record of a backup whose files are in a repository.
func (c *Catalog) recordOf(ctx context.Context, b Stored) (*repository.Repository, *repository.Record, error) {
	r, err := c.Repository(ctx, b.Destination, false)
	if err != nil {
		return nil, nil, err
	}
	record, err := r.Load(ctx, b.Repository.Backup)
	return r, record, err
}

// WithFiles returns a visitor of an archive's entries that also visits what the archive
// does not hold: the parts of the database, then the files with their lists, before the
// archive's last entry. So all come in the order of an archive that holds them. What visit
// does not read is not fetched.
func (c *Catalog) WithFiles(ctx context.Context, b Stored,
	visit func(archive.Entry, io.Reader) error) func(archive.Entry, io.Reader) error {
	if b.Repository == nil || b.WithoutFiles && !b.PartsInRepository() {
		return visit
	}
	return func(e archive.Entry, content io.Reader) error {
		if e.Name == manifest.LastEntry {
			if err := c.visitRepository(ctx, b, visit); err != nil {
				return err
			}
		}
		return visit(e, content)
	}
}

// visitRepository goes through the names twice, as folders of files may lie between those
// of the database.
func (c *Catalog) visitRepository(ctx context.Context, b Stored, visit func(archive.Entry, io.Reader) error) error {
	r, record, err := c.recordOf(ctx, b)
	if err == nil && b.PartsInRepository() {
		err = r.Walk(ctx, record, func(e repository.Entry, content io.Reader) error {
			if !manifest.IsPart(e.Name) {
				return nil
			}
			return visit(archive.Entry{Name: e.Name, Size: e.Size, Modified: record.Started, Private: true}, content)
		})
		if err != nil {
			return fmt.Errorf("reading the database of %s: %w", b.ID, err)
		}
	}
	if err == nil && !b.WithoutFiles {
		err = c.visitFiles(ctx, r, record, b.PartsInRepository(), visit)
	}
	if err != nil {
		return fmt.Errorf("reading the files of %s: %w", b.ID, err)
	}
	return nil
}

// listSize is about how long one list of files becomes.
const listSize = 1 << 20

// visitFiles visits the files of a record and their lists; parts says that the database's
// are among them, which are none.
func (c *Catalog) visitFiles(ctx context.Context, r *repository.Repository, record *repository.Record, parts bool,
	visit func(archive.Entry, io.Reader) error) error {
	var list []byte
	lists := 0
	flush := func() error {
		if len(list) == 0 {
			return nil
		}
		lists++
		e := archive.Entry{Name: fmt.Sprintf("%sfiles-%06d.jsonl", manifest.ListFolder, lists),
			Size: int64(len(list)), Modified: record.Finished}
		err := visit(e, bytes.NewReader(list))
		list = list[:0]
		return err
	}
	err := r.Walk(ctx, record, func(e repository.Entry, content io.Reader) error {
		if parts && manifest.IsPart(e.Name) {
			return nil
		}
		if err := visit(archive.Entry{Name: manifest.FilesFolder + e.Name, Size: e.Size, Modified: e.Modified,
			Private: e.Mode.Perm()&0o044 == 0}, content); err != nil {
			return err
		}
		line, err := json.Marshal(manifest.PackedFile{Name: e.Name, Size: e.Size, Modified: e.Modified,
			SHA256: e.Sum.String()})
		if err != nil {
			return err
		}
		if list = append(append(list, line...), '\n'); len(list) < listSize {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}
