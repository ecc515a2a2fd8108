package repository

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Labelled is a source and the first part of its files' names in the backup.
type Labelled struct {
	Label  string
	Source Source
}

// Request says what a backup holds.
type Request struct {
	Sources []Labelled
	// Wanted says whether a file (LABEL/PATH) belongs to the backup; nil wants all.
	Wanted func(name string) bool
	// Note is kept in the record, which is not encrypted.
	Note string
	// Progress is called with what is done so far; nil is nothing to call.
	Progress func(files, bytes int64)
}

func (q *Request) check() error {
	if len(q.Note) > maxNote {
		return fmt.Errorf("a note has at most %d bytes", maxNote)
	}
	q.Sources = slices.Clone(q.Sources)
	slices.SortFunc(q.Sources, func(a, b Labelled) int { return strings.Compare(a.Label+"/", b.Label+"/") })
	for i, s := range q.Sources {
		if checkName(s.Label) != nil || strings.Contains(s.Label, "/") || i > 0 && q.Sources[i-1].Label == s.Label {
			return fmt.Errorf("%q is no label of a source: it needs one part, and another than the others have",
				s.Label)
		}
	}
	return nil
}

// Report says what a backup did.
type Report struct {
	Record    *Record
	Run       string // names the objects that the backup stored
	Unchanged int64  // files that were not read
	Read      int64  // bytes of files
	// Objects and Written are the objects that the backup stored, and all its bytes
	// in the store, with its record.
	Objects int64
	// Lost are objects of the last backup that the store has no more, or in another
	// size. What was in them was stored again.
	Lost     int64
	Warnings []string
	// Missing is the first warning of what the backup should hold and does not.
	Missing    string
	Operations Operations
}

// maxWarnings bounds the list of what went wrong.
const maxWarnings = 1000

// restTime is how long a file must have been unchanged when the backup began. One
// that changed later may change again within the resolution of its times.
const restTime = 2 * time.Second

// run makes one backup.
type run struct {
	*Repository
	q       Request
	name    string // of the run, in the names of its objects
	started time.Time
	base    *Record // nil: the first one
	// present are the objects that the store had when the backup began.
	present map[string]int64
	known   func() *index // of the base's contents, read when first needed
	records *recorder
	// Memory that is used again: of encrypted objects, and of small files.
	sealed chan *bytes.Buffer
	small  sync.Pool

	lock    sync.Mutex
	report  Report
	partial bool
	created map[string]int64 // objects of this run
	read    atomic.Int64
}

// missing warns of what the backup should hold and does not.
func (b *run) missing(format string, args ...any) {
	b.warn(format, args...)
	b.lock.Lock()
	defer b.lock.Unlock()
	if !b.partial {
		b.report.Missing = fmt.Sprintf(format, args...)
	}
	b.partial = true
}

func (b *run) warn(format string, args ...any) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if len(b.report.Warnings) < maxWarnings {
		b.report.Warnings = append(b.report.Warnings, fmt.Sprintf(format, args...))
	}
}

// has says whether all pieces of an entry are in the store.
func (b *run) has(pieces ...Piece) bool {
	for _, p := range pieces {
		if _, there := b.present[p.Object]; !there {
			return false
		}
	}
	return true
}

// size is that of an object that a backup may name.
func (b *run) size(name string) (int64, error) {
	if size, old := b.present[name]; old {
		return size, nil
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	if size, made := b.created[name]; made {
		return size, nil
	}
	return 0, fmt.Errorf("the object %s is not in the repository", name)
}

// put stores an object and returns its name. Where the sum of its bytes is known,
// it is not computed again.
func (b *run) put(ctx context.Context, plain []byte, sum *Sum) (string, error) {
	stored := plain
	if len(b.o.Recipients) > 0 {
		out := <-b.sealed
		defer func() { b.sealed <- out }()
		if out == nil {
			out = bytes.NewBuffer(objectBuffer())
		}
		if err := seal(out, plain, b.o.Recipients); err != nil {
			return "", err
		}
		stored, sum = out.Bytes(), nil
	}
	if sum == nil {
		computed := sumOf(stored)
		sum = &computed
	}
	name := objectName(*sum, b.name, len(b.o.Recipients) > 0)
	b.lock.Lock()
	_, twice := b.created[name]
	b.lock.Unlock()
	if twice {
		return name, nil
	}
	err := b.store.putUnsynced(ctx, objectKey(name), bytes.NewReader(stored), storage.PutOptions{
		ExpectedSize: int64(len(stored))})
	if err != nil {
		return "", fmt.Errorf("storing an object: %w", err)
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	b.created[name] = int64(len(stored))
	return name, nil
}
