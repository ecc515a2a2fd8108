package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// moveToFailed writes the failed_jobs rows of ends that failed for good, in the form
// that Laravel's queue:failed and queue:retry read. It comes before the jobs
// rows are deleted, as an oversized payload is copied from there.
func (s *Store) moveToFailed(ctx context.Context, t tx, ends []pendingSettlement) error {
	failedAt := ""
	for _, e := range ends {
		if e.Outcome != jobs.Failed {
			continue
		}
		if failedAt == "" {
			now, err := s.databaseNow(ctx, t.main)
			if err != nil {
				return err
			}
			failedAt = s.failedAt(now)
		}
		if err := s.buryOne(ctx, t, e, failedAt); err != nil {
			return fmt.Errorf("writing %s: %w", s.failed.name, err)
		}
	}
	return nil
}

// failedAt is the moment as an SQL value: a wall clock in the CMS's zone, as
// Laravel writes it.
func (s *Store) failedAt(now int64) string {
	if s.failed.failedAt.kind != wallClock {
		return s.failed.failedAt.fromUnix(now)
	}
	wall := "'" + time.Unix(now, 0).In(s.o.Zone).Format(time.DateTime) + "'"
	if s.d.Name == "mysql" && s.failed.kind == "timestamp" {
		// Laravel's session reads a TIMESTAMP in the server's zone: it must read
		// this wall clock, whatever the zone of our own session is.
		return "COALESCE(CONVERT_TZ(" + wall + ", @@global.time_zone, @@session.time_zone), " + wall + ")"
	}
	return wall
}

func (s *Store) buryOne(ctx context.Context, t tx, e pendingSettlement, failedAt string) error {
	j := e.Claimed.Job
	name := j.UUID
	if s.failed.uuid {
		// queue:retry inserts into jobs before it deletes here, so the row of the
		// job's last failure may still be there: then this one gets a fresh name.
		var n int
		taken, err := s.one(ctx, t.main, []any{&n}, "SELECT 1 FROM "+s.failed.name+" WHERE uuid = ?", name)
		if err != nil {
			return err
		}
		if taken {
			name = uuid.NewString()
		}
	}
	columns, values, args := "connection, queue, exception, failed_at, payload", "?, ?, ?, "+failedAt, []any{s.o.Connection, j.Queue, cut(e.Error)}
	if s.failed.uuid {
		columns, values, args = "uuid, "+columns, "?, "+values, append([]any{name}, args...)
	}
	if errors.Is(e.Claimed.Fault, errOversize) {
		_, err := s.exec(ctx, t.main, "INSERT INTO "+s.failed.name+" ("+columns+") SELECT "+s.typed(values)+", "+s.t.shape().payload+" FROM "+s.t.shape().name+" WHERE id = ?", append(args, j.ID)...)
		return err
	}
	payload := string(jobs.Revivable(e.Claimed.Payload, name, j.Type))
	_, err := s.exec(ctx, t.main, "INSERT INTO "+s.failed.name+" ("+columns+") VALUES ("+values+", ?)", append(args, payload)...)
	return err
}

// typed gives the placeholders of a SELECT list a type, which PostgreSQL needs.
func (s *Store) typed(values string) string {
	if s.d.Name != "postgres" {
		return values
	}
	return strings.ReplaceAll(values, "?", "CAST(? AS text)")
}
