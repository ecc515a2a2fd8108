package history

import (
	"context"
	"fmt"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// recordSources are those in which jobs of the filter's statuses lie.
func (s *Store) recordSources(f jobs.Filter) []recordSource {
	wants := func(statuses ...jobs.Status) bool {
		return len(f.Statuses) == 0 || slices.ContainsFunc(f.Statuses, func(x jobs.Status) bool {
			return slices.Contains(statuses, x)
		})
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
		wider.Workers, wider.Tags = nil, nil
		all, err := s.Count(ctx, wider)
		if err != nil || all > countedWhole {
			return -1, err
		}
	}
	return s.Count(ctx, f)
}

// merge takes up to limit records from all sources, newest first, and moves the
// cursor behind them. more is false when all sources are at their end.
func (s *Store) merge(ctx context.Context, f jobs.Filter, at cursor, limit int) (records []jobs.Record, more bool,
	err error) {
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
			break // what comes next in this source may be newer than the others'
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

// Count counts what Jobs would list. Where SQL cannot say which rows match, it
// reads them in steps.
func (s *Store) Count(ctx context.Context, f jobs.Filter) (int64, error) {
	var total int64
	for _, sh := range s.recordSources(f) {
		n, err := s.countSource(ctx, sh, f)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

func (s *Store) countSource(ctx context.Context, sh recordSource, f jobs.Filter) (n int64, err error) {
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
