package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
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
	entry, known := s.tables.Options.Registry.Lookup(r.Type)
	switch {
	case r.Status != jobs.StatusFailed:
		return jobs.Receipt{}, fmt.Errorf("the job %s is %s, only failed jobs are retried: %w", id, r.Status,
			jobs.ErrConflict)
	case r.Foreign || !known:
		return jobs.Receipt{}, fmt.Errorf("%s is not a type of this program, so its payload cannot be checked and "+
			"edited: %w", r.Type, jobs.ErrConflict)
	}
	if entry.Maker == jobs.Anyone || jobs.OrderOf(data) == "" {
		if err := entry.CheckNew(data); err != nil {
			return jobs.Receipt{}, err
		}
	}
	edited := jobs.Spec{Type: r.Type, Queue: r.Queue, UUID: r.UUID, Data: data}
	if e, origin, _ := jobs.Parse(r.Payload, s.tables.Known); origin == jobs.Ours {
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
		err = fmt.Errorf("the job %s is no longer among the failed ones: %w", id, jobs.ErrConflict)
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
	var values []string
	var args []any
	for _, r := range rows {
		payload := resetAttempts(r.Payload)
		if edited != nil {
			payload = edited
		}
		value, a := s.tables.Layout.Row(jobs.Spec{Type: r.Type, Queue: r.Queue, Priority: r.Priority}, string(payload),
			s.tables.SecondsNow(), s.tables.SecondsNow(), r.MaxAttempts)
		values, args = append(values, value), append(args, a...)
	}
	_, err := s.tables.Exec(ctx, t.Main, fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", s.tables.Layout.Table().Name,
		s.tables.Layout.Insert(), strings.Join(values, ",")), args...)
	return err
}

// resetAttempts sets the counter that some versions of Laravel keep in the
// payload to nothing, as queue:retry does.
func resetAttempts(payload []byte) []byte {
	var keys map[string]json.RawMessage
	if json.Unmarshal(payload, &keys) != nil || keys["attempts"] == nil {
		return payload
	}
	keys["attempts"] = json.RawMessage("0")
	data, err := json.Marshal(keys)
	if err != nil {
		return payload
	}
	return data
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
