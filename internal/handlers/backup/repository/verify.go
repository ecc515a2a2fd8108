package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Level says how much a verification reads.
type Level int

// The levels of a verification. Each includes those before.
const (
	// Present: records are right, and every object is there in its size.
	Present Level = iota + 1
	// Bytes: the bytes of objects are those that were stored. Needs no identity.
	Bytes
	// Contents: manifests and files unpack to what was read.
	Contents
)

// VerifyRequest says what is verified.
type VerifyRequest struct {
	Level Level
	// Backups are the IDs of those that are verified; nil are all.
	Backups []string
	// Share of Of: of the objects, only those of one share are read, so that Of
	// verifications read all. 0 of 0 reads all. Records are always read.
	Share, Of int
	// Run is that of a backup whose new objects are read whatever their share; "" is none.
	Run string
}

// ShareOfDay is the share for a day, so that a verification on each of so many days
// in a row reads everything once.
func ShareOfDay(now time.Time, days int) int {
	return int(now.UTC().Unix()/(24*60*60)) % max(days, 1)
}

// Problem is what a verification found.
type Problem struct {
	Key string // of the object, the record or the file of the repository
	// File is the file of a backup that cannot be restored; "" at the levels that
	// do not know files.
	File    string
	Backups []string // that need it
	Err     error
}

// Verified says what a verification did.
type Verified struct {
	Backups  int
	Objects  int64 // that the backups need
	Read     int64 // objects of which the bytes were read
	Bytes    int64 // read
	Problems []Problem
}

// verification is one run.
type verification struct {
	*Repository
	q       VerifyRequest
	lock    sync.Mutex
	out     Verified
	needed  map[string]int64   // sizes of objects, by name
	records map[string]*Record // by ID, without Objects
}

// Verify checks backups. Problems are no error: the error says that it could not
// check.
func (r *Repository) Verify(ctx context.Context, q VerifyRequest) (*Verified, error) {
	if q.Of < 0 || q.Share < 0 || q.Share >= max(q.Of, 1) {
		return nil, fmt.Errorf("there is no share %d of %d", q.Share, q.Of)
	}
	ctx, release, err := r.reading(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	v := &verification{Repository: r, q: q, needed: map[string]int64{}, records: map[string]*Record{}}
	if err := v.own(ctx); err != nil {
		return nil, err
	}
	if err := v.backups(ctx); err != nil {
		return nil, err
	}
	bad, err := v.objects(ctx)
	if err != nil {
		return nil, err
	}
	if err := v.name(ctx, bad); err != nil {
		return nil, err
	}
	if q.Level >= Contents {
		if err := v.contents(ctx); err != nil {
			return nil, err
		}
	}
	return &v.out, nil
}

func (v *verification) problem(p Problem) {
	v.lock.Lock()
	defer v.lock.Unlock()
	v.out.Problems = append(v.out.Problems, p)
}

// own checks the files that the repository has once.
func (v *verification) own(ctx context.Context) error {
	text, err := readBounded(ctx, v.store, formatKey, maxFormat)
	var f format
	if err == nil {
		f, err = parseFormat(text)
	}
	if err == nil && f.id != v.id {
		err = fmt.Errorf("%w: it is of another repository", ErrDamaged)
	}
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		v.problem(Problem{Key: formatKey, Err: err})
		return nil
	}
	script, err := readBounded(ctx, v.store, restoreKey, maxObject)
	if err == nil && sumOf(script) != f.restore {
		err = fmt.Errorf("%w: it is not as it was written", ErrDamaged)
	}
	if err != nil {
		v.problem(Problem{Key: restoreKey, Err: err})
	}
	return nil
}

// backups reads the records.
func (v *verification) backups(ctx context.Context) error {
	ids := v.q.Backups
	if ids == nil {
		var err error
		if ids, err = v.List(ctx); err != nil {
			return err
		}
	}
	for _, id := range ids {
		b, err := v.Load(ctx, id)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			v.problem(Problem{Key: backupsFolder + id + recordEnd, Backups: []string{id}, Err: err})
			continue
		}
		v.out.Backups++
		for name, size := range b.Objects {
			if known, twice := v.needed[name]; twice && known != size {
				v.problem(Problem{Key: objectKey(name), Backups: []string{id}, Err: fmt.Errorf("%w: two backups name "+
					"it with two sizes", ErrDamaged)})
			}
			v.needed[name] = size
		}
		b.Objects = nil
		v.records[id] = b
	}
	v.out.Objects = int64(len(v.needed))
	return nil
}

