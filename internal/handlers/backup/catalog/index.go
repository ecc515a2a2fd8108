package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// readsAtOnce and bytesAtOnce bound how many manifest files are read at the same time,
// and how much memory they may take together. A store far away answers each
// after many milliseconds, and takes many questions at once.
const (
	readsAtOnce = 128
	bytesAtOnce = 64 << 20
)

// indexEntry is what our index keeps of a manifest file: all but its tables and
// warnings. Signer is the key whose signature fits (see ManifestFile.signedBy).
type indexEntry struct {
	manifest.File
	TableCount int    `json:"table_count"`
	Signer     string `json:"signer,omitempty"`
	key        string // of the manifest file
}

// entryOf checks a manifest file's signature. whole keeps tables and warnings.
func entryOf(key string, side manifest.File, whole bool) indexEntry {
	e := indexEntry{File: side, TableCount: len(side.Tables), Signer: side.SignatureKey(), key: key}
	if !whole {
		e.Tables, e.Warnings = nil, nil
	}
	return e
}

// indexRow is one row of cmsjobs_backup_index.
type indexRow struct {
	Key      string `db:"object_key"`
	Size     int64  `db:"size"`
	Modified int64  `db:"modified_at"`
	Tag      string `db:"tag"`
	Entry    string `db:"entry"`
}

func rowOf(i storage.Info) indexRow {
	r := indexRow{Key: i.Key, Size: i.Size, Tag: i.Tag}
	if !i.Modified.IsZero() {
		r.Modified = i.Modified.UnixNano()
	}
	return r
}

// indexable says whether a change of an object would show in its row.
func (r indexRow) indexable() bool {
	return (r.Modified != 0 || r.Tag != "") && len(r.Key) <= 191 && len(r.Tag) <= 191
}

// fits says whether a row is of the object as it is now.
func (r indexRow) fits(now indexRow) bool {
	return now.indexable() && r.Size == now.Size && r.Modified == now.Modified && r.Tag == now.Tag
}

// recent is how young an object must be not to be indexed: within the grain of
// a clock it could change unseen.
const recent = 3 * time.Second

// listOne reads the manifest files of a destination that are new or changed, several
// at once, and takes the others from our index.
func (c *Catalog) listOne(ctx context.Context, name string, store storage.Store) ([]indexEntry, error) {
	infos, saved, listErr := c.manifestFiles(ctx, store)
	index := c.readIndex(ctx, name)
	copied := c.readCopy(ctx, store, saved, infos, index)
	entries := make([]*indexEntry, len(infos))
	failed := make([]error, len(infos))
	fresh := make([]indexRow, len(infos))
	var reading errgroup.Group
	reading.SetLimit(readsAtOnce)
	memory := semaphore.NewWeighted(bytesAtOnce)
	for i, info := range infos {
		row := rowOf(info)
		known, indexed := index[info.Key]
		if indexed = indexed && known.fits(row); indexed {
			delete(index, info.Key)
		} else {
			known = copied[info.Key]
		}
		if known.fits(row) {
			entries[i] = known.decode()
		}
		if entries[i] != nil {
			if !indexed {
				fresh[i] = known
			}
			continue
		}
		size := manifest.MaxSize + int64(1) // what a store that does not say it may send
		if info.Size >= 0 {
			size = min(size, info.Size)
		}
		if err := memory.Acquire(ctx, size); err != nil {
			failed[i] = err
			break
		}
		reading.Go(func() error {
			defer memory.Release(size)
			side, err := manifest.ReadFile(ctx, store, info.Key)
			if err != nil {
				failed[i] = err
				return nil
			}
			e := entryOf(info.Key, side, false)
			entries[i] = &e
			if row.indexable() && c.config.Now().Sub(info.Modified) > recent {
				fresh[i] = row.with(e)
			}
			return nil
		})
	}
	_ = reading.Wait() // each error is in failed
	if listErr == nil {
		c.writeIndex(ctx, name, slices.Collect(maps.Keys(index)),
			slices.DeleteFunc(fresh, func(r indexRow) bool { return r.Key == "" }))
	}
	var found []indexEntry
	for _, e := range entries {
		if e != nil {
			found = append(found, *e)
		}
	}
	return found, errors.Join(append(failed, listErr)...)
}

