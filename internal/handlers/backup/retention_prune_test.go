package backup

import (
	"context"
	"errors"
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
