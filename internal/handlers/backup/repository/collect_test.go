package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// impatient has no grace period: what no backup needs goes at once.
func impatient(t testing.TB) Options {
	o := options(local(t, t.TempDir()))
	o.Grace = -1
	return o
}

func collect(t testing.TB, r *Repository, forget ...string) *Collected {
	t.Helper()
	c, err := r.Collect(t.Context(), CollectRequest{Forget: forget})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func objects(t testing.TB, r *Repository) (all []string) {
	t.Helper()
	for info, err := range r.store.List(t.Context(), objectsFolder) {
		if err != nil {
			t.Fatal(err)
		}
		name, _ := objectOf(info.Key)
		all = append(all, name)
	}
	return all
}

func TestOnlyWhatNoBackupNeedsIsDeleted(t *testing.T) {
	s := newSite(t, 30)
	r := create(t, impatient(t))
	shots, records := map[string]map[string]string{}, map[string]*Record{}
	var ids []string
	for i := range 6 {
		s.write(t, fmt.Sprintf("uploads/new-%d", i), s.noise(3000))
		s.write(t, "uploads/plain.txt", s.text(500+i))
		s.write(t, "large/changing", s.noise(smallFile*2))
		b := backup(t, r, s.request(t)).Record
		ids, records[b.ID], shots[b.ID] = append(ids, b.ID), b, shot(t, s.dir)
	}
	if c := collect(t, r); c.Deleted != 0 || c.Kept != int64(len(objects(t, r))) {
		t.Errorf("%+v", c)
	}
	preview, err := r.Collect(t.Context(), CollectRequest{Forget: []string{ids[0], ids[2], ids[5]}, Preview: true})
	if err != nil || len(objects(t, r)) != int(preview.Kept+preview.Deleted) {
		t.Errorf("%+v, %v", preview, err)
	}
	c := collect(t, r, ids[0], ids[2], ids[5])
	if c.Deleted == 0 || c.Deleted != preview.Deleted || c.Freed != preview.Freed || c.Kept != preview.Kept {
		t.Errorf("%+v and in the preview %+v", c, preview)
	}
	needed := map[string]bool{}
	for _, id := range []string{ids[1], ids[3], ids[4]} {
		same(t, id, shots[id], restore(t, r, records[id]))
		for name := range records[id].Objects {
			needed[name] = true
		}
	}
	for _, name := range objects(t, r) {
		if !needed[name] {
			t.Errorf("%s is left", name)
		}
	}
	if _, err := r.Collect(t.Context(), CollectRequest{Forget: []string{ids[0]}}); !errors.Is(err,
		storage.ErrNotFound) {
		t.Error(err)
	}
}

func TestWhatIsYoungStays(t *testing.T) {
	s := newSite(t, 5)
	r := create(t, options(local(t, t.TempDir())))
	b := backup(t, r, s.request(t)).Record
	if c := collect(t, r, b.ID); c.Deleted != 0 || c.Young != int64(len(b.Objects)) {
		t.Errorf("%+v", c)
	}
}

// What cannot be read may name any object.
func TestNothingIsDeletedWhileARecordCannotBeRead(t *testing.T) {
	s := newSite(t, 5)
	r := create(t, impatient(t))
	first := backup(t, r, s.request(t)).Record
	s.write(t, "more", s.noise(10))
	second := backup(t, r, s.request(t)).Record
	p := filepath.Join(r.Place(), backupsFolder+second.ID+recordEnd)
	whole, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	whole[len(whole)/2] ^= 4
	if err := os.WriteFile(p, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	before := objects(t, r)
	if _, err := r.Collect(t.Context(), CollectRequest{Forget: []string{first.ID}}); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	if !slices.Equal(before, objects(t, r)) {
		t.Error("objects were deleted")
	}
	if _, err := r.Prune(t.Context(), retention.Rules{Keep: 1}, asRules, false); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

func asRules(b *Record) retention.Backup {
	return retention.Backup{Started: b.Started, Files: true, Complete: b.Status == Complete, State: retention.Pending}
}

func TestBackupsArePrunedByTheRules(t *testing.T) {
	s := newSite(t, 5)
	o := impatient(t)
	now := later()
	o.Now = func() time.Time { return now }
	r := create(t, o)
	for i := range 10 {
		s.write(t, fmt.Sprintf("day-%d", i), s.noise(100))
		if now = now.Add(24 * time.Hour); i == 7 {
			q := s.request(t)
			q.Sources[0].Source = faulty{q.Sources[0].Source, "a/x"}
			s.write(t, "a/x", s.text(9))
			backup(t, r, q)
			continue
		}
		backup(t, r, s.request(t))
	}
	rules := retention.Rules{Keep: 3, MinAge: -1}
	preview, err := r.Prune(t.Context(), rules, asRules, true)
	if err != nil || len(preview.Forgotten) != 7 {
		t.Fatalf("%+v, %v", preview, err)
	}
	c, err := r.Prune(t.Context(), rules, asRules, false)
	if err != nil || c.Deleted == 0 || !slices.Equal(c.Forgotten, preview.Forgotten) {
		t.Errorf("%+v, %v", c, err)
	}
	if v := verify(t, r, VerifyRequest{Level: Contents}); v.Backups != 3 || len(v.Problems) != 0 {
		t.Errorf("%+v", v)
	}
}

func TestACollectionAndABackupExcludeEachOther(t *testing.T) {
	s := newSite(t, 5)
	r := create(t, impatient(t))
	other := create(t, r.o)
	for _, purpose := range []string{forBackup, forRead} {
		_, l, err := other.acquire(t.Context(), purpose)
		if err != nil {
			t.Fatal(err)
		}
		var busy *BusyError
		if _, err := r.Collect(t.Context(), CollectRequest{}); !errors.As(err, &busy) || busy.Purpose != purpose {
			t.Errorf("%v", err)
		}
		backup(t, r, s.request(t)) // these are no trouble for each other
		l.release(t.Context())
	}
	_, l, err := other.acquire(t.Context(), forCollect)
	if err != nil {
		t.Fatal(err)
	}
	var busy *BusyError
	if _, err := r.Backup(t.Context(), s.request(t)); !errors.As(err, &busy) || busy.Purpose != forCollect {
		t.Errorf("%v", err)
	}
	if _, err := r.Collect(t.Context(), CollectRequest{}); !errors.As(err, &busy) {
		t.Errorf("%v", err)
	}
	l.release(t.Context())
	collect(t, r)
	if left := shot(t, filepath.Join(r.Place(), locksFolder)); len(left) != 0 {
		t.Errorf("locks are left: %v", left)
	}
}

// passTime makes all locks older than a lease, as if their processes did not renew
// them.
func passTime(t testing.TB, place string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(place, locksFolder))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for _, e := range entries {
		old := time.Now().Add(-2 * time.Hour)
		if err := os.Chtimes(filepath.Join(place, locksFolder, e.Name()), old, old); err != nil &&
			!errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
}

// A backup is suspended for longer than its lock holds, and a collection takes what
// it has stored for garbage. It must not complete; nor may what it had pending be
// deleted, as it may be about to.
func TestASuspendedBackupDoesNotComplete(t *testing.T) {
	for _, at := range []string{objectsFolder, pendingFolder, backupsFolder} {
		t.Run(at, func(t *testing.T) {
			s := newSite(t, 30)
			o := impatient(t)
			plain := create(t, o)
			first := backup(t, plain, s.request(t)).Record
			was := shot(t, s.dir)
			s.write(t, "large/noise.bin", s.noise(pieceSize+5))
			s.write(t, "uploads/plain.txt", s.text(77))

			var once sync.Once
			collected := &Collected{}
			o.Store = &suspended{Store: o.Store, at: at, then: func() {
				once.Do(func() {
					passTime(t, plain.Place())
					collected = collect(t, plain)
				})
			}}
			_, err := create(t, o).Backup(t.Context(), s.request(t))
			if !errors.Is(err, ErrLost) {
				t.Errorf("%v", err)
			}
			if collected.Kept == 0 || at == objectsFolder && collected.Deleted == 0 || at != objectsFolder &&
				collected.Deleted != 0 {
				t.Errorf("%+v", collected)
			}
			if ids, err := plain.List(t.Context()); err != nil || len(ids) != 1 {
				t.Errorf("%v, %v", ids, err)
			}
			same(t, "the first", was, restore(t, plain, first))
			collect(t, plain)
			if left := objects(t, plain); len(left) != len(first.Objects) {
				t.Errorf("%d objects are left of %d", len(left), len(first.Objects))
			}
		})
	}
}

// suspended calls then after something was put into a folder.
type suspended struct {
	storage.Store
	at   string
	then func()
}

func (s *suspended) Put(ctx context.Context, key string, r io.Reader, o storage.PutOptions) error {
	err := s.Store.Put(ctx, key, r, o)
	if strings.HasPrefix(key, s.at) {
		s.then()
	}
	return err
}

// A record may move from pending to complete while a collection lists both.
func TestARecordThatCompletesDuringACollectionIsSeen(t *testing.T) {
	s := newSite(t, 5)
	o := impatient(t)
	r := create(t, o)
	b := backup(t, r, s.request(t)).Record
	final := filepath.Join(r.Place(), backupsFolder+b.ID+recordEnd)
	pending := filepath.Join(r.Place(), pendingFolder+b.ID+recordEnd)
	if err := os.Rename(final, pending); err != nil {
		t.Fatal(err)
	}
	moved := false
	o.Store = &listed{Store: o.Store, then: func(prefix string) {
		if prefix == pendingFolder || prefix == backupsFolder {
			if !moved && prefix == pendingFolder {
				moved = true
				if err := os.Rename(pending, final); err != nil {
					t.Error(err)
				}
			}
		}
	}}
	if c := collect(t, create(t, o)); c.Deleted != 0 || c.Kept != int64(len(b.Objects)) || !moved {
		t.Errorf("%+v", c)
	}
}

// listed calls then after a list ended.
type listed struct {
	storage.Store
	then func(prefix string)
}

func (l *listed) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		for info, err := range l.Store.List(ctx, prefix) {
			if !yield(info, err) {
				return
			}
		}
		l.then(prefix)
	}
}

// Names are never used twice: what a collection found to be garbage cannot become
// another backup's object under its hands.
func TestTheSameContentGetsAnotherNameInAnotherRun(t *testing.T) {
	s := newSite(t, 5)
	r := create(t, impatient(t))
	first := backup(t, r, s.request(t)).Record
	if err := os.Remove(filepath.Join(r.Place(), backupsFolder+first.ID+recordEnd)); err != nil {
		t.Fatal(err)
	}
	second := backup(t, r, s.request(t)).Record
	for name := range second.Objects {
		if _, used := first.Objects[name]; used {
			t.Errorf("%s was used before", name)
		}
	}
}

func TestBackupsAndCollectionsAtTheSameTime(t *testing.T) {
	s := newSite(t, 30)
	o := impatient(t)
	create(t, o)
	var wg sync.WaitGroup
	var backups, prunes atomic.Int64
	for worker := range 4 {
		wg.Go(func() {
			r := create(t, o)
			for i := range 12 {
				var err error
				done := &prunes
				if (worker+i)%2 == 0 {
					done = &backups
					p := filepath.Join(s.dir, fmt.Sprintf("worker-%d", worker))
					if err := os.WriteFile(p, []byte(fmt.Sprint(i)), 0o600); err != nil {
						t.Error(err)
					}
					_, err = r.Backup(t.Context(), s.request(t))
				} else {
					_, err = r.Prune(t.Context(), retention.Rules{Keep: 1, MinAge: -1}, asRules, false)
				}
				var busy *BusyError
				switch {
				case err == nil:
					done.Add(1)
				case !errors.As(err, &busy):
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if backups.Load() == 0 || prunes.Load() == 0 {
		t.Errorf("%d backups and %d prunes found their time", backups.Load(), prunes.Load())
	}
	r := create(t, o)
	backup(t, r, s.request(t))
	if v := verify(t, r, VerifyRequest{Level: Contents}); len(v.Problems) != 0 {
		t.Errorf("%+v", v.Problems)
	}
}

// A repository goes only if it holds nothing but what one backup wrote.
func TestRemoveDeletesWhatOneBackupWroteAndNothingElse(t *testing.T) {
	s := newSite(t, 10)
	o := options(local(t, t.TempDir()))
	r := create(t, o)
	first := backup(t, r, s.request(t))
	s.write(t, "uploads/new", s.noise(3000))
	second := backup(t, r, s.request(t))
	keys := func() (all []string) {
		for info, err := range r.store.List(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, info.Key)
		}
		return all
	}
	remove := func(want bool) {
		t.Helper()
		before := keys()
		removed, err := r.Remove(t.Context(), first.Record.ID, first.Run)
		if err != nil || removed != want {
			t.Errorf("removed: %v, %v", removed, err)
		}
		if after := keys(); !want && !slices.Equal(before, after) || want && len(after) > 0 {
			t.Errorf("before %v, after %v", before, after)
		}
	}
	remove(false) // another backup
	if err := r.store.Delete(t.Context(), backupsFolder+second.Record.ID+recordEnd); err != nil {
		t.Fatal(err)
	}
	remove(false) // its objects
	for _, name := range objects(t, r) {
		if runOf(name) == second.Run {
			if err := r.store.Delete(t.Context(), objectKey(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.store.Put(t.Context(), "notes.txt", strings.NewReader("mine"), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(false) // a foreign file
	if err := r.store.Delete(t.Context(), "notes.txt"); err != nil {
		t.Fatal(err)
	}
	ctx, l, err := r.acquire(t.Context(), forBackup)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Remove(ctx, first.Record.ID, first.Run); !IsBusy(err) || len(objects(t, r)) == 0 {
		t.Errorf("beside a backup that runs: %v, %d objects", err, len(objects(t, r)))
	}
	l.release(ctx)
	remove(true)
	if _, err := Open(t.Context(), o); !errors.Is(err, ErrNoRepository) {
		t.Errorf("afterwards: %v", err)
	}
}
