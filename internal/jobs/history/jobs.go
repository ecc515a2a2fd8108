package history

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// What people see of a job lies on three shelves: waiting and running jobs in
// jobs, dead ones in failed_jobs, finished and cancelled ones in cmsjobs_runs.
// Each is read by its primary key, so that a list costs the same at any depth
// and stays right while rows come and go.
type recordSource struct {
	name string
	// read returns matching records beyond a key, in the order of keys.
	read func(ctx context.Context, f jobs.Filter, from keysetCursor, limit int) (page, error)
}

// keysetCursor is where a shelf is read on from: above or below a key.
type keysetCursor struct {
	key    int64
	ended  int64 // history only, Unix ms: it is ordered by when runs ended, then by key
	oldest bool  // upwards, oldest first; else downwards, newest first
}

// condition is the SQL of a position; "" at the beginning.
func (p keysetCursor) condition(column string) string {
	switch {
	case p.key == 0:
		return "1=1"
	case p.oldest:
		return fmt.Sprintf("%s > %d", column, p.key)
	}
	return fmt.Sprintf("%s < %d", column, p.key)
}

func (p keysetCursor) order(column string) string {
	if p.oldest {
		return " ORDER BY " + column
	}
	return " ORDER BY " + column + " DESC"
}

// record is one record and its key on its shelf.
type record struct {
	key       int64
	ended     int64 // see position64
	size      int64 // bytes of the payload
	claimable bool  // a claim would take it
	jobs.Record
}

// position is where a list goes on behind the record.
func (f record) position() keysetCursor { return keysetCursor{key: f.key, ended: f.ended} }

// when places a record among those of other shelves.
func (f record) when() time.Time {
	if f.EndedAt.IsZero() {
		return f.EnqueuedAt
	}
	return f.EndedAt
}

// page is a part of a shelf. last is where the last row lies that was looked
// at, matching or not; end says that there are no more.
type page struct {
	items []record
	last  keysetCursor
	end   bool
}

// recordSources are those on which jobs of the filter's states lie.
func (s *Store) recordSources(f jobs.Filter) []recordSource {
	wants := func(states ...jobs.Status) bool {
		return len(f.Statuses) == 0 || slices.ContainsFunc(f.Statuses, func(x jobs.Status) bool { return slices.Contains(states, x) })
	}
	var list []recordSource
	if wants(jobs.StatusQueued, jobs.StatusProcessing) && f.Cause == "" {
		list = append(list, recordSource{"w", s.readLive})
	}
	if wants(jobs.StatusFailed) {
		list = append(list, recordSource{"f", s.readFailedRows})
	}
	if wants(jobs.StatusCompleted, jobs.StatusCancelled) && f.Cause == "" {
		list = append(list, recordSource{"r", s.readEnded})
	}
	return list
}

// defaultLimit and maxLimit bound a page.
const (
	defaultLimit = 50
	maxLimit     = 1000
	maxOffset    = 10_000
)

func pageLimit(p jobs.Page) int {
	if p.Limit <= 0 {
		return defaultLimit
	}
	return min(p.Limit, maxLimit)
}

// Jobs lists jobs, newest first, wherever they lie. Total is −1 where it
// would have to be counted row by row; Count does that.
func (s *Store) Jobs(ctx context.Context, f jobs.Filter, p jobs.Page) (jobs.List[jobs.Record], error) {
	limit, skip := pageLimit(p), 0
	if p.Cursor == "" {
		skip = min(max(p.Offset, 0), maxOffset)
	}
	at, err := parseCursor(p.Cursor)
	if err != nil {
		return jobs.List[jobs.Record]{}, err
	}
	var records []jobs.Record
	for len(records) < skip+limit {
		merged, more, err := s.merge(ctx, f, at, min(skip+limit-len(records), maxLimit))
		if err != nil {
			return jobs.List[jobs.Record]{}, err
		}
		records = append(records, merged...)
		if !more {
			at = nil
			break
		}
		if len(merged) == 0 {
			break // a long stretch without matches: the cursor goes on from here
		}
	}
	list := jobs.List[jobs.Record]{Items: records[min(skip, len(records)):], Total: -1, Next: at.String()}
	if err := s.addRest(ctx, list.Items); err != nil {
		return list, err
	}
	switch {
	case at == nil && p.Cursor == "" && len(records) >= skip: // the list ends here
		list.Total = int64(len(records))
	case !p.Uncounted:
		list.Total, err = s.total(ctx, f)
	}
	return list, err
}

