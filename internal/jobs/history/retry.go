package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/php/phpjob"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Retry puts failed jobs back into their queues: due now, no attempts, the
// same UUID; PHP's own go back as they were. It changes at most limit jobs,
// oldest first, and says how many. Any number of them takes the same memory.
func (s *Store) Retry(ctx context.Context, f jobs.Filter, limit int) (int64, error) {
	f.Statuses = []jobs.Status{jobs.StatusFailed}
	return walk(ctx, recordSource{"f", s.readFailedRows}, f, changeLimit(limit), 200,
		func(rows []record) (n int, err error) {
			for rows = allowed(f, rows); len(rows) > 0; {
				part := s.bySize(rows)
				rows = rows[len(part):]
				m, err := s.retryRecords(ctx, part, nil)
				n += m
				if err != nil {
					return n, err
				}
			}
			return n, nil
		})
}

// bySize takes as many rows as one statement may carry, one at least.
func (s *Store) bySize(rows []record) []record {
	size := int64(0)
	for i, r := range rows {
		if size += r.size + 500; size > int64(s.tables.MaxBytes/2) && i > 0 {
			return rows[:i]
		}
	}
	return rows
}

// RetryEdited puts one failed job back with another payload for its handler,
// which must take it; an internal job gets the order that data names. PHP's own
// jobs cannot be edited.
func (s *Store) RetryEdited(ctx context.Context, id string, data json.RawMessage) (jobs.Receipt, error) {
	r, err := s.Job(ctx, id)
	if err != nil {
		return jobs.Receipt{}, err
	}
	registry := s.tables.Options.Registry
	_, known := registry.Known(r.Type)
	switch {
	case r.Status != jobs.StatusFailed:
		return jobs.Receipt{}, phrase.Errorf("the job %s is %s, only failed jobs are retried: %w", id, r.Status,
			jobs.ErrConflict)
	case r.Foreign || !known:
		return jobs.Receipt{}, phrase.Errorf("%s is not a type of this program, so its payload cannot be checked and "+
			"edited: %w", r.Type, jobs.ErrConflict)
	}
	if err := registry.CheckNewPayload(r.Type, data); err != nil {
		return jobs.Receipt{}, err
	}
	if data, err = registry.Encrypted(r.Type, data); err != nil {
		return jobs.Receipt{}, err
	}
	edited := jobs.Spec{Type: r.Type, Queue: r.Queue, UUID: r.UUID, Data: data}
	if e, origin, _ := jobs.Parse(r.Payload, s.known); origin == jobs.Ours {
		edited.Metadata, edited.MaxAttempts = e.Metadata, e.MaxTries
	}
	if err := edited.Check(); err != nil {
		return jobs.Receipt{}, err
	}
	payload, err := jobs.EncodePayload(edited)
	if err != nil {
		return jobs.Receipt{}, err
	}
	n, err := s.retryRecords(ctx, []record{{key: r.ID, Record: r}}, payload)
	if err == nil && n == 0 {
		err = phrase.Errorf("the job %s is no longer among the failed ones: %w", id, jobs.ErrConflict)
	}
	return jobs.Receipt{UUID: r.UUID}, err
}

// retryRecords moves rows from failed_jobs to jobs in one transaction. Rows that are
// gone in the meantime (PHP's queue:retry) stay gone.
func (s *Store) retryRecords(ctx context.Context, rows []record, edited []byte) (n int, err error) {
	err = s.tables.InTx(ctx, "retrying failed jobs", func(t tables.Transaction) error {
		in, args := s.tables.Dialect.In("id", keysOf(rows))
		there, err := s.queryFailedAs(ctx, t.Main, "payload", in, args, " ORDER BY id"+s.tables.Dialect.ForUpdate)
		if err != nil {
			return err
		}
		if n = len(there); n == 0 {
			return errNothing
		}
		if err := s.insertRetried(ctx, t, there, edited); err != nil {
			return err
		}
		return s.deleteFailed(ctx, t, keysOf(there))
	})
	if errors.Is(err, errNothing) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	s.tables.Options.Wake("")
	return n, nil
}

func (s *Store) insertRetried(ctx context.Context, t tables.Transaction, rows []record, edited []byte) error {
	payloads, err := s.begunAgain(ctx, t, rows)
	if err != nil {
		return err
	}
	var values []string
	var args []any
	for i, r := range rows {
		payload := payloads[i]
		if edited != nil {
			payload = edited
		}
		value, a := s.tables.Layout.Row(jobs.Spec{Type: r.Type, Queue: r.Queue, Priority: r.Priority}, string(payload),
			s.tables.SecondsNow(), s.tables.SecondsNow(), r.MaxAttempts)
		values, args = append(values, value), append(args, a...)
	}
	_, err = s.tables.Exec(ctx, t.Main, fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", s.tables.Layout.Table().Name,
		s.tables.Layout.Insert(), strings.Join(values, ",")), args...)
	return err
}

// begunAgain are the payloads of PHP's jobs as queue:retry writes them back: no
// attempts counted, and their whole time to retry again, which runs from when the job
// was enqueued. Other payloads have neither.
func (s *Store) begunAgain(ctx context.Context, t tables.Transaction, rows []record) ([][]byte, error) {
	payloads := make([][]byte, len(rows))
	for i, r := range rows {
		payloads[i] = r.Payload
	}
	if !slices.ContainsFunc(payloads, func(p []byte) bool { return phpjob.Limited(p) }) {
		return payloads, nil
	}
	now, err := s.tables.ReadClock(ctx, t.Main)
	if err != nil {
		return nil, err
	}
	for i, r := range rows {
		if !phpjob.Limited(r.Payload) {
			continue
		}
		var created int64
		if _, err := s.tables.QueryRow(ctx, t.Own, []any{&created}, "SELECT COALESCE(MAX(created_at), 0) FROM "+
			"cmsjobs_runs WHERE uuid = ?", r.UUID); err != nil {
			return nil, fmt.Errorf("looking up when the job was enqueued: %w", err)
		}
		enqueued := time.Time{}
		if created > 0 {
			enqueued = tables.UnixMilli(created)
		}
		payloads[i] = phpjob.Retried(r.Payload, enqueued, time.Unix(now, 0))
	}
	return payloads, nil
}

func keysOf(rows []record) []int64 {
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.key
	}
	return ids
}

func (s *Store) deleteFailed(ctx context.Context, t tables.Transaction, ids []int64) error {
	in, args := s.tables.Dialect.In("id", ids)
	if _, err := s.tables.Exec(ctx, t.Main, "DELETE FROM "+s.tables.Failed.Name+" WHERE "+in, args...); err != nil {
		return err
	}
	in, args = s.tables.Dialect.In("failed_id", ids)
	_, err := s.tables.Exec(ctx, t.Own, "DELETE FROM cmsjobs_failures WHERE "+in, args...)
	return err
}

// Delete deletes failed jobs, at most limit, oldest first, and says how many.
func (s *Store) Delete(ctx context.Context, f jobs.Filter, limit int) (int64, error) {
	f.Statuses = []jobs.Status{jobs.StatusFailed}
	return walk(ctx, recordSource{"f", s.readFailedRows}, f, changeLimit(limit), 500, func(rows []record) (int, error) {
		err := s.tables.InTx(ctx, "deleting failed jobs", func(t tables.Transaction) error {
			return s.deleteFailed(ctx, t, keysOf(rows))
		})
		if err != nil {
			return 0, err
		}
		return len(rows), nil
	})
}
