package batches

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// The bounds of what is read.
const (
	maxPage     = 200
	maxFailed   = 100      // ids of failed jobs of one batch
	failedBytes = 64 << 10 // that are read of them
)

// Store reads batches. It is safe for concurrent use.
type Store struct {
	DB *sqlx.DB
	// Table is the table's name, with the CMS's prefix.
	Table string
}

// Batches lists batches, newest first. Total is −1: nobody counts them.
func (s *Store) Batches(ctx context.Context, p jobs.Page) (jobs.List[jobs.Batch], error) {
	limit := min(max(p.Limit, 1), maxPage)
	where, args := "1 = 1", []any{}
	if p.Cursor != "" {
		where, args = "id < ?", append(args, p.Cursor)
	}
	list := jobs.List[jobs.Batch]{Total: -1}
	items, err := s.query(ctx, fmt.Sprintf("%s ORDER BY id DESC LIMIT %d", where, limit+1), args...)
	if err != nil {
		return list, err
	}
	if len(items) > limit {
		items = items[:limit]
		list.Next = items[limit-1].ID
	}
	list.Items = items
	return list, nil
}

// Batch is one batch with the ids of its failed jobs.
func (s *Store) Batch(ctx context.Context, id string) (jobs.Batch, error) {
	items, err := s.query(ctx, "id = ?", id)
	if err != nil {
		return jobs.Batch{}, err
	}
	if len(items) == 0 {
		return jobs.Batch{}, fmt.Errorf("no batch has the id %.80q: %w", id, jobs.ErrNotFound)
	}
	return items[0], nil
}

func (s *Store) query(ctx context.Context, where string, args ...any) (list []jobs.Batch, err error) {
	d, err := database.DialectFor(s.DB)
	if err != nil {
		return nil, err
	}
	rows, err := s.DB.QueryContext(ctx, s.DB.Rebind(fmt.Sprintf("SELECT id, name, total_jobs, pending_jobs, "+
		"failed_jobs, "+
		"SUBSTR(failed_job_ids, 1, %d), cancelled_at, created_at, finished_at FROM %s WHERE %s", failedBytes,
		d.Ident(s.Table), where)), args...)
	if database.Classify(err) == database.Schema {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading batches: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var b jobs.Batch
		var failed sql.NullString
		var cancelled, created, finished sql.NullInt64
		if err := rows.Scan(&b.ID, &b.Name, &b.Total, &b.Pending, &b.Failed, &failed, &cancelled, &created,
			&finished); err != nil {
			return nil, fmt.Errorf("reading batches: %w", err)
		}
		b.FailedJobs = ids(failed.String)
		b.CancelledAt, b.CreatedAt, b.FinishedAt = moment(cancelled), moment(created), moment(finished)
		list = append(list, b)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading batches: %w", err)
	}
	return list, nil
}

func moment(seconds sql.NullInt64) time.Time {
	if !seconds.Valid {
		return time.Time{}
	}
	return time.Unix(seconds.Int64, 0).UTC()
}

// ids are the first UUIDs of a JSON list, or of the beginning of one.
func ids(text string) (list []string) {
	d := json.NewDecoder(strings.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil
	}
	for d.More() && len(list) < maxFailed {
		var id string
		if d.Decode(&id) != nil {
			break
		}
		list = append(list, id)
	}
	return list
}
