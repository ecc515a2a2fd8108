package queue

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// maxWoken is how many waiting jobs are read together.
const maxWoken = 500

// recordWaits writes which jobs were released because a dependency is unavailable.
// Rows of jobs that ran since, or are gone, do no harm: see RunWaiting.
func (s *Store) recordWaits(ctx context.Context, q tables.Tx, ends []pendingSettlement) error {
	for _, e := range ends {
		if e.Outcome != jobs.Released || e.WaitsFor == "" {
			continue
		}
		statement := s.tables.Dialect.Upsert("cmsjobs_waits", "job_id, queue, dependency, at", "(?, ?, ?, "+
			s.tables.MillisNow()+")",
			"job_id", "queue", "dependency", "at")
		if _, err := s.tables.Exec(ctx, q, statement, e.Claimed.Lease.ID, e.Claimed.Job.Queue, e.WaitsFor); err != nil {
			return fmt.Errorf("noting that %s waits for %s: %w", e.Claimed.Job.Type, e.WaitsFor, err)
		}
	}
	return nil
}

// RunWaiting makes the jobs due that wait for a dependency, and wakes workers.
// Jobs that run, or wait for nothing, stay as they are.
func (s *Store) RunWaiting(ctx context.Context, dependency string) error {
	for {
		rows, err := s.waiting(ctx, dependency)
		if err != nil || len(rows) == 0 {
			return err
		}
		ids := make([]int64, 0, len(rows))
		for id := range rows {
			ids = append(ids, id)
		}
		in, args := s.tables.Dialect.In("id", ids)
		t, now := s.tables.Layout.Table(), s.tables.SecondsNow()
		err = s.tables.InTx(ctx, "running what waited for "+dependency, func(x tables.Transaction) error {
			statement := fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s AND %s AND %s > %s",
				t.Name, t.Due.Name, t.Due.FromExpr(now), in, s.tables.Layout.Waiting(), t.Due.Name, t.Due.FromExpr(now))
			if _, err := s.tables.Exec(ctx, x.Main, statement, args...); err != nil {
				return err
			}
			in, args := s.tables.Dialect.In("job_id", ids)
			_, err := s.tables.Exec(ctx, x.Own, "DELETE FROM cmsjobs_waits WHERE "+in, args...)
			return err
		})
		if err != nil {
			return err
		}
		queues := map[string]bool{}
		for id, queue := range rows {
			s.noteDelay(queue, id, s.tables.Options.Clock())
			queues[queue] = true
		}
		for queue := range queues {
			s.NoteArrival(queue)
			s.tables.Options.Wake(queue)
		}
	}
}

// waiting reads some of the jobs that wait for a dependency, with their queues.
func (s *Store) waiting(ctx context.Context, dependency string) (map[int64]string, error) {
	rows := map[int64]string{}
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var id int64
		var queue string
		err := r.Scan(&id, &queue)
		rows[id] = queue
		return err
	}, fmt.Sprintf("SELECT job_id, queue FROM cmsjobs_waits WHERE dependency = ? ORDER BY job_id LIMIT %d", maxWoken),
		dependency)
	if err != nil {
		return nil, fmt.Errorf("looking for jobs that wait for %s: %w", dependency, err)
	}
	return rows, nil
}
