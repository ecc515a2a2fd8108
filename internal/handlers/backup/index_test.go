package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// The bounds of package catalog.
const (
	readsAtOnce = 128
	bytesAtOnce = 64 << 20
	copyName    = "backup-index.zst"
	copyStep    = 100
)

// farStore is a store in memory that answers after a delay, as a bucket does: a
// page of 1,000 names, an object, a deletion of 1,000.
type farStore struct {
	delay time.Duration
	mu    sync.Mutex
	held  map[string][]byte
	born  time.Time

	opens, pages, deletions, reading, most atomic.Int64
}

func (f *farStore) Put(_ context.Context, key string, r io.Reader, _ storage.PutOptions) error {
	data, err := io.ReadAll(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held[key] = data
	return err
}

func (f *farStore) Open(_ context.Context, key string) (io.ReadCloser, storage.Info, error) {
	f.opens.Add(1)
	f.most.Store(max(f.most.Load(), f.reading.Add(1)))
	defer f.reading.Add(-1)
	time.Sleep(f.delay)
	f.mu.Lock()
	defer f.mu.Unlock()
	data, there := f.held[key]
	if !there {
		return nil, storage.Info{}, storage.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(data)), f.info(key), nil
}

func (f *farStore) info(key string) storage.Info {
	return storage.Info{Key: key, Size: int64(len(f.held[key])), Modified: f.born, Tag: sha(f.held[key])}
}

func (f *farStore) Stat(_ context.Context, key string) (storage.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.held[key]; !there {
		return storage.Info{}, storage.ErrNotFound
	}
	return f.info(key), nil
}

func (f *farStore) List(_ context.Context, _ string) iter.Seq2[storage.Info, error] {
	f.mu.Lock()
	keys := slices.Sorted(maps.Keys(f.held))
	infos := make([]storage.Info, len(keys))
	for i, key := range keys {
		infos[i] = f.info(key)
	}
	f.mu.Unlock()
	return func(yield func(storage.Info, error) bool) {
		for i, info := range infos {
			if i%1000 == 0 {
				f.pages.Add(1)
				time.Sleep(f.delay)
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (f *farStore) Delete(_ context.Context, key string) error {
	return f.DeleteAll(context.Background(), []string{key})
}

func (f *farStore) DeleteAll(_ context.Context, keys []string) error {
	f.deletions.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, key := range keys {
		delete(f.held, key)
	}
	return nil
}

// fill puts n backups there, one a day, each with 120 tables.
func (f *farStore) fill(t *testing.T, s *site, h *Handler, n int) {
	t.Helper()
	key, err := h.Signer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		at := s.clock.now.Add(-time.Duration(i) * 24 * time.Hour)
		side := manifest.File{Header: manifest.Header{Format: 1, ID: fmt.Sprintf("b%06d", i), Started: at,
			Database: true, Files: true}, Status: manifest.Complete, Made: manifest.Complete, Finished: at,
			Archive: fmt.Sprintf("backup-b%06d.tar.zst", i), Size: 100, SHA256: sha([]byte{byte(i)})}
		for n := range 120 {
			side.Tables = append(side.Tables, manifest.TableFigure{Name: fmt.Sprintf("a_table_of_the_cms_%d", n),
				Rows: int64(i * n)})
		}
		if err := key.Sign(&side); err != nil {
			t.Fatal(err)
		}
		side.Settle(&manifest.VerificationSummary{Level: manifest.LevelRestored, OK: true, At: at})
		data, err := json.Marshal(side)
		if err != nil {
			t.Fatal(err)
		}
		f.held[fmt.Sprintf("backup-b%06d.json", i)], f.held[side.Archive] = data, []byte("x")
	}
}

func TestALongListIsReadOnceAndPrunedWithFewCalls(t *testing.T) {
	const n = 10_000
	s := newSite(t, jobstest.SQLite)
	far := &farStore{delay: 5 * time.Millisecond, held: map[string][]byte{}, born: s.clock.now.AddDate(0, -1, 0)}
	s.c.Destinations = map[string]storage.Store{"far": far}
	s.c.Options.Retention = retention.Rules{Keep: 7, MinAge: -1}
	h := s.handler(t)
	far.fill(t, s, h, n)
	list := func(doing string) []catalog.Stored {
		t.Helper()
		far.opens.Store(0)
		began := time.Now()
		all, err := h.List(t.Context(), "")
		t.Logf("%s: %d backups in %s, %d reads, at most %d at once", doing, len(all),
			time.Since(began).Round(time.Millisecond), far.opens.Load(), far.most.Load())
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if all := list("first"); len(all) != n || far.opens.Load() != n || far.most.Load() < 8 ||
		far.most.Load() > readsAtOnce {
		t.Fatalf("%d backups", len(all))
	}
	all := list("again")
	if len(all) != n || far.opens.Load() != 0 {
		t.Fatalf("%d backups, %d reads", len(all), far.opens.Load())
	}
	if b := all[0]; b.TableCount != 120 || b.Origin != manifest.Own || b.Verification == nil ||
		b.Key != "backup-b000000" {
		t.Errorf("%+v", b)
	}
	// One that changes is read again, and seen as altered.
	key := "backup-b000042.json"
	far.held[key] = bytes.Replace(far.held[key], []byte(`"rows":0`), []byte(`"rows":7`), 1)
	all = list("one changed")
	if far.opens.Load() != 1 || all[42].Origin != manifest.Altered {
		t.Errorf("%d reads, %s", far.opens.Load(), all[42].Origin)
	}
	far.pages.Store(0)
	began := time.Now()
	gone, err := h.Prune(t.Context())
	t.Logf("pruned %d in %s with %d deletions and %d pages", len(gone), time.Since(began).Round(time.Millisecond),
		far.deletions.Load(), far.pages.Load())
	if err != nil || len(gone) != n-8 || far.deletions.Load() > 20 || far.pages.Load() > 20 {
		t.Errorf("%d pruned, %v", len(gone), err)
	}
	if left := list("after pruning"); len(left) != 8 {
		t.Errorf("%d are left", len(left))
	}
	var rows int
	if err := s.Get(&rows, "SELECT COUNT(*) FROM cmsjobs_backup_index"); err != nil || rows != 8 {
		t.Errorf("the index has %d rows, %v", rows, err)
	}
}

// However many manifest files there are and whichever program wrote them, they do not fill the
// memory: large ones are read a few at a time.
func TestLargeManifestFilesAreReadAFewAtATime(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	far := &farStore{delay: 5 * time.Millisecond, held: map[string][]byte{}, born: s.clock.now}
	s.c.Destinations = map[string]storage.Store{"far": far}
	large := bytes.Repeat([]byte(" "), bytesAtOnce/8)
	for i := range 32 {
		far.held[fmt.Sprintf("backup-b%06d.json", i)] = large
	}
	h := s.handler(t)
	if _, err := h.List(t.Context(), ""); err == nil {
		t.Error("32 files that are no manifest files are listed without an error")
	}
	if most := far.most.Load(); most > 8 || far.opens.Load() != 32 {
		t.Errorf("%d were read at once, %d in all", most, far.opens.Load())
	}
}
