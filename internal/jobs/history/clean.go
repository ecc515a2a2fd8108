package history

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// chunk is how many rows one transaction of a cleaning deletes: short enough
// so that no claim waits long.
const chunk = 500

// waitsKept is how long it is kept in mind that a job waits for a dependency:
// by then it ran, or asked again.
const waitsKept = 24 * time.Hour

// DeleteStaleWorkers removes workers that have said nothing for so long.
func (s *Store) DeleteStaleWorkers(ctx context.Context, silent time.Duration) (int64, error) {
	n, err := s.tables.Exec(ctx, s.tables.OwnDB,
		fmt.Sprintf("DELETE FROM cmsjobs_workers WHERE heartbeat_at < %s - %d", s.tables.MillisNow(),
			silent.Milliseconds()))
	if err != nil {
		return 0, fmt.Errorf("removing workers that are gone: %w", err)
	}
	return n, nil
}

// ResetStuck releases jobs whose lease ran out more than grace ago, though
// nobody claims them (their queue has no worker). The attempt stays charged.
// Rows of PHP are left to PHP.
func (s *Store) ResetStuck(ctx context.Context, grace time.Duration) (int64, error) {
	var reset, last int64
	if ok, err := s.tables.MayRescue(ctx); err != nil || !ok {
		return 0, err
	}
	t := s.tables.Layout.Table()
	for {
		l := tables.CandidateQuery{
			Where: fmt.Sprintf("id > %d AND %s", last, s.tables.Layout.Expired(s.tables.SecondsNow(),
				s.tables.RetryAfter+tables.WholeSeconds(grace))), Order: " ORDER BY id", Limit: chunk}
		found, _, err := s.tables.ReadCandidates(ctx, s.tables.DB, l)
		if err != nil {
			return reset, err
		}
		for _, x := range found {
			last = x.ID
			if !s.tables.Claimable("", x) {
				continue
			}
			cond, args := s.tables.Layout.Unchanged(x)
			set, _ := s.tables.Layout.Release("", jobs.Settlement{}, false)
			n, err := s.tables.Exec(ctx, s.tables.DB, fmt.Sprintf("UPDATE %s SET %s WHERE id = %d AND %s", t.Name, set,
				x.ID, cond), args...)
			if err != nil {
				return reset, fmt.Errorf("releasing job %d: %w", x.ID, err)
			}
			reset += n
		}
		if len(found) < chunk {
			return reset, nil
		}
	}
}

// RotateRuns deletes history: runs that failed or crashed after failedDays,
// all others after completedDays, and log lines with the longer of the two.
// 0 days keeps for ever.
func (s *Store) RotateRuns(ctx context.Context, completedDays, failedDays int) (int64, error) {
	if err := s.pruneFlows(ctx); err != nil {
		return 0, err
	}
	old := fmt.Sprintf("at < %s - %d", s.tables.MillisNow(), waitsKept.Milliseconds())
	if _, err := s.tables.Exec(ctx, s.tables.OwnDB, "DELETE FROM cmsjobs_waits WHERE "+old); err != nil {
		return 0, fmt.Errorf("forgetting what jobs waited for: %w", err)
	}
	var deleted int64
	for days, outcomes := range map[int][]string{completedDays: {"completed", "released", "retried", "cancelled"},
		failedDays: {"failed", jobs.CrashedOutcome}} {
		if completedDays == failedDays {
			outcomes = []string{"completed", "released", "retried", "cancelled", "failed", jobs.CrashedOutcome}
		}
		if days <= 0 {
			continue
		}
		for _, outcome := range outcomes {
			n, err := s.deleteChunks(ctx, s.tables.OwnDB, "cmsjobs_runs", fmt.Sprintf("outcome = '%s' AND ended_at < "+
				"%s - %d", outcome, s.tables.MillisNow(), int64(days)*86400000))
			deleted += n
			if err != nil {
				return deleted, err
			}
		}
	}
	if longest := max(completedDays, failedDays); completedDays > 0 && failedDays > 0 {
		if _, err := s.deleteChunks(ctx, s.tables.OwnDB, "cmsjobs_job_logs",
			fmt.Sprintf("at < %s - %d", s.tables.MillisNow(), int64(longest)*86400000)); err != nil {
			return deleted, err
		}
	}
	_, err := s.tables.Exec(ctx, s.tables.OwnDB, fmt.Sprintf("DELETE FROM cmsjobs_cancels WHERE at < %s - %d",
		s.tables.MillisNow(), int64(7*86400000)))
	return deleted, err
}

