package botble

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Store is a destination that keeps backups as the CMS's own backup plugin
// does (folder storage/app/backup), so that its admin lists and restores them:
//
//	KEY/database-KEY.zip   holds database-KEY.sql
//	KEY/storage-KEY.zip    holds the upload root's files
//	backup.json            names every KEY
//
// KEY is YYYY-MM-DD-HH-MM-SS in the CMS's zone. Beside them lie
// KEY/routines-KEY.zip, which the CMS cannot restore, and KEY/cmsjobs.json,
// our manifest file, by which we know our own. It cannot put an archive together again: verify
// and restore from another destination.
type Store struct {
	store storage.Store
	// Zone is the CMS's.
	zone func(context.Context) (*time.Location, error)
	// uploads is the label of the FileSet that is the CMS's upload root.
	uploads string
	public  bool

	mu sync.Mutex // one writer of backup.json
}

// New keeps backups in a store whose root is storage/app/backup.
// uploads is the label of the FileSet that is the upload root. public makes
// files readable by everybody on the machine, which is needed where the web
// server is another user.
func New(store storage.Store, uploads string, zone func(context.Context) (*time.Location, error), public bool) *Store {
	return &Store{store: store, zone: zone, uploads: uploads, public: public}
}

// String is the place, for messages.
func (b *Store) String() string {
	if named, ok := b.store.(fmt.Stringer); ok {
		return named.String()
	}
	return ""
}

// Free is the space on a local disk.
func (b *Store) Free() (int64, error) {
	if s, ok := b.store.(interface{ Free() (int64, error) }); ok {
		return s.Free()
	}
	return 1 << 62, nil
}

const (
	indexName = "backup.json"
	markName  = "cmsjobs.json"
	keyLayout = "2006-01-02-15-04-05"
)

var folderName = regexp.MustCompile(`^\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d$`)

// List yields the manifest files of our backups.
func (b *Store) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		_, marks, _, err := b.ours(ctx)
		if err != nil {
			yield(storage.Info{}, err)
			return
		}
		var keys []string
		for key := range marks {
			if strings.HasPrefix(key, prefix) {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			if !yield(storage.Info{Key: key, Size: int64(len(marks[key].ManifestFile))}, nil) {
				return
			}
		}
	}
}

// Open opens a manifest file. Archives cannot be put together again.
func (b *Store) Open(ctx context.Context, key string) (io.ReadCloser, storage.Info, error) {
	_, marks, _, err := b.ours(ctx)
	if err != nil {
		return nil, storage.Info{}, err
	}
	if m, ok := marks[key]; ok {
		return io.NopCloser(bytes.NewReader(m.ManifestFile)), storage.Info{Key: key, Size: int64(len(m.ManifestFile))},
			nil
	}
	return nil, storage.Info{}, fmt.Errorf("%s is kept as the CMS's own files; take it from another destination: %w",
		key, storage.ErrNotFound)
}

// Stat describes a manifest file.
func (b *Store) Stat(ctx context.Context, key string) (storage.Info, error) {
	body, info, err := b.Open(ctx, key)
	if err != nil {
		return info, err
	}
	return info, body.Close()
}

// Delete removes a backup of ours when it is asked to remove its archive.
func (b *Store) Delete(ctx context.Context, key string) error {
	base, _, _, isArchive := archive.Detect(key)
	if !isArchive {
		return nil // the manifest file goes with the archive
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	folders, _, _, err := b.ours(ctx)
	if err != nil {
		return err
	}
	folder, there := folders[base+manifest.Ending]
	if !there {
		return nil
	}
	return b.removeFolder(ctx, folder)
}

// sweeper is implemented by stores in which killed writers leave something.
type sweeper interface {
	Sweep(ctx context.Context, prefix string, before time.Time) (int, error)
}

// Sweep removes what killed backups of ours left.
func (b *Store) Sweep(ctx context.Context, _ string, before time.Time) (removed int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _, unfinished, err := b.ours(ctx)
	if err != nil {
		return 0, err
	}
	for _, info := range unfinished {
		if info.Modified.Before(before) {
			folder, _, _ := strings.Cut(info.Key, "/")
			if err := b.removeFolder(ctx, folder); err != nil {
				return removed, err
			}
			removed++
		}
	}
	if s, ok := b.store.(sweeper); ok {
		n, err := s.Sweep(ctx, "", before)
		return removed + n, err
	}
	return removed, nil
}
