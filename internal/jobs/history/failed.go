package history

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
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
	return f.Text != "" || len(f.Queues) > 0 || !f.Since.IsZero() || !f.Until.IsZero() || len(f.UUIDs) > 0 && !s.tables.Failed.UUID
}

// readFailedRows reads the shelf of dead jobs. Kinds and causes are looked up
// in our index of it.
func (s *Store) readFailedRows(ctx context.Context, f jobs.Filter, from keysetCursor, limit int) (page, error) {
	_, where, args := s.failedWhere(f)
	if len(f.UUIDs) > 0 && !s.tables.Failed.UUID {
		hint, more := s.hints(jobs.Filter{UUIDs: f.UUIDs}, "payload")
		where, args = where+" AND "+hint, append(args, more...)
	}
	matches := s.matches(jobs.Filter{UUIDs: f.UUIDs, ExceptKinds: f.ExceptKinds})
	if f.Cause == "" && len(f.Types) == 0 {
		return s.scanTable(ctx, tableScan{table: s.tables.Failed.Name, db: s.tables.DB, matches: matches, whole: !s.searched(f),
			read: func(condition, order string, limit int) ([]record, error) {
				return s.queryFailed(ctx, s.tables.DB, where+" AND "+condition, args, order, limit)
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
		rows, err := s.queryFailed(ctx, s.tables.DB, where+" AND "+in, append(slices.Clone(args), inArgs...), from.order("id"), len(ids))
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

// queryFailed reads rows of failed_jobs as records.
func (s *Store) queryFailed(ctx context.Context, q tables.Tx, where string, args []any, order string, limit int) ([]record, error) {
	return s.queryFailedAs(ctx, q, s.payloadOf("payload"), where, args, fmt.Sprintf("%s LIMIT %d", order, limit))
}

// queryFailedAs reads rows with their payload as an expression gives it.
func (s *Store) queryFailedAs(ctx context.Context, q tables.Tx, payload, where string, args []any, tail string) ([]record, error) {
	name := "''"
	if s.tables.Failed.UUID {
		name = "uuid"
	}
	statement := fmt.Sprintf("SELECT id, %s, queue, %s, %s(payload), SUBSTR(exception, 1, 65536), %s FROM %s WHERE %s%s", name, payload, s.tables.Dialect.Bytes, s.tables.FailedText(), s.tables.Failed.Name, where, tail)
	var rows []record
	err := s.tables.Query(ctx, q, func(r *sql.Rows) error {
		var x record
		var failedAt sql.NullString
		if err := r.Scan(&x.key, &x.UUID, &x.Queue, &x.Payload, &x.size, &x.Error, &failedAt); err != nil {
			return err
		}
		s.completeFailed(&x, failedAt.String)
		rows = append(rows, x)
		return nil
	}, statement, args...)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", s.tables.Failed.Name, err)
	}
	return rows, nil
}

func (s *Store) completeFailed(x *record, failedAt string) {
	e, origin := s.envelope(x.Payload, x.size)
	x.ID, x.Type, x.Status, x.Foreign = x.key, e.Type, jobs.StatusFailed, origin == jobs.Foreign
	if x.UUID == "" {
		x.UUID = e.UUID
	}
	if x.UUID == "" {
		x.UUID = tables.DerivedUUID(s.tables.Options.FailedTable, x.key, 0)
	}
	x.MaxAttempts = s.limitOf(x.Type, e.MaxTries, 0)
	x.EndedAt = s.failedMoment(failedAt)
}

// failedMoment reads what FailedText gave; a date that is none is the zero time.
func (s *Store) failedMoment(text string) time.Time {
	var seconds int64
	if s.tables.Failed.FailedAt.Kind != tables.WallClock {
		if _, err := fmt.Sscan(text, &seconds); err != nil {
			return time.Time{}
		}
		return unix(seconds)
	}
	if len(text) > len(time.DateTime) {
		text = text[:len(time.DateTime)]
	}
	for _, form := range []string{time.DateTime, "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(form, text, s.tables.Options.Zone); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