// deleteChunks deletes by primary key, a chunk in a transaction.
func (s *Store) deleteChunks(ctx context.Context, q tables.Tx, table, cond string) (int64, error) {
	var deleted int64
	for {
		var list []int64
		err := s.tables.Query(ctx, q, func(r *sql.Rows) error {
			var id int64
			err := r.Scan(&id)
			list = append(list, id)
			return err
		}, "SELECT id FROM "+table+" WHERE "+cond+fmt.Sprintf(" ORDER BY id LIMIT %d", chunk))
		if err == nil && len(list) > 0 {
			in, args := s.tables.Dialect.In("id", list)
			var n int64
			n, err = s.tables.Exec(ctx, q, "DELETE FROM "+table+" WHERE "+in, args...)
			deleted += n
		}
		if err != nil {
			return deleted, fmt.Errorf("deleting old rows of %s: %w", table, err)
		}
		if len(list) < chunk {
			return deleted, nil
		}
	}
}

// FailedRow is a row of failed_jobs as it stands there.
type FailedRow struct {
	ID         int64  `json:"id"`
	UUID       string `json:"uuid,omitempty"`
	Connection string `json:"connection"`
	Queue      string `json:"queue"`
	Payload    string `json:"payload"`
	Exception  string `json:"exception"`
	FailedAt   string `json:"failed_at"` // wall clock in the CMS's zone
}

// PruneFailed deletes failed jobs that failed before the given moment, PHP's
// as well. Where export is set, it gets each chunk of rows before they are
// deleted; its error stops the pruning.
func (s *Store) PruneFailed(ctx context.Context, before time.Time, export func([]FailedRow) error) (int64, error) {
	cond := s.tables.Failed.FailedAt.Name + " < " + s.tables.FailedAt(before.Unix())
	if export == nil {
		return s.deleteChunks(ctx, s.tables.DB, s.tables.Failed.Name, cond)
	}
	name := "''"
	if s.tables.Failed.UUID {
		name = "uuid"
	}
	var deleted int64
	for {
		var rows []FailedRow
		err := s.tables.Query(ctx, s.tables.DB, func(r *sql.Rows) error {
			var f FailedRow
			err := r.Scan(&f.ID, &f.UUID, &f.Connection, &f.Queue, &f.Payload, &f.Exception, &f.FailedAt)
			rows = append(rows, f)
			return err
		}, "SELECT id, "+name+", connection, queue, payload, exception, "+s.tables.Failed.FailedAt.ExactText()+
			" FROM "+s.tables.Failed.Name+" WHERE "+cond+fmt.Sprintf(" ORDER BY id LIMIT %d", chunk/5))
		if err != nil {
			return deleted, fmt.Errorf("reading failed jobs: %w", err)
		}
		if len(rows) == 0 {
			return deleted, nil
		}
		if err := export(rows); err != nil {
			return deleted, fmt.Errorf("exporting failed jobs before they are deleted: %w", err)
		}
		list := make([]int64, len(rows))
		for i, f := range rows {
			list[i] = f.ID
		}
		in, args := s.tables.Dialect.In("id", list)
		n, err := s.tables.Exec(ctx, s.tables.DB, "DELETE FROM "+s.tables.Failed.Name+" WHERE "+in, args...)
		deleted += n
		if err != nil {
			return deleted, fmt.Errorf("deleting failed jobs: %w", err)
		}
	}
}
