package history

import (
	"context"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// failedWhere is the filter on failed_jobs, as far as SQL decides it.
func (s *Store) failedWhere(f jobs.Filter) (table, where string, args []any) {
	var c conditions
	c.in("queue", f.Queues)
	if f.Text != "" {
		part, args := s.like(f.Text, "payload", "exception")
		c.add(part, args...)
	}
	column := s.tables.Failed.FailedAt.Name
	if !f.Since.IsZero() {
		c.add(column + " >= " + s.tables.FailedAt(f.Since.Unix()))
	}
	if !f.Until.IsZero() {
		c.add(column + " < " + s.tables.FailedAt(f.Until.Unix()))
	}
	if len(f.UUIDs) > 0 && s.tables.Failed.UUID {
		c.in("uuid", f.UUIDs)
	}
	return s.tables.Failed.Name, c.String(), c.args
}

// searched says that failed rows of a filter are searched for: the CMS's table
// has an index on uuid only.
func (s *Store) searched(f jobs.Filter) bool {
	return f.Text != "" || len(f.Queues)+len(f.Workers)+len(f.Tags) > 0 || !f.Since.IsZero() || !f.Until.IsZero() ||
		len(f.UUIDs) > 0 && !s.tables.Failed.UUID
}

// readFailedRows reads failed jobs. Types and causes are looked up
// in our index of it.
func (s *Store) readFailedRows(ctx context.Context, f jobs.Filter, from keysetCursor, limit int) (page, error) {
	_, where, args := s.failedWhere(f)
	if len(f.UUIDs) > 0 && !s.tables.Failed.UUID {
		hint, more := s.hints(jobs.Filter{UUIDs: f.UUIDs}, "payload")
		where, args = where+" AND "+hint, append(args, more...)
	}
	matches := s.matches(jobs.Filter{UUIDs: f.UUIDs, ExceptKinds: f.ExceptKinds, Workers: f.Workers, Tags: f.Tags})
	if f.Cause == "" && len(f.Types) == 0 {
		return s.scanTable(ctx, tableScan{table: s.tables.Failed.Name, db: s.tables.DB, matches: matches,
			whole: !s.searched(f),
			read: func(condition, order string, limit int) ([]record, error) {
				rows, err := s.queryFailed(ctx, s.tables.DB, where+" AND "+condition, args, order, limit)
				return s.withWorkers(ctx, f, rows, err)
			}}, from, limit)
	}
	index := s.indexNewFailures
	if from.oldest { // for a change: none may be missing
		index = s.indexFailures
	}
	if err := index(ctx); err != nil {
		return page{}, err
	}
	p := page{last: from}
	for looked := 0; looked < maxLooked; {
		ids, err := s.indexed(ctx, f, from, limit)
		if err != nil {
			return page{}, err
		}
		if len(ids) == 0 {
			p.end = true
			return p, nil
		}
		in, inArgs := s.tables.Dialect.In("id", ids)
		rows, err := s.queryFailed(ctx, s.tables.DB, where+" AND "+in, append(slices.Clone(args), inArgs...),
			from.order("id"), len(ids))
		rows, err = s.withWorkers(ctx, f, rows, err)
		if err != nil {
			return page{}, err
		}
		for _, r := range rows {
			if !matches(r) {
				continue
			}
			p.last.key = r.key
			if p.items = append(p.items, r); len(p.items) == limit {
				return p, nil
			}
		}
		p.last.key = ids[len(ids)-1]
		from.key, looked = p.last.key, looked+len(ids)
	}
	return p, nil
}
