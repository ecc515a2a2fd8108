package repository

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// CollectRequest says what a collection of garbage does.
type CollectRequest struct {
	// Forget are the IDs of backups that are deleted before.
	Forget []string
	// Preview only says what would be done.
	Preview bool
}

// Collected says what a collection did, or would do.
type Collected struct {
	Forgotten []string // backups
	Kept      int64    // objects that a backup needs
	Young     int64    // objects that none needs, and that are too young to delete
	Deleted   int64    // objects
	Freed     int64    // bytes
	// Operations are what was asked of the store.
	Operations Operations
}

// collection is one run.
type collection struct {
	*Repository
	q   CollectRequest
	l   *lock
	out Collected
}

// Collect deletes backups, and then the objects that no backup needs. It ends
// without deleting any object where a record cannot be read, and it begins only
// while nothing else uses the repository (BusyError).
func (r *Repository) Collect(ctx context.Context, q CollectRequest) (*Collected, error) {
	before := r.Operations()
	ctx, l, err := r.acquire(ctx, forCollect)
	if err != nil {
		return nil, err
	}
	defer l.release(ctx)
	return r.collect(ctx, l, q, before)
}

func (r *Repository) collect(ctx context.Context, l *lock, q CollectRequest, before Operations) (*Collected, error) {
	c := &collection{Repository: r, q: q, l: l}
	if err := c.forget(ctx); err != nil {
		return &c.out, cause(ctx, err)
	}
	needed, err := c.needed(ctx)
	if err != nil {
		return &c.out, fmt.Errorf("no object was deleted: %w", cause(ctx, err))
	}
	err = c.sweep(ctx, needed)
	if err == nil && !q.Preview {
		err = c.leftovers(ctx)
	}
	c.out.Operations = r.Operations().since(before)
	return &c.out, cause(ctx, err)
}

// forget deletes records. From then on their backups do not exist.
func (c *collection) forget(ctx context.Context) error {
	ids, err := c.List(ctx)
	if err != nil {
		return err
	}
	for _, id := range c.q.Forget {
		if !slices.Contains(ids, id) {
			return fmt.Errorf("no backup %q in the repository: %w", id, storage.ErrNotFound)
		}
	}
	for _, id := range c.q.Forget {
		if !c.q.Preview {
			if err := c.store.Delete(ctx, backupsFolder+id+recordEnd); err != nil {
				return fmt.Errorf("deleting the backup %s: %w", id, err)
			}
		}
		c.out.Forgotten = append(c.out.Forgotten, id)
	}
	return nil
}

// needed are the objects that records name. Those that are pending come first: a
// record that stops being pending meanwhile is then among the others.
func (c *collection) needed(ctx context.Context) (map[string]bool, error) {
	needed := map[string]bool{}
	for _, folder := range []string{pendingFolder, backupsFolder} {
		ids, err := c.list(ctx, folder)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if folder == backupsFolder && slices.Contains(c.q.Forget, id) {
				continue // in a preview it is still there
			}
			b, err := c.load(ctx, folder, id)
			if errors.Is(err, storage.ErrNotFound) && folder == pendingFolder {
				continue
			}
			if err != nil {
				return nil, err
			}
			for name := range b.Objects {
				needed[name] = true
			}
		}
	}
	return needed, nil
}

// old says whether something is older than the grace period, by the store's clock.
func (c *collection) old(modified time.Time) bool { return c.l.at.Sub(modified) >= c.o.Grace }

func (c *collection) sweep(ctx context.Context, needed map[string]bool) error {
	var batch []string
	var size int64
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := c.l.confirm(ctx); err != nil {
			return err
		}
		if err := c.store.deleteAll(ctx, batch); err != nil {
			return fmt.Errorf("deleting objects: %w", err)
		}
		c.out.Deleted += int64(len(batch))
		c.out.Freed += size
		batch, size = batch[:0], 0
		return nil
	}
	for info, err := range c.store.List(ctx, objectsFolder) {
		if err != nil {
			return fmt.Errorf("listing the objects of the repository: %w", err)
		}
		name, ok := objectOf(info.Key)
		switch {
		case !ok: // not ours
		case needed[name]:
			c.out.Kept++
		case !c.old(info.Modified):
			c.out.Young++
		case c.q.Preview:
			c.out.Deleted++
			c.out.Freed += info.Size
		default:
			batch = append(batch, info.Key)
			if size += info.Size; len(batch) == page {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// endedFor is how long the note that a lock was declared dead stays.
const endedFor = 30 * 24 * time.Hour

// sweeper is implemented by stores in which killed writers leave something.
type sweeper interface {
	Sweep(ctx context.Context, prefix string, before time.Time) (int, error)
}

// leftovers removes what killed processes left beside objects. There is no backup
// that could still need it, as its lock would be here.
func (c *collection) leftovers(ctx context.Context) error {
	for _, folder := range []string{pendingFolder, locksFolder} {
		for info, err := range c.store.List(ctx, folder) {
			if err != nil {
				return fmt.Errorf("listing what killed backups left: %w", err)
			}
			_, pending := recordOf(info.Key, pendingFolder)
			note := len(info.Key) == len(ended(newRun())) && info.Key[:len(locksFolder)+6] == locksFolder+"ended-"
			if pending && c.old(info.Modified) || note && c.l.at.Sub(info.Modified) > endedFor {
				if err := c.store.Delete(ctx, info.Key); err != nil {
					return fmt.Errorf("deleting what a killed backup left: %w", err)
				}
			}
		}
	}
	if s, can := c.store.Store.(sweeper); can {
		c.store.lists.Add(1)
		// never what is being written now: a lock is, while others collect
		if _, err := s.Sweep(ctx, "", c.l.at.Add(-max(c.o.Grace, time.Minute))); err != nil {
			return fmt.Errorf("removing unfinished uploads: %w", err)
		}
	}
	return nil
}

// Summary is what retention rules look at, for one backup.
type Summary func(*Record) retention.Backup

// Prune deletes the backups that the rules do not keep, and then the objects that
// none needs any more. Where a record cannot be read nothing is deleted.
func (r *Repository) Prune(ctx context.Context, rules retention.Rules, of Summary, preview bool) (*Collected, error) {
	before := r.Operations()
	ctx, l, err := r.acquire(ctx, forCollect)
	if err != nil {
		return nil, err
	}
	defer l.release(ctx)
	ids, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	backups := make([]retention.Backup, len(ids))
	for i, id := range ids {
		b, err := r.Load(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("nothing was deleted: %w", err)
		}
		b.Manifest, b.Objects = nil, nil
		backups[i] = of(b)
	}
	q := CollectRequest{Preview: preview}
	for i, d := range rules.Decide(backups, r.o.Now()) {
		if !d.Keep {
			q.Forget = append(q.Forget, ids[i])
		}
	}
	return r.collect(ctx, l, q, before)
}
