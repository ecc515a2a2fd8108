package history

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// addRest adds to records what their own table does not hold.
func (s *Store) addRest(ctx context.Context, records []jobs.Record) error {
	if err := s.addLive(ctx, records); err != nil {
		return err
	}
	return s.addLastRuns(ctx, records)
}

// addLastRuns completes failed jobs by their last run, since failed_jobs holds
// neither attempts nor the moments of a job's life, and retrying jobs by its
// error. PHP's jobs have no run here and stay as they are.
func (s *Store) addLastRuns(ctx context.Context, records []jobs.Record) error {
	at := map[string][]int{}
	var uuids []any
	for i := range records {
		r := &records[i]
		if r.UUID == "" || r.Foreign || r.Status != jobs.StatusFailed && (r.Detail != "retrying" || r.Error != "") {
			continue
		}
		if at[r.UUID] == nil {
			uuids = append(uuids, r.UUID)
		}
		at[r.UUID] = append(at[r.UUID], i)
	}
	for len(uuids) > 0 {
		part := uuids[:min(len(uuids), 200)]
		uuids = uuids[len(part):]
		runs, err := s.lastRuns(ctx, part)
		if err != nil {
			return err
		}
		for _, run := range runs {
			for _, i := range at[run.UUID] {
				completeByRun(&records[i], run)
			}
		}
	}
	return nil
}

// lastRuns reads the last run of each of the jobs, without those that were released.
func (s *Store) lastRuns(ctx context.Context, uuids []any) ([]storedRun, error) {
	var ids []string
	in := strings.TrimSuffix(strings.Repeat("?,", len(uuids)), ",")
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		ids = append(ids, strconv.FormatInt(id, 10))
		return err
	}, "SELECT MAX(id) FROM cmsjobs_runs WHERE uuid IN ("+in+") AND outcome <> 'released' GROUP BY uuid", uuids...)
	if err != nil {
		return nil, fmt.Errorf("finding the last runs of failed jobs: %w", err)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return s.queryRuns(ctx, "id IN ("+strings.Join(ids, ",")+")", nil, "", len(ids))
}

func completeByRun(r *jobs.Record, run storedRun) {
	if r.Status != jobs.StatusFailed {
		r.Error = run.Error
		return
	}
	r.Attempt, r.Worker, r.Duration = run.Attempt, run.Worker, run.Duration
	r.EnqueuedAt, r.StartedAt, r.RunAt = run.created, run.StartedAt, run.due
}
