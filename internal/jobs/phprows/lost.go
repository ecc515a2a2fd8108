package phprows

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// recordLost writes a line of history for each run whose end was never written, naming who
// ran it where a heartbeat said so.
func (s *Store) recordLost(ctx context.Context, q tables.Tx, queue string, rows []*row) error {
	var lost []tables.Run
	for _, r := range rows {
		if !r.Rescued || r.Attempts == 0 {
			continue
		}
		run := tables.Run{Job: s.described(r, queue, r.Attempts), Outcome: jobs.CrashedOutcome,
			Error: tables.EndedWithoutResult}
		worker, pid, err := s.lastHolder(ctx, q, r)
		if err != nil {
			return err
		}
		if worker != "" {
			run.Worker, run.Error = worker, fmt.Sprintf("%s (%s, PHP process %d)", run.Error, worker, pid)
		}
		lost = append(lost, run)
	}
	return s.InsertRuns(ctx, q, lost)
}

// lastHolder is the worker and the process that ran a row, as the last heartbeat has it;
// "" where none has.
func (s *Store) lastHolder(ctx context.Context, q tables.Tx, r *row) (worker string, pid int, err error) {
	err = s.Query(ctx, q, func(found *sql.Rows) error {
		var id, list string
		if err := found.Scan(&id, &list); err != nil {
			return err
		}
		var processes []jobs.PHPProcess
		_ = json.Unmarshal([]byte(list), &processes) // a worker of another version may write otherwise
		for _, p := range processes {
			if p.Job != nil && p.Job.ID == r.ID && p.Job.Attempt == r.Attempts {
				worker, pid = id, p.PID
			}
		}
		return nil
	}, "SELECT id, php FROM cmsjobs_workers WHERE php LIKE ?", fmt.Sprintf(`%%"id":%d,%%`, r.ID))
	if err != nil {
		err = fmt.Errorf("asking who held job %d: %w", r.ID, err)
	}
	return worker, pid, err
}
