package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// moveToFailed writes the failed_jobs rows of ends that failed for good, in the form
// that Laravel's queue:failed and queue:retry read. It comes before the jobs
// rows are deleted, as an oversized payload is copied from there.
func (s *Store) moveToFailed(ctx context.Context, t tables.Transaction, ends []pendingSettlement) error {
	failedAt := ""
	for _, e := range ends {
		if e.Outcome != jobs.Failed {
			continue
		}
		if failedAt == "" {
			now, err := s.tables.ReadClock(ctx, t.Main)
			if err != nil {
				return err
			}
			failedAt = s.tables.FailedAt(now)
		}
		if err := s.insertFailed(ctx, t, e, failedAt); err != nil {
			return fmt.Errorf("writing %s: %w", s.tables.Failed.Name, err)
		}
	}
	return nil
}

func (s *Store) insertFailed(ctx context.Context, t tables.Transaction, e pendingSettlement, failedAt string) error {
	j := e.Claimed.Job
	name := j.UUID
	if s.tables.Failed.UUID {
		// queue:retry inserts into jobs before it deletes here, so the row of the
		// job's last failure may still be there: then this one gets a fresh name.
		var n int
		taken, err := s.tables.QueryRow(ctx, t.Main, []any{&n}, "SELECT 1 FROM "+s.tables.Failed.Name+
			" WHERE uuid = ?", name)
		if err != nil {
			return err
		}
		if taken {
			name = uuid.NewString()
		}
	}
	columns, values, args := "connection, queue, exception, failed_at, payload", "?, ?, ?, "+failedAt,
		[]any{s.tables.Options.Connection, j.Queue, tables.CutText(e.Error)}
	if s.tables.Failed.UUID {
		columns, values, args = "uuid, "+columns, "?, "+values, append([]any{name}, args...)
	}
	if errors.Is(e.Claimed.Fault, tables.ErrOversize) {
		_, err := s.tables.Exec(ctx, t.Main, "INSERT INTO "+s.tables.Failed.Name+" ("+columns+") SELECT "+
			s.typed(values)+", "+s.tables.Layout.Table().Payload+" FROM "+s.tables.Layout.Table().Name+" WHERE id = ?",
			append(args, j.ID)...)
		return err
	}
	payload := string(jobs.RetryPayload(e.Claimed.Payload, name, j.Type))
	_, err := s.tables.Exec(ctx, t.Main, "INSERT INTO "+s.tables.Failed.Name+" ("+columns+") VALUES ("+values+", ?)",
		append(args, payload)...)
	return err
}

// typed gives the parameters of a SELECT list a type where the server needs it.
func (s *Store) typed(values string) string {
	if !s.tables.Dialect.TypedSelect {
		return values
	}
	return strings.ReplaceAll(values, "?", "CAST(? AS text)")
}
