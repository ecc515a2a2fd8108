package binlog

import (
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
)

// Chain is what of an archive follows a position without a gap.
type Chain struct {
	Segments []Segment
	// Head is the first segment of the first file, which says how the events are written.
	Head Segment
	// Offset is where the replay begins in the first segment's file.
	Offset int64
	// End is where the chain ends: at the end of the archive, or at a gap.
	End Tail
	// Until is the time of the last event; zero where the chain has none.
	Until time.Time
	// Missing says what is not there behind the end; "" when the archive ends there.
	Missing string
}

// fileOf finds the file of a position: the newest of the name that was begun before the
// snapshot was taken.
func fileOf(all []Segment, at dump.LogPosition, snapshot time.Time) (found File, ok bool) {
	for _, s := range all {
		if s.Server == at.Server && s.Name == at.File && s.Created <= snapshot.Unix()+1 {
			found, ok = s.File, true
		}
	}
	return found, ok
}

// chainFrom follows the archive from the position of a dump.
func chainFrom(all []Segment, at dump.LogPosition, snapshot time.Time) Chain {
	c := Chain{Offset: int64(at.Offset)}
	file, ok := fileOf(all, at, snapshot)
	if !ok {
		c.Missing = fmt.Sprintf("the file %s is not archived", at.File)
		return c
	}
	c.End = Tail{file, 0}
	reached := false // the first file is archived from its begin on, or from an earlier gap
	for _, s := range all {
		switch {
		case s.Server != at.Server || s.compare(file) < 0 || s.File == c.End.File && s.End <= c.End.Offset:
			continue
		case s.File == c.End.File && s.Start > c.End.Offset, s.File != c.End.File && !c.continues(s):
			c.Missing = fmt.Sprintf("the log is missing from %s:%d to %s:%d", c.End.Name, c.End.Offset, s.Name, s.Start)
			return c.checked(reached)
		}
		c.End = Tail{s.File, s.End}
		if s.File == file && s.Start == 0 {
			c.Head = s
		}
		if s.File == file && s.End <= c.Offset {
			continue // before the dump
		}
		reached = true
		c.Segments = append(c.Segments, s)
		if s.To > 0 {
			c.Until = unix(s.To)
		}
	}
	return c.checked(reached)
}

// checked says that the dump's position itself is not in the archive.
func (c Chain) checked(reached bool) Chain {
	if !reached && c.End.Offset < c.Offset && c.Missing == "" {
		c.Missing = fmt.Sprintf("the log is archived to %s:%d only, and the dump is of %d", c.End.Name, c.End.Offset,
			c.Offset)
	}
	return c
}

// continues says whether a segment is the begin of the next file, and the one before was
// archived to its end.
func (c Chain) continues(s Segment) bool {
	return s.follows(c.End.File) && s.Start == 0 && s.After == c.End.Offset
}

// unneeded are the segments of files before those of all given positions. Where the file
// of one is not in the archive, nothing is unneeded.
func unneeded(all []Segment, kept []Base) []Segment {
	var first *File
	for _, b := range kept {
		file, ok := fileOf(all, b.Position, b.Snapshot)
		if !ok {
			return nil
		}
		if first == nil || file.compare(*first) < 0 {
			first = &file
		}
	}
	var out []Segment
	for _, s := range all {
		if first != nil && s.compare(*first) < 0 {
			out = append(out, s)
		}
	}
	return out
}

// Base is a backup from which a replay can begin.
type Base struct {
	Position dump.LogPosition
	Snapshot time.Time // the server's clock
}
