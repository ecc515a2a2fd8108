package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// refusing is a store that does not delete one object.
type refusing struct {
	*farStore
	key string
}

var errLocked = errors.New("it is locked")

func (r refusing) DeleteAll(ctx context.Context, keys []string) error {
	if slices.Contains(keys, r.key) {
		return errLocked
	}
	return r.farStore.DeleteAll(ctx, keys)
}

// Of thousands that go, those that the store refuses stay whole and are not said to be
// gone; the others go. A second prune finds only them.
func TestARefusedBatchHoldsUpNoOther(t *testing.T) {
	const n = 3500
	s := newSite(t, jobstest.SQLite)
	far := &farStore{held: map[string][]byte{}, born: s.clock.now.AddDate(0, -1, 0)}
	store := refusing{far, "backup-b001500.json"}
	s.c.Destinations = map[string]storage.Store{"far": store}
	s.c.Options.Retention = retention.Rules{Keep: 7, MinAge: -1}
	h := s.handler(t)
	far.fill(t, s, h, n)
	gone, err := h.Prune(t.Context())
	if !errors.Is(err, errLocked) {
		t.Errorf("the refusal is not told: %v", err)
	}
	all, listErr := h.List(t.Context(), "")
	if listErr != nil || len(gone)+len(all) != n || len(all) < deleteBatch || len(all) > deleteBatch+10 {
		t.Errorf("%d are said to be gone, %d are there, %v", len(gone), len(all), listErr)
	}
	for _, b := range all {
		if _, there := far.held[b.Archive]; !there {
			t.Fatalf("%s has lost its archive", b.ID)
		}
	}
	for key := range far.held {
		if base, is := strings.CutSuffix(key, ".tar.zst"); is && far.held[base+".json"] == nil {
			t.Fatalf("%s has lost its manifest file", key)
		}
	}
	far.deletions.Store(0)
	if gone, err := h.Prune(t.Context()); len(gone) != 0 || !errors.Is(err, errLocked) || far.deletions.Load() != 0 {
		t.Errorf("a second prune: %d gone with %d deletions, %v", len(gone), far.deletions.Load(), err)
	}
}

// locking is a store that locks some objects, as a bucket with object lock and without
// versions does.
type locking struct {
	*farStore
	locked map[string]bool
}

func (l locking) refuse(key string) error {
	if l.locked[key] {
		return fmt.Errorf("%w: %s is locked", storage.ErrProtected, key)
	}
	return nil
}

func (l locking) Delete(ctx context.Context, key string) error {
	if err := l.refuse(key); err != nil {
		return err
	}
	return l.farStore.Delete(ctx, key)
}

func (l locking) DeleteAll(ctx context.Context, keys []string) error {
	for _, key := range keys {
		if err := l.refuse(key); err != nil {
			return err
		}
	}
	return l.farStore.DeleteAll(ctx, keys)
}

// What a bucket locks stays whole and is no failure; what it does not lock goes.
func TestALockedBackupStaysAndIsNoFailure(t *testing.T) {
	const n = 40
	s := newSite(t, jobstest.SQLite)
	far := &farStore{held: map[string][]byte{}, born: s.clock.now.AddDate(0, -1, 0)}
	store := locking{far, map[string]bool{}}
	s.c.Destinations = map[string]storage.Store{"far": store}
	s.c.Options.Retention = retention.Rules{Keep: 7, MinAge: -1}
	h := s.handler(t)
	far.fill(t, s, h, n)
	for _, key := range []string{"backup-b000010.json", "backup-b000010.tar.zst", "backup-b000011.json",
		"backup-b000011.tar.zst"} {
		if far.held[key] == nil {
			t.Fatalf("there is no %s", key)
		}
		store.locked[key] = true
	}
	gone, err := h.Prune(t.Context())
	all, listErr := h.List(t.Context(), "")
	if err != nil || listErr != nil || len(gone) == 0 || len(gone)+len(all) != n {
		t.Fatalf("%d gone, %d there, %v, %v", len(gone), len(all), err, listErr)
	}
	for key := range store.locked {
		if far.held[key] == nil {
			t.Errorf("%s is gone", key)
		}
	}
	if gone, err := h.Prune(t.Context()); len(gone) != 0 || err != nil {
		t.Errorf("a second prune: %d gone, %v", len(gone), err)
	}
	clear(store.locked)
	if gone, err := h.Prune(t.Context()); len(gone) != 2 || err != nil {
		t.Errorf("after the lock: %d gone, %v", len(gone), err)
	}
}
