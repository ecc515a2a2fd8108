package catalog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/botble"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/indexcopy"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// copyName is the copy of our index at a destination. It ends unlike an archive and
// unlike a manifest file.
const copyName = "backup-index.zst"

// copyStep is how many manifest files the index or its copy may lack before the
// copy is read or written again.
const copyStep = 100

// readCopy reads the rows of a destination's copy of the index where our index lacks
// many of its manifest files. Without it each of them is read.
func (c *Catalog) readCopy(ctx context.Context, store storage.Store, saved *storage.Info, infos []storage.Info,
	index map[string]indexRow) map[string]indexRow {
	if saved == nil {
		return nil
	}
	lacking := map[string]indexRow{}
	for _, info := range infos {
		if row := rowOf(info); !index[info.Key].fits(row) {
			lacking[info.Key] = row
		}
	}
	if len(lacking) < copyStep {
		return nil
	}
	rows := make(map[string]indexRow, len(lacking))
	err := func() error {
		key, err := c.Signer(ctx)
		if err != nil {
			return err
		}
		body, _, err := store.Open(ctx, saved.Key)
		if err != nil {
			return err
		}
		defer body.Close()
		return indexcopy.Read(body, key.KeyOf, func(r indexcopy.Row) {
			row := indexRow{Key: r.Key, Size: r.Size, Modified: r.Modified, Tag: r.Tag, Entry: string(r.Entry)}
			if now, wanted := lacking[r.Key]; wanted && row.fits(now) {
				rows[r.Key] = row
			}
		})
	}()
	if err != nil && ctx.Err() == nil {
		c.config.Logger.InfoContext(ctx, "copy of the index of backups not read; reading every manifest file",
			"event", "backup.index_copy_failed", "key", saved.Key, "error", err)
	}
	return rows
}

// KeepCopy writes a destination's copy of the index again where many manifest files
// are newer than it. gone are backups that were just deleted. That it fails costs a
// later first list time, nothing else.
func (c *Catalog) KeepCopy(ctx context.Context, destination string, store storage.Store, gone []Stored) {
	if _, own := store.(*botble.Store); own || ctx.Err() != nil {
		return
	}
	if err := c.tryKeepCopy(ctx, destination, store, gone); err != nil {
		c.config.Logger.InfoContext(ctx, "copy of the index of backups not written", "event",
			"backup.index_copy_failed",
			"destination", destination, "error", err)
	}
}

func (c *Catalog) tryKeepCopy(ctx context.Context, destination string, store storage.Store, gone []Stored) error {
	var newest int64
	if info, err := store.Stat(ctx, c.config.Prefix+copyName); err == nil {
		newest = info.Modified.UnixNano()
	} else if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	var lacking int
	err := c.config.DB.GetContext(ctx, &lacking, c.config.DB.Rebind("SELECT COUNT(*) FROM cmsjobs_backup_index WHERE "+
		"destination = ? AND modified_at > ?"), destination, newest)
	if err != nil || lacking-len(gone) < copyStep {
		return err
	}
	index := c.readIndex(ctx, destination)
	for _, b := range gone {
		delete(index, b.Key+manifest.Ending)
	}
	rows := make([]indexcopy.Row, 0, len(index))
	for _, r := range index {
		rows = append(rows, indexcopy.Row{Key: r.Key, Size: r.Size, Modified: r.Modified, Tag: r.Tag,
			Entry: json.RawMessage(r.Entry)})
	}
	slices.SortFunc(rows, func(a, b indexcopy.Row) int { return cmp.Compare(a.Key, b.Key) })
	key, err := c.Signer(ctx)
	if err != nil {
		return err
	}
	data, err := indexcopy.Write(rows, key.PublicKey(), key.Private)
	if err != nil {
		return err
	}
	return store.Put(ctx, c.config.Prefix+copyName, bytes.NewReader(data), storage.PutOptions{
		ExpectedSize: int64(len(data))})
}
