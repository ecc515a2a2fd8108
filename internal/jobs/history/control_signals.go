package history

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Pause stops all workers from claiming from queue, until Continue. What runs
// goes on. by names who asked.
func (s *Store) Pause(ctx context.Context, queue, by string) error {
	_, err := s.tables.Exec(ctx, s.tables.OwnDB, s.tables.Dialect.Upsert("cmsjobs_paused", "queue, at, by_whom",
		"(?, "+s.tables.MillisNow()+", ?)", "queue", "at", "by_whom"), queue, tables.CutWord(by))
	if err != nil {
		return fmt.Errorf("pausing the queue %s: %w", queue, err)
	}
	return nil
}

// Continue ends a pause; was says whether there was one.
func (s *Store) Continue(ctx context.Context, queue string) (was bool, err error) {
	n, err := s.tables.Exec(ctx, s.tables.OwnDB, "DELETE FROM cmsjobs_paused WHERE queue = ?", queue)
	if err != nil {
		return false, fmt.Errorf("continuing the queue %s: %w", queue, err)
	}
	return n > 0, nil
}

// PausedQueue is a queue from which no worker claims.
type PausedQueue struct {
	Queue string    `json:"queue"`
	Since time.Time `json:"since"`
	By    string    `json:"by"`
}

// PausedQueues lists the paused queues by name.
func (s *Store) PausedQueues(ctx context.Context) ([]PausedQueue, error) {
	var list []PausedQueue
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var p PausedQueue
		var at int64
		err := r.Scan(&p.Queue, &at, &p.By)
		p.Since = time.UnixMilli(at).UTC()
		list = append(list, p)
		return err
	}, "SELECT queue, at, by_whom FROM cmsjobs_paused ORDER BY queue")
	if err != nil {
		return nil, fmt.Errorf("listing paused queues: %w", err)
	}
	return list, nil
}

// Restart tells every worker that started before now to finish what it runs
// and exit, so that its supervisor starts it again.
func (s *Store) Restart(ctx context.Context) error {
	if _, err := s.tables.Exec(ctx, s.tables.OwnDB, s.tables.Dialect.Upsert("cmsjobs_control_signals", "name, at",
		"('restart', "+s.tables.MillisNow()+")", "name", "at")); err != nil {
		return fmt.Errorf("telling the workers to restart: %w", err)
	}
	return nil
}

// Stop tells one worker to finish what it runs and exit; known says whether
// there is a worker of that id.
func (s *Store) Stop(ctx context.Context, workerID string) (known bool, err error) {
	n, err := s.tables.Exec(ctx, s.tables.OwnDB, "UPDATE cmsjobs_workers SET stop = 1 WHERE id = ?", workerID)
	if err != nil {
		return false, fmt.Errorf("telling the worker %s to stop: %w", workerID, err)
	}
	return n > 0, nil
}

// Scale gives a worker so many slots, for as long as it lives; known says whether
// there is one of that id. 0 takes its order back: it follows that of all workers,
// whose id is "". That one holds for workers that start later, too, and stands in place
// of all orders before; 0 is as many slots as each worker was configured with.
func (s *Store) Scale(ctx context.Context, workerID string, slots int) (known bool, err error) {
	if workerID == "" {
		return true, s.scaleAll(ctx, slots)
	}
	n, err := s.tables.Exec(ctx, s.tables.OwnDB, "UPDATE cmsjobs_workers SET ordered_slots = ? WHERE id = ?", slots,
		workerID)
	if err != nil {
		return false, fmt.Errorf("changing the slots of the worker %s: %w", workerID, err)
	}
	return n > 0, nil
}

func (s *Store) scaleAll(ctx context.Context, slots int) error {
	err := s.tables.InTx(ctx, "changing the slots of all workers", func(t tables.Transaction) error {
		if _, err := s.tables.Exec(ctx, t.Own, "UPDATE cmsjobs_workers SET ordered_slots = 0"); err != nil {
			return err
		}
		if slots == 0 {
			_, err := s.tables.Exec(ctx, t.Own, "DELETE FROM cmsjobs_control_signals WHERE name = 'slots'")
			return err
		}
		_, err := s.tables.Exec(ctx, t.Own, s.tables.Dialect.Upsert("cmsjobs_control_signals", "name, at, value",
			"('slots', "+s.tables.MillisNow()+", ?)", "name", "at", "value"), slots)
		return err
	})
	if err != nil {
		return fmt.Errorf("changing the slots of all workers: %w", err)
	}
	return nil
}

// OrderedSlots is how many slots people gave all workers; 0 is as many as each was
// configured with.
func (s *Store) OrderedSlots(ctx context.Context) (slots int, err error) {
	err = s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error { return r.Scan(&slots) },
		"SELECT value FROM cmsjobs_control_signals WHERE name = 'slots'")
	if err != nil {
		return 0, fmt.Errorf("reading the slots of all workers: %w", err)
	}
	return slots, nil
}

// CancelRunning tells the worker that runs the job to cancel it. It says
// nothing about waiting jobs: their row is deleted instead.
func (s *Store) CancelRunning(ctx context.Context, uuid, by string) error {
	_, err := s.tables.Exec(ctx, s.tables.OwnDB, s.tables.Dialect.Upsert("cmsjobs_cancels", "uuid, at, by_whom",
		"(?, "+s.tables.MillisNow()+", ?)", "uuid", "at", "by_whom"), uuid, tables.CutWord(by))
	if err != nil {
		return fmt.Errorf("cancelling the job %s: %w", uuid, err)
	}
	return nil
}
