package history

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Job finds a job by its UUID, or by its row's number, where only one table has
// it.
func (s *Store) Job(ctx context.Context, id string) (jobs.Record, error) {
	return s.JobAmong(ctx, id, nil)
}

// JobAmong is Job among jobs of these states, of all where none is named. Rows
// of jobs and of failed_jobs have separate numbers: one that names several
// jobs is jobs.ErrConflict, and the error says their UUIDs.
func (s *Store) JobAmong(ctx context.Context, id string, states []jobs.Status) (jobs.Record, error) {
	look := s.byUUID
	number, err := strconv.ParseInt(id, 10, 64)
	if err == nil {
		look = func(ctx context.Context, _ string) ([]record, error) { return s.byNumber(ctx, number, states) }
	}
	rows, err := look(ctx, id)
	if err != nil {
		return jobs.Record{}, err
	}
	if len(rows) == 0 {
		return jobs.Record{}, fmt.Errorf("no job has the id %.80q: %w", id, jobs.ErrNotFound)
	}
	if i := slices.IndexFunc(rows, func(r record) bool { return r.UUID != rows[0].UUID }); i > 0 {
		return jobs.Record{}, phrase.Errorf("the number %d is that of two jobs: %s is %s, %s is %s. Say the UUID: %w",
			number, rows[0].UUID, rows[0].Status, rows[i].UUID, rows[i].Status, jobs.ErrConflict)
	}
	records := []jobs.Record{rows[0].Record}
	err = s.addRest(ctx, records)
	return records[0], err
}

// byNumber finds rows that wait, run or failed; where there is none, the newest
// of the history.
func (s *Store) byNumber(ctx context.Context, id int64, states []jobs.Status) ([]record, error) {
	live, err := s.queryLive(ctx, s.tables.DB, fmt.Sprintf("id = %d", id), nil, "", 1)
	if err != nil {
		return nil, err
	}
	failed, err := s.queryFailed(ctx, s.tables.DB, fmt.Sprintf("id = %d", id), nil, "", 1)
	if err != nil {
		return nil, err
	}
	wanted := func(rows []record) []record {
		return slices.DeleteFunc(rows, func(r record) bool {
			return len(states) > 0 && !slices.Contains(states, r.Status)
		})
	}
	if rows := wanted(append(live, failed...)); len(rows) > 0 {
		return rows, nil
	}
	ended, err := s.queryEnded(ctx, fmt.Sprintf("job_id = %d AND outcome IN ('completed','cancelled')", id),
		" ORDER BY id DESC", 1)
	return wanted(ended), err
}

func (s *Store) byUUID(ctx context.Context, uuid string) ([]record, error) {
	if uuid == "" || len(uuid) > 191 {
		return nil, nil
	}
	f := jobs.Filter{UUIDs: []string{uuid}}
	for _, sh := range []recordSource{{"w", s.readLive}, {"f", s.readFailedRows}, {"r", s.readEnded}} {
		p, err := sh.read(ctx, f, keysetCursor{}, 1)
		if err != nil || len(p.items) > 0 {
			return p.items, err
		}
	}
	return nil, nil
}