// countedWhole is how many jobs are read to count those that only Go can tell.
const countedWhole = 2000

// total is how many jobs a filter matches, -1 where counting would read the
// payloads of more than countedWhole jobs.
func (s *Store) total(ctx context.Context, f jobs.Filter) (int64, error) {
	if !countable(f) {
		wider := f
		wider.Types, wider.UUIDs, wider.Text, wider.Cause = nil, nil, "", ""
		all, err := s.Count(ctx, wider)
		if err != nil || all > countedWhole {
			return -1, err
		}
	}
	return s.Count(ctx, f)
}

// merge takes up to limit records from all shelves, newest first, and moves
// the cursor behind them. more is false when all shelves are at their end.
func (s *Store) merge(ctx context.Context, f jobs.Filter, at cursor, limit int) (records []jobs.Record, more bool, err error) {
	recordSources := s.recordSources(f)
	pages := make([]page, len(recordSources))
	for i, sh := range recordSources {
		if at[sh.name] == atEnd {
			pages[i].end = true
			continue
		}
		if pages[i], err = sh.read(ctx, f, at.of(sh.name), limit); err != nil {
			return nil, false, err
		}
	}
	for len(records) < limit {
		newest := -1
		for i, p := range pages {
			if len(p.items) > 0 && (newest < 0 || p.items[0].when().After(pages[newest].items[0].when())) {
				newest = i
			}
		}
		if newest < 0 {
			break
		}
		p := &pages[newest]
		at.put(recordSources[newest].name, p.items[0].position())
		records = append(records, p.items[0].Record)
		if p.items = p.items[1:]; len(p.items) == 0 && !p.end {
			break // what comes next on this shelf may be newer than the others'
		}
	}
	for i, p := range pages {
		switch {
		case len(p.items) > 0:
			more = true
		case p.end:
			at[recordSources[i].name] = atEnd
		default:
			at.put(recordSources[i].name, p.last)
			more = true
		}
	}
	return records, more, nil
}

// countable says that SQL alone can count the filter's jobs.
func countable(f jobs.Filter) bool {
	return len(f.Types) == 0 && len(f.ExceptKinds) == 0 && len(f.UUIDs) == 0 && f.Text == "" && f.Cause == ""
}

// Count counts what Jobs would list. Where SQL cannot say which rows match, it
// reads them in steps.
func (s *Store) Count(ctx context.Context, f jobs.Filter) (int64, error) {
	var total int64
	for _, sh := range s.recordSources(f) {
		n, err := s.countShelf(ctx, sh, f)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

func (s *Store) countShelf(ctx context.Context, sh recordSource, f jobs.Filter) (n int64, err error) {
	if countable(f) {
		table, where, args := s.live(f)
		q := s.tables.DB
		switch sh.name {
		case "f":
			table, where, args = s.failedWhere(f)
		case "r":
			if len(f.Queues) == 0 && f.Since.IsZero() && f.Until.IsZero() {
				return s.tallied(ctx, f)
			}
			table, where, args = s.endedWhere(f)
			q = s.tables.OwnDB
		}
		_, err = s.tables.QueryRow(ctx, q, []any{&n}, "SELECT COUNT(*) FROM "+table+" WHERE "+where, args...)
		if err != nil {
			err = fmt.Errorf("counting %s: %w", table, err)
		}
		return n, err
	}
	for from := (keysetCursor{}); ; {
		p, err := sh.read(ctx, f, from, maxLimit)
		if err != nil {
			return n, err
		}
		n += int64(len(p.items))
		if p.end {
			return n, nil
		}
		from = p.last
	}
}

// matches is the part of a filter that SQL does not decide.
func (s *Store) matches(f jobs.Filter) func(record) bool {
	return func(r record) bool {
		if len(f.Types) > 0 && !slices.Contains(f.Types, r.Type) && !slices.ContainsFunc(f.Types, func(k string) bool { return s.canonical(k) == r.Type }) {
			return false
		}
		if slices.Contains(f.ExceptKinds, r.Type) {
			return false
		}
		return len(f.UUIDs) == 0 || slices.Contains(f.UUIDs, r.UUID)
	}
}

// canonical resolves an alias of a type.
func (s *Store) canonical(kind string) string {
	if e, known := s.tables.Options.Registry.Lookup(kind); known {
		return e.Type
	}
	return kind
}
