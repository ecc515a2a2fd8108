package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

var errPower = errors.New("there is no power")

// volatile is a folder on a disk that forgets what was not synced when the power
// fails. It fails before the write with the number left.
type volatile struct {
	*storage.Local
	lock     sync.Mutex
	left     int
	unsynced []string
}

// write does one write, while there is power.
func (v *volatile) write(do func() error) error {
	v.lock.Lock()
	defer v.lock.Unlock()
	if v.left == 0 {
		return errPower
	}
	v.left--
	return do()
}

func (v *volatile) Put(ctx context.Context, key string, r io.Reader, o storage.PutOptions) error {
	return v.write(func() error { return v.Local.Put(ctx, key, r, o) })
}

func (v *volatile) PutUnsynced(ctx context.Context, key string, r io.Reader, o storage.PutOptions) error {
	return v.write(func() error {
		v.unsynced = append(v.unsynced, key)
		return v.Local.PutUnsynced(ctx, key, r, o)
	})
}

func (v *volatile) Sync(ctx context.Context) error {
	return v.write(func() error {
		v.unsynced = nil
		return v.Local.Sync(ctx)
	})
}

func (v *volatile) Delete(ctx context.Context, key string) error {
	return v.write(func() error { return v.Local.Delete(ctx, key) })
}

// fail is what the disk has after the failure: of what was not synced, some files are
// gone, some are empty, and some have only their first half.
func (v *volatile) fail(t *testing.T) {
	t.Helper()
	for i, key := range v.unsynced {
		name := filepath.Join(v.String(), key)
		info, err := os.Stat(name)
		if err == nil && i%3 == 0 {
			err = os.Remove(name)
		} else if err == nil {
			err = os.Truncate(name, info.Size()*int64(i%3-1)/2)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	v.unsynced = nil
}

// The power fails before each write of a first backup, and of a second one: every
// backup that there is then can be restored, and the next one is whole.
func TestAPowerFailureLeavesNoTornBackup(t *testing.T) {
	s := &site{dir: t.TempDir(), rand: rand.NewChaCha8([32]byte{9})}
	v := &volatile{Local: local(t, t.TempDir()), left: -1}
	r := create(t, options(v))
	shots := map[string]map[string]string{}
	for made, cuts := 0, 0; made < 2; cuts++ {
		if made+cuts > 100 {
			t.Fatal("no backup succeeds")
		}
		s.write(t, "large", s.noise(smallFile+1000))
		s.write(t, fmt.Sprintf("small-%d", made), s.noise(5000))
		v.left = cuts
		report, err := r.Backup(t.Context(), s.request(t))
		if err != nil && !errors.Is(err, errPower) {
			t.Fatal(err)
		}
		v.fail(t)
		v.left = -1
		passTime(t, r.Place())
		ids, listErr := r.List(t.Context())
		if listErr != nil {
			t.Fatal(listErr)
		}
		for _, id := range ids {
			if shots[id] == nil {
				shots[id] = shot(t, s.dir)
			}
		}
		if seen := verify(t, r, VerifyRequest{Level: Contents}); len(seen.Problems) > 0 || len(ids) != len(shots) {
			t.Fatalf("after %d writes: %+v, %v", cuts, seen.Problems, ids)
		}
		if err == nil {
			if !slices.Contains(ids, report.Record.ID) {
				t.Fatalf("after %d writes the backup %s is gone", cuts, report.Record.ID)
			}
			same(t, "the backup", shot(t, s.dir), restore(t, r, report.Record))
			made, cuts = made+1, -1
		}
	}
	if len(shots) < 2 {
		t.Errorf("%d backups", len(shots))
	}
}
