package repository

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// The statuses of a backup.
const (
	Complete = "complete"
	Partial  = "partial" // some files could not be read
)

// Record is what makes a backup one: it says where the manifest lies, and names
// every object that the backup needs. It is not encrypted and holds no file's name.
type Record struct {
	ID         string // time and SHA-256 of the record; not written in it
	Repository string // the repository's ID
	Started    time.Time
	Finished   time.Time
	Status     string // Complete or Partial
	Files      int64
	Bytes      int64  // of all files
	Note       string // of the program that made it; at most maxNote bytes
	// Manifest are the pieces of the manifest's text, in order.
	Manifest []Piece
	// Objects are the sizes of all objects that the backup needs, by name.
	Objects map[string]int64
}

// Encrypted says whether only an age identity opens the backup.
func (r *Record) Encrypted() bool { return len(r.Manifest) > 0 && isSealed(r.Manifest[0].Object) }

const (
	recordTitle = "cmsjobs-backup"
	// maxNote bounds the note.
	maxNote = 16 << 10
	// maxRecord bounds a record, packed: 2,000,000 objects.
	maxRecord = 128 << 20
)

// encode writes the record as text and packs it.
func (r *Record) encode() ([]byte, error) {
	var text bytes.Buffer
	fmt.Fprintf(&text,
		"%s\t%d\nrepository\t%s\nstarted\t%s\nfinished\t%s\nstatus\t%s\nfiles\t%d\nbytes\t%d\nnote\t%s\n",
		recordTitle, version, r.Repository, r.Started.UTC().Format(time.RFC3339Nano),
		r.Finished.UTC().Format(time.RFC3339Nano),
		r.Status, r.Files, r.Bytes, escape(r.Note))
	for _, p := range r.Manifest {
		fmt.Fprintf(&text, "manifest\t%s\n", p.fields(nil))
	}
	names := make([]string, 0, len(r.Objects))
	for name := range r.Objects {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&text, "object\t%s\t%d\n", name, r.Objects[name])
	}
	fmt.Fprintf(&text, "end\t%d\n", len(names))
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("packing a record: %w", err)
	}
	return z.EncodeAll(text.Bytes(), nil), nil
}

// decodeRecord reads the bytes of a record. It takes only what encode writes.
func decodeRecord(stored []byte) (*Record, error) {
	z, err := zstd.NewReader(bytes.NewReader(stored), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		return nil, fmt.Errorf("%w: unpacking a record: %w", ErrDamaged, err)
	}
	defer z.Close()
	lines := bufio.NewScanner(io.LimitReader(z, 4*maxRecord))
	lines.Buffer(nil, maxNote*5+1024)
	lines.Split(endedLines)
	r := &Record{Objects: map[string]int64{}}
	d := &recordDecoder{Record: r}
	for n := 1; lines.Scan(); n++ {
		if !d.add(lines.Text()) {
			return nil, fmt.Errorf("%w: line %d of a record is not as records are", ErrDamaged, n)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: reading a record: %w", ErrDamaged, err)
	}
	if !d.ended {
		return nil, fmt.Errorf("%w: a record breaks off", ErrDamaged)
	}
	return r, nil
}

// endedLines splits a text into lines that all end with a newline, and have nothing
// else taken off.
func endedLines(data []byte, atEnd bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEnd && len(data) > 0 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return 0, nil, nil
}

// recordHead are the first lines of a record, in order.
var recordHead = []string{recordTitle, "repository", "started", "finished", "status", "files", "bytes", "note"}

type recordDecoder struct {
	*Record
	head  int // lines of the head that were read
	last  string
	ended bool
}

func (d *recordDecoder) add(line string) bool {
	s := &scanner{fields: strings.Split(line, "\t")}
	word := s.text()
	switch {
	case d.ended:
		return false
	case d.head < len(recordHead):
		if word != recordHead[d.head] {
			return false
		}
		d.addHead(s)
		d.head++
	case word == "manifest" && len(d.Objects) == 0:
		d.Manifest = append(d.Manifest, s.piece(nil))
	case word == "object":
		name, size := s.text(), s.number()
		s.bad = s.bad || checkObject(name) != nil || size == 0 || size > maxObject || name <= d.last
		d.Objects[name], d.last = size, name
	case word == "end":
		d.ended = s.number() == int64(len(d.Objects)) && d.needsOnlyItsObjects()
		s.bad = s.bad || !d.ended
	default:
		return false
	}
	return s.done()
}

func (d *recordDecoder) addHead(s *scanner) {
	switch d.head {
	case 0:
		s.bad = s.number() != version
	case 1:
		d.Repository = s.text()
		s.bad = s.bad || !isRun(d.Repository)
	case 2:
		d.Started = s.time()
	case 3:
		d.Finished = s.time()
	case 4:
		d.Status = s.text()
		s.bad = s.bad || d.Status != Complete && d.Status != Partial
	case 5:
		d.Files = s.number()
	case 6:
		d.Bytes = s.number()
	case 7:
		d.Note = s.escaped()
		s.bad = s.bad || len(d.Note) > maxNote
	}
}

// needsOnlyItsObjects says whether the record names the objects of its manifest.
func (d *recordDecoder) needsOnlyItsObjects() bool {
	for _, p := range d.Manifest {
		if _, named := d.Objects[p.Object]; !named {
			return false
		}
	}
	return true
}

// List returns the IDs of all backups, oldest first.
func (r *Repository) List(ctx context.Context) ([]string, error) { return r.list(ctx, backupsFolder) }

func (r *Repository) list(ctx context.Context, folder string) (ids []string, err error) {
	for info, err := range r.store.List(ctx, folder) {
		if err != nil {
			return nil, fmt.Errorf("listing the backups: %w", err)
		}
		if id, ok := recordOf(info.Key, folder); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Find returns the record of the backup whose ID begins with id; "" is the newest.
// The error is storage.ErrNotFound where there is none.
func (r *Repository) Find(ctx context.Context, id string) (*Record, error) {
	ids, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	found := slices.DeleteFunc(ids, func(s string) bool { return !strings.HasPrefix(s, id) })
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("no backup %q in the repository: %w", id, storage.ErrNotFound)
	case len(found) > 1 && id != "":
		return nil, fmt.Errorf("%d backups begin with %q: write more of the name", len(found), id)
	}
	return r.Load(ctx, found[len(found)-1])
}

// Load reads the record of a backup and holds it against its name.
func (r *Repository) Load(ctx context.Context, id string) (*Record, error) {
	return r.load(ctx, backupsFolder, id)
}

func (r *Repository) load(ctx context.Context, folder, id string) (*Record, error) {
	key := folder + id + recordEnd
	if _, ok := recordOf(key, folder); !ok {
		return nil, fmt.Errorf("%.200q is no name of a backup: %w", id, storage.ErrNotFound)
	}
	stored, err := readBounded(ctx, r.store, key, maxRecord)
	if err != nil {
		return nil, fmt.Errorf("reading the record of a backup: %w", err)
	}
	record, err := decodeRecord(stored)
	if err != nil {
		return nil, fmt.Errorf("the backup %s: %w", id, err)
	}
	if recordID(record.Started, stored) != id {
		return nil, fmt.Errorf("%w: the record of the backup %s is not the one that was written", ErrDamaged, id)
	}
	if record.Repository != r.id {
		return nil, fmt.Errorf("the backup %s belongs to another repository (%s)", id, record.Repository)
	}
	record.ID = id
	return record, nil
}
