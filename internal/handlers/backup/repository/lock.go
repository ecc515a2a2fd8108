package repository

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// A lock is an object under locks/ that its process writes again and again. Its
// age is the difference of two of the store's own times, so that no host's clock
// decides. Each process writes its lock first and looks for others then: of two,
// at least one sees the other.

// Purposes of locks. Garbage collection excludes everything else.
const (
	forBackup  = "backup"
	forRead    = "read"
	forCollect = "collect"
)

// BusyError says that another process uses the repository.
type BusyError struct {
	Purpose string // backup, read or collect
	Lock    string // the lock's key
}

func (e *BusyError) Error() string {
	return fmt.Sprintf(
		"another process uses the repository (%s): try again later; if it died, its lock ends by itself", e.Lock)
}

// IsBusy says whether an error is that another process uses the repository.
func IsBusy(err error) bool {
	var busy *BusyError
	return errors.As(err, &busy)
}

// ErrLost says that a process was suspended, or cut off from the store, for longer
// than a lock holds.
var ErrLost = errors.New("the lock of the repository was lost: the process was suspended or cut off for too long")

// lock is a lock of this process.
type lock struct {
	*Repository
	run  string
	key  string
	hold time.Duration // the lease
	at   time.Time     // the store's time when it was first written
	lose context.CancelCauseFunc
	stop context.CancelFunc
	done sync.WaitGroup
}

func lockKey(purpose, run string) string { return locksFolder + purpose + "-" + run }

// ended is the key of the note that a lock was declared dead. It is written before
// the lock is deleted, so that its owner, should it live, knows.
func ended(run string) string { return lockKey("ended", run) }

// acquire takes a lock. The context ends when the lock is lost.
func (r *Repository) acquire(ctx context.Context, purpose string) (context.Context, *lock, error) {
	l := &lock{Repository: r, run: newRun(), hold: r.lease(purpose)}
	l.key = lockKey(purpose, l.run)
	err := l.write(ctx)
	if err == nil {
		var info storage.Info
		info, err = r.store.Stat(ctx, l.key)
		l.at = info.Modified
	}
	if err != nil {
		return ctx, nil, fmt.Errorf("locking the repository: %w", err)
	}
	if err := l.exclude(ctx, purpose); err != nil {
		return ctx, nil, errors.Join(err, r.store.Delete(context.WithoutCancel(ctx), l.key))
	}
	ctx, l.lose = context.WithCancelCause(ctx)
	renewing, stop := context.WithCancel(ctx)
	l.stop = stop
	l.done.Go(func() { l.renew(renewing) })
	return ctx, l, nil
}

// lease is how long a lock holds that nobody renews. Those of collections, which keep
// backups and restores away, hold a fifth.
func (r *Repository) lease(purpose string) time.Duration {
	if purpose == forCollect {
		return r.o.Lease / 5
	}
	return r.o.Lease
}

func (l *lock) write(ctx context.Context) error {
	return l.store.Put(ctx, l.key, strings.NewReader(hostName()+"\n"), storage.PutOptions{})
}

// heldBy is what a lock's key says: what for, and which run. purpose is "" where the
// key is that of no lock, or says that a run ended.
func heldBy(key string) (purpose, run string) {
	purpose, run, ok := strings.Cut(strings.TrimPrefix(key, locksFolder), "-")
	if !ok || !isRun(run) || purpose == "ended" {
		return "", ""
	}
	return purpose, run
}

// exclude looks for locks that this one cannot be beside. A collection declares
// those dead whose lease ended.
func (l *lock) exclude(ctx context.Context, purpose string) error {
	for info, err := range l.store.List(ctx, locksFolder) {
		if err != nil {
			return fmt.Errorf("looking for locks of the repository: %w", err)
		}
		other, run := heldBy(info.Key)
		if other == "" || run == l.run || purpose != forCollect && other != forCollect {
			continue
		}
		if age := l.at.Sub(info.Modified); age <= l.lease(other) {
			return &BusyError{Purpose: other, Lock: info.Key}
		}
		if purpose != forCollect {
			continue
		}
		if err := l.store.Put(ctx, ended(run), strings.NewReader(hostName()+"\n"), storage.PutOptions{}); err != nil {
			return fmt.Errorf("ending the lock %s of a dead process: %w", info.Key, err)
		}
		if err := l.store.Delete(ctx, info.Key); err != nil {
			return fmt.Errorf("ending the lock %s of a dead process: %w", info.Key, err)
		}
	}
	return nil
}

// renew writes the lock again, six times in a lease.
func (l *lock) renew(ctx context.Context) {
	tick := time.NewTicker(l.hold / 6)
	defer tick.Stop()
	for failed := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := l.write(ctx)
		switch {
		case err == nil:
			failed = 0
		case ctx.Err() != nil:
			return
		default:
			failed++
			l.o.Logger.WarnContext(ctx, "lock of the repository not renewed", "event", "repository.renew_failed",
				"lock", l.key, "error", err)
		}
		if failed >= 4 {
			l.lose(fmt.Errorf("%w: %w", ErrLost, err))
			return
		}
	}
}

// confirm says whether no collection declared this lock dead. One that does so
// later sees everything that is written now.
func (l *lock) confirm(ctx context.Context) error {
	_, err := l.store.Stat(ctx, ended(l.run))
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err == nil {
		return ErrLost
	}
	return fmt.Errorf("confirming the lock of the repository: %w", err)
}

// release is deferred. A lock that cannot be deleted ends by itself.
func (l *lock) release(ctx context.Context) {
	l.stop()
	l.done.Wait()
	l.lose(nil)
	if err := l.store.Delete(context.WithoutCancel(ctx), l.key); err != nil {
		l.o.Logger.WarnContext(ctx, "lock of the repository not released; it expires",
			"event", "repository.release_failed", "lock", l.key, "error", err)
	}
}

// Expired are the keys of locks that are older than they hold, by this host's clock:
// their process died. The next collection removes them.
func (r *Repository) Expired(ctx context.Context) (keys []string, err error) {
	for info, err := range r.store.List(ctx, locksFolder) {
		if err != nil {
			return nil, fmt.Errorf("looking for locks of the repository: %w", err)
		}
		if purpose, _ := heldBy(info.Key); purpose != "" && r.o.Now().Sub(info.Modified) > r.lease(purpose) {
			keys = append(keys, info.Key)
		}
	}
	return keys, nil
}
