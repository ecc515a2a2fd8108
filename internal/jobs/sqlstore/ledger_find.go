package sqlstore

import (
	"context"
	"fmt"
	"strconv"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Job finds a job by its UUID, or by its row's number in jobs, then in
// failed_jobs, then in the history.
func (s *Store) Job(ctx context.Context, id string) (jobs.Record, error) {
	look := s.byUUID
	number, err := strconv.ParseInt(id, 10, 64)
	if err == nil {
		look = func(ctx context.Context, _ string) ([]found, error) { return s.byNumber(ctx, number) }
	}
	rows, err := look(ctx, id)
	if err != nil {
		return jobs.Record{}, err
	}
	if len(rows) == 0 {
		return jobs.Record{}, fmt.Errorf("no job has the id %.80q: %w", id, jobs.ErrNotFound)
	}
	records := []jobs.Record{rows[0].Record}
	err = s.addRest(ctx, records)
	return records[0], err
}

func (s *Store) byNumber(ctx context.Context, id int64) ([]found, error) {
	for _, read := range []func() ([]found, error){
		func() ([]found, error) { return s.queryLive(ctx, s.db, fmt.Sprintf("id = %d", id), nil, "", 1) },
		func() ([]found, error) { return s.queryFailed(ctx, s.db, fmt.Sprintf("id = %d", id), nil, "", 1) },
		func() ([]found, error) {
			return s.queryEnded(ctx, fmt.Sprintf("job_id = %d AND outcome IN ('completed','cancelled')", id), " ORDER BY id DESC", 1)
		},
	} {
		if rows, err := read(); err != nil || len(rows) > 0 {
			return rows, err
		}
	}
	return nil, nil
}

func (s *Store) byUUID(ctx context.Context, uuid string) ([]found, error) {
	if uuid == "" || len(uuid) > 191 {
		return nil, nil
	}
	f := jobs.Filter{UUIDs: []string{uuid}}
	for _, sh := range []shelf{{"w", s.readLive}, {"f", s.readFailedRows}, {"r", s.readEnded}} {
		p, err := sh.read(ctx, f, position64{}, 1)
		if err != nil || len(p.items) > 0 {
			return p.items, err
		}
	}
	return nil, nil
}
