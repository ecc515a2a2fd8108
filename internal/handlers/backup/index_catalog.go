package backup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/indexcopy"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// catalogName is the copy of our index at a destination. It ends unlike an archive and
// unlike a manifest file.
const catalogName = "backup-catalog.zst"

// catalogStep is how many manifest files the index or the catalog may lack before
// the catalog is read or written again.
const catalogStep = 100

// readCatalog reads the rows of a destination's catalog where our index lacks many of
// its manifest files. Without it each of them is read.
func (h *Handler) readCatalog(ctx context.Context, store storage.Store, saved *storage.Info, infos []storage.Info, index map[string]indexRow) map[string]indexRow {
	lacking := map[string]indexRow{}
	for _, info := range infos {
		if row := rowOf(info); !index[info.Key].fits(row) {
			lacking[info.Key] = row
		}
	}
	if saved == nil || len(lacking) < catalogStep {
		return nil
	}
	rows := make(map[string]indexRow, len(lacking))
	err := func() error {
		key, err := h.signer(ctx)
		if err != nil {
			return err
		}
		body, _, err := store.Open(ctx, saved.Key)
		if err != nil {
			return err
		}
		defer body.Close()
		return indexcopy.Read(body, key.trusts, func(r indexcopy.Row) {
			row := indexRow{Key: r.Key, Size: r.Size, Modified: r.Modified, Tag: r.Tag, Entry: string(r.Entry)}
			if now, wanted := lacking[r.Key]; wanted && row.fits(now) {
				rows[r.Key] = row
			}
		})
	}()
	if err != nil && ctx.Err() == nil {
		h.c.Logger.InfoContext(ctx, "catalog of backups not read; reading every manifest file",
			"event", "backup.catalog_failed", "key", saved.Key, "error", err)
	}
	return rows
}

// trusts gives the public key of a name if it is ours or of a trusted installation.
func (s signer) trusts(name string) ed25519.PublicKey {
	if name != s.own() && !slices.Contains(s.trusted, name) {
		return nil
	}
	key, err := parseKey(name)
	if err != nil {
		return nil
	}
	return key
}

// keepCatalog writes a destination's catalog again where many manifest files are
// newer than it. gone are backups that were just deleted. That it fails costs a later
// first list time, nothing else.
func (h *Handler) keepCatalog(ctx context.Context, destination string, store storage.Store, gone []Stored) {
	if _, own := store.(*Botble); own || ctx.Err() != nil {
		return
	}
	if err := h.tryKeepCatalog(ctx, destination, store, gone); err != nil {
		h.c.Logger.InfoContext(ctx, "catalog of backups not written", "event", "backup.catalog_failed",
			"destination", destination, "error", err)
	}
}

func (h *Handler) tryKeepCatalog(ctx context.Context, destination string, store storage.Store, gone []Stored) error {
	var newest int64
	if info, err := store.Stat(ctx, h.c.Options.Prefix+catalogName); err == nil {
		newest = info.Modified.UnixNano()
	} else if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	var lacking int
	err := h.c.DB.GetContext(ctx, &lacking, h.c.DB.Rebind("SELECT COUNT(*) FROM cmsjobs_backup_index WHERE destination = ? AND modified_at > ?"), destination, newest)
	if err != nil || lacking-len(gone) < catalogStep {
		return err
	}
	index := h.readIndex(ctx, destination)
	for _, b := range gone {
		delete(index, b.Key+manifestFileEnding)
	}
	rows := make([]indexcopy.Row, 0, len(index))
	for _, r := range index {
		rows = append(rows, indexcopy.Row{Key: r.Key, Size: r.Size, Modified: r.Modified, Tag: r.Tag, Entry: json.RawMessage(r.Entry)})
	}
	slices.SortFunc(rows, func(a, b indexcopy.Row) int { return cmp.Compare(a.Key, b.Key) })
	key, err := h.signer(ctx)
	if err != nil {
		return err
	}
	data, err := indexcopy.Write(rows, key.own(), key.private)
	if err != nil {
		return err
	}
	return store.Put(ctx, h.c.Options.Prefix+catalogName, bytes.NewReader(data), storage.PutOptions{ExpectedSize: int64(len(data))})
}
