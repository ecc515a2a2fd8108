package repository

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// commit makes all objects durable, then writes the record. It is first written as pending: from then on a
// collection spares what it names, also one that thinks this process dead; and only
// if none thought so before, the record becomes the backup's.
func (b *run) commit(ctx context.Context, l *lock) error {
	r := &Record{
		Repository: b.id, Started: b.started, Finished: b.o.Now().UTC(), Status: Complete, Note: b.q.Note,
		Files: b.records.files, Bytes: b.records.bytes, Manifest: b.records.pieces, Objects: b.records.objects,
	}
	if b.partial {
		r.Status = Partial
	}
	stored, err := r.encode()
	if err != nil {
		return err
	}
	if len(stored) > maxRecord {
		return errors.New("the backup has more objects than a record can name")
	}
	// What the record names must be on the disk before there is a record.
	if err := b.store.sync(ctx); err != nil {
		return fmt.Errorf("writing the objects to the disk: %w", err)
	}
	r.ID = recordID(r.Started, stored)
	pending, final := pendingFolder+r.ID+recordEnd, backupsFolder+r.ID+recordEnd
	for _, key := range []string{pending, final} {
		err := b.store.Put(ctx, key, bytes.NewReader(stored), storage.PutOptions{})
		if err == nil {
			err = l.confirm(ctx)
		}
		if err != nil {
			undo := context.WithoutCancel(ctx)
			return errors.Join(fmt.Errorf("writing the record: %w", err), b.store.Delete(undo, final),
				b.store.Delete(undo, pending))
		}
	}
	if err := b.store.Delete(ctx, pending); err != nil {
		b.o.Logger.WarnContext(ctx, "pending record not removed; a collection removes it",
			"event", "repository.pending_left", "backup", r.ID, "error", err)
	}
	cache, err := b.openCache()
	if err == nil {
		err = cache.keepOnly(ctx, r)
		cache.close()
	}
	if err != nil {
		b.o.Logger.WarnContext(ctx, "cache of manifests not pruned", "event", "repository.cache_failed", "error", err)
	}
	b.report.Record = r
	return nil
}
