package binlog

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Folder is where a place keeps the archived log, below the prefix of the archives.
const Folder = "binlog/"

// File is a file of a server's binary log. A server that begins its log again uses the
// same names: when a file was begun tells them apart.
type File struct {
	Server  string // dump.LogPosition's
	Created int64  // Unix seconds of the server's clock
	Name    string
}

// number is the file's place in the row of a server's files.
func (f File) number() (base string, n int64) {
	dot := strings.LastIndexByte(f.Name, '.')
	n, err := strconv.ParseInt(f.Name[dot+1:], 10, 64)
	if dot < 0 || err != nil {
		return f.Name, -1
	}
	return f.Name[:dot], n
}

// follows says whether the server wrote f directly after other.
func (f File) follows(other File) bool {
	base, n := f.number()
	before, m := other.number()
	return f.Server == other.Server && base == before && n == m+1 && f.Created >= other.Created
}

func (f File) compare(other File) int {
	_, n := f.number()
	_, m := other.number()
	return cmp.Or(cmp.Compare(f.Created, other.Created), cmp.Compare(n, m), cmp.Compare(f.Name, other.Name))
}

// Segment is a row of whole events of a file.
type Segment struct {
	File
	Start, End int64 // bytes of the file
	// From and To are the times of its first and last event, in Unix seconds of the server's clock; 0
	// where no event has one.
	From, To int64
	// After is how long the file before this one is, where the segment is the first of its
	// file; 0 where that is not known.
	After     int64
	Encrypted bool
	Size      int64 // as it is stored
}

// key is the segment's name below Folder. It says all of it, so that a list of names is
// all that the archive must be asked.
func (s Segment) key() string {
	ending := ".zst"
	if s.Encrypted {
		ending += ".age"
	}
	return fmt.Sprintf("%s/%011d-%s/%012d-%012d-%d-%d-%d%s", s.Server, s.Created, s.Name, s.Start, s.End, s.From, s.To,
		s.After, ending)
}

var segmentKey = regexp.MustCompile(
	`^([0-9a-f]{8})/(\d{11})-([^/]{1,200})/(\d{12,19})-(\d{12,19})-(\d{1,11})-(\d{1,11})-(\d{1,19})\.zst(\.age)?$`)

// parseKey reads the name of a segment; ok is false for other objects.
func parseKey(key string) (s Segment, ok bool) {
	m := segmentKey.FindStringSubmatch(key)
	if m == nil {
		return s, false
	}
	s.Server, s.Name, s.Encrypted = m[1], m[3], m[9] != ""
	for i, into := range map[int]*int64{2: &s.Created, 4: &s.Start, 5: &s.End, 6: &s.From, 7: &s.To, 8: &s.After} {
		n, err := strconv.ParseInt(m[i], 10, 64)
		if err != nil {
			return s, false
		}
		*into = n
	}
	return s, s.Start < s.End
}

// maxSegments bounds what is listed of a place: a minute each, three years.
const maxSegments = 1_500_000

// list is what a place has, in the order in which it was written.
func list(ctx context.Context, store storage.Store) ([]Segment, error) {
	var all []Segment
	for info, err := range store.List(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("listing the archived log: %w", err)
		}
		if s, ok := parseKey(info.Key); ok {
			s.Size = info.Size
			all = append(all, s)
		}
		if len(all) > maxSegments {
			return nil, fmt.Errorf("the archived log has more than %d segments", maxSegments)
		}
	}
	slices.SortFunc(all, func(a, b Segment) int {
		return cmp.Or(a.compare(b.File), cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	return all, nil
}

// Tail is where an archive ends.
type Tail struct {
	File
	Offset int64
}

// tail is where the archive of a server ends, or the zero value.
func tail(all []Segment, server string) (t Tail) {
	for _, s := range all {
		switch {
		case s.Server != server:
		case s.File != t.File:
			t = Tail{s.File, 0}
			fallthrough
		default:
			if s.Start <= t.Offset {
				t.Offset = max(t.Offset, s.End)
			}
		}
	}
	return t
}

func unix(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}