// manifestFiles are those at a destination, and the copy of an index if there is
// one; with an error, those before it.
func (c *Catalog) manifestFiles(ctx context.Context, store storage.Store) (infos []storage.Info, saved *storage.Info,
	err error) {
	for info, err := range store.List(ctx, c.config.Prefix+"backup-") {
		if err != nil {
			return infos, saved, err
		}
		if info.Key == c.config.Prefix+copyName {
			saved = &info
		}
		key, is := strings.CutSuffix(info.Key, manifest.Ending)
		if is && !strings.Contains(strings.TrimPrefix(key, c.config.Prefix), "/") {
			infos = append(infos, info)
		}
	}
	return infos, saved, nil
}

func (r indexRow) with(e indexEntry) indexRow {
	data, err := json.Marshal(e)
	if err != nil {
		return indexRow{} // read again next time
	}
	r.Entry = string(data)
	return r
}

func (r indexRow) decode() *indexEntry {
	e := indexEntry{key: r.Key}
	if json.Unmarshal([]byte(r.Entry), &e) != nil {
		return nil
	}
	return &e
}

// readIndex reads what the index knows of a destination. Without it every
// manifest file is read.
func (c *Catalog) readIndex(ctx context.Context, destination string) map[string]indexRow {
	var rows []indexRow
	err := c.config.DB.SelectContext(ctx, &rows, c.config.DB.Rebind("SELECT object_key, size, modified_at, tag, "+
		"entry FROM cmsjobs_backup_index WHERE destination = ?"), destination)
	if err != nil {
		c.config.Logger.WarnContext(ctx, "index of backups not read; reading every manifest file",
			"event", "backup.index_failed", "destination", destination, "error", err)
	}
	index := make(map[string]indexRow, len(rows))
	for _, r := range rows {
		index[r.Key] = r
	}
	return index
}

// indexBatch is how many rows one statement writes.
const indexBatch = 100

// writeIndex removes and adds rows. That it fails costs time only.
func (c *Catalog) writeIndex(ctx context.Context, destination string, gone []string, fresh []indexRow) {
	if len(gone)+len(fresh) == 0 {
		return
	}
	if err := c.tryWriteIndex(ctx, destination, gone, fresh); err != nil && ctx.Err() == nil {
		c.config.Logger.WarnContext(ctx, "index of backups not written", "event", "backup.index_failed",
			"destination", destination, "error", err)
	}
}

func (c *Catalog) tryWriteIndex(ctx context.Context, destination string, gone []string, fresh []indexRow) error {
	for _, r := range fresh {
		gone = append(gone, r.Key)
	}
	return database.InTx(ctx, c.config.DB, "writing the index of backups", func(tx *sqlx.Tx) error {
		return replaceInIndex(ctx, tx, destination, gone, fresh)
	})
}

func replaceInIndex(ctx context.Context, tx *sqlx.Tx, destination string, gone []string, fresh []indexRow) error {
	for batch := range slices.Chunk(gone, indexBatch) {
		args := []any{destination}
		for _, key := range batch {
			args = append(args, key)
		}
		if _, err := tx.ExecContext(ctx, tx.Rebind("DELETE FROM cmsjobs_backup_index WHERE destination = ? AND "+
			"object_key IN ("+database.Marks(len(batch))+")"), args...); err != nil {
			return err
		}
	}
	for batch := range slices.Chunk(fresh, indexBatch) {
		var args []any
		for _, r := range batch {
			args = append(args, destination, r.Key, r.Size, r.Modified, r.Tag, r.Entry)
		}
		// Ignored, as another process may have been first.
		statement := database.Of(tx).InsertIgnore("cmsjobs_backup_index", "destination, object_key, size, "+
			"modified_at, tag, entry", database.Rows("(?, ?, ?, ?, ?, ?)", len(batch)))
		if _, err := tx.ExecContext(ctx, tx.Rebind(statement), args...); err != nil {
			return fmt.Errorf("adding to the index of backups: %w", err)
		}
	}
	return nil
}