// objects checks the objects that backups need and returns those that are wrong.
func (v *verification) objects(ctx context.Context) (map[string]error, error) {
	bad := map[string]error{}
	there := map[string]bool{}
	for info, err := range v.store.List(ctx, objectsFolder) {
		if err != nil {
			return nil, fmt.Errorf("listing the objects of the repository: %w", err)
		}
		name, ok := objectOf(info.Key)
		if size, needed := v.needed[name]; ok && needed {
			there[name] = true
			if info.Size != size {
				bad[name] = fmt.Errorf("%w: it has %d bytes and had %d", ErrDamaged, info.Size, size)
			}
		}
	}
	var read []string
	for name := range v.needed {
		switch {
		case !there[name]:
			bad[name] = fmt.Errorf("%w: it is missing: %w", ErrDamaged, storage.ErrNotFound)
		case bad[name] == nil && v.shared(name):
			read = append(read, name)
		}
	}
	if v.q.Level < Bytes {
		return bad, nil
	}
	slices.Sort(read)
	return bad, v.read(ctx, read, bad)
}

// shared says whether an object belongs to the share that is read.
func (v *verification) shared(name string) bool {
	if v.q.Of <= 1 || v.q.Run != "" && runOf(name) == v.q.Run {
		return true
	}
	n, err := strconv.ParseUint(name[:8], 16, 32)
	return err != nil || int(n%uint64(v.q.Of)) == v.q.Share
}

func (v *verification) read(whole context.Context, names []string, bad map[string]error) error {
	g, ctx := errgroup.WithContext(whole)
	g.SetLimit(v.o.Workers)
	var buffers sync.Pool
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			buffer, _ := buffers.Get().([]byte)
			if buffer == nil {
				buffer = objectBuffer()
			}
			stored, err := readObject(ctx, buffer, v.store, name, false, nil)
			defer buffers.Put(buffer) //nolint:staticcheck // an allocation of 24 bytes an object
			if err == nil && sumOf(stored).String() != name[:2*len(Sum{})] {
				err = fmt.Errorf("%w: its bytes are not those that were stored", ErrDamaged)
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			v.lock.Lock()
			defer v.lock.Unlock()
			v.out.Read++
			v.out.Bytes += int64(len(stored))
			if err != nil {
				bad[name] = err
			}
			return nil
		})
	}
	return errors.Join(g.Wait(), context.Cause(whole))
}

// name finds out which backups need the objects that are wrong.
func (v *verification) name(ctx context.Context, bad map[string]error) error {
	if len(bad) == 0 {
		return nil
	}
	needers := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(v.records)) {
		b, err := v.Load(ctx, id)
		if err != nil {
			return err
		}
		for name := range bad {
			if _, needs := b.Objects[name]; needs {
				needers[name] = append(needers[name], id)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(bad)) {
		v.problem(Problem{Key: objectKey(name), Backups: needers[name], Err: bad[name]})
	}
	return nil
}

// contents reads every file of every backup, and what several of them share once.
func (v *verification) contents(ctx context.Context) error {
	var lock sync.Mutex
	seen := map[contentPlace]bool{}
	for _, id := range slices.Sorted(maps.Keys(v.records)) {
		err := v.each(ctx, v.records[id], nil, func(ctx context.Context, in *reader, e Entry) error {
			if len(e.Pieces) == 0 {
				return nil
			}
			key := contentPlace{e.Pieces[0].Object, e.Pieces[0].Offset, e.Sum}
			lock.Lock()
			again := seen[key]
			if len(seen) < maxIndex {
				seen[key] = true
			}
			lock.Unlock()
			if again || !v.shared(e.Pieces[0].Object) {
				return nil
			}
			err := in.copy(ctx, io.Discard, e)
			switch {
			case err == nil:
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case errors.Is(err, ErrLocked):
				return err
			default:
				v.problem(Problem{Key: objectKey(e.Pieces[0].Object), File: e.Name, Backups: []string{id}, Err: err})
			}
			return nil
		})
		switch {
		case err == nil:
		case ctx.Err() != nil, errors.Is(err, ErrLocked):
			return err
		default:
			v.problem(Problem{Key: backupsFolder + id + recordEnd, Backups: []string{id}, Err: err})
		}
	}
	return nil
}

// contentPlace is where the content of a file begins.
type contentPlace struct {
	object string
	offset int64
	sum    Sum
}
