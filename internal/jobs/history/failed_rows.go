package history

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// queryFailed reads rows of failed_jobs as records.
func (s *Store) queryFailed(ctx context.Context, q tables.Tx, where string, args []any, order string,
	limit int) ([]record, error) {
	return s.queryFailedAs(ctx, q, s.payloadOf("payload"), where, args, fmt.Sprintf("%s LIMIT %d", order, limit))
}

// queryFailedAs reads rows with their payload as an expression gives it.
func (s *Store) queryFailedAs(ctx context.Context, q tables.Tx, payload, where string, args []any,
	tail string) ([]record, error) {
	name := "''"
	if s.tables.Failed.UUID {
		name = "uuid"
	}
	statement := fmt.Sprintf(
		"SELECT id, %s, queue, %s, %s(payload), SUBSTR(exception, 1, 65536), %s FROM %s WHERE %s%s", name, payload,
		s.tables.Dialect.Bytes, s.tables.FailedText(), s.tables.Failed.Name, where, tail)
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
