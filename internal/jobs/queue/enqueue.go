package queue

import (
	"context"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Enqueue implements jobs.Enqueuer: all jobs, or none. Callers that come at the
// same time share a transaction.
//
// An error that Classify calls Unknown or TooSlow says that the jobs may be there or not:
// enqueue them again with the same UUIDs, and each is there once.
func (s *Store) Enqueue(ctx context.Context, list ...jobs.Spec) ([]jobs.Receipt, error) {
	prepared, err := s.prepare(list)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	request := &enqueueRequest{list: prepared}
	if err := s.enqueues.Do(ctx, request); err != nil {
		return nil, fmt.Errorf("enqueuing: %w", err)
	}
	s.wake(prepared)
	return request.receipts, nil
}

// EnqueueTx puts jobs into the queue within the caller's transaction: they are
// there when it commits, and not when it does not. Workers learn of them by
// their next poll. With Options.OwnDB, unique keys and UUIDs are noted outside
// of the transaction.
func (s *Store) EnqueueTx(ctx context.Context, t tables.Tx, list ...jobs.Spec) ([]jobs.Receipt, error) {
	prepared, err := s.prepare(list)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	own := t
	if s.tables.OwnDB != s.tables.DB {
		own = s.tables.OwnDB
	}
	receipts, err := s.insertAll(ctx, tables.Transaction{Main: t, Own: own}, prepared)
	if err != nil {
		return nil, fmt.Errorf("enqueuing: %w", err)
	}
	return receipts, nil
}

// prepare checks jobs before anything is written.
func (s *Store) prepare(list []jobs.Spec) ([]jobs.Spec, error) {
	prepared := make([]jobs.Spec, len(list))
	for i, n := range list {
		if err := n.Check(); err != nil { // before it is encrypted: its errors name what was given
			return nil, err
		}
		encrypted, err := s.tables.Options.Registry.Encrypted(n.Type, n.Data)
		if err != nil {
			return nil, err
		}
		if len(encrypted) != len(n.Data) { // it is longer, and may be too long now
			if n.Data = encrypted; n.Check() != nil {
				return nil, n.Check()
			}
		}
		if size := len(n.Data) + len(n.Metadata); size > s.tables.MaxBytes {
			return nil, fmt.Errorf("the payload of %s has %d bytes, more than the server takes in one statement: "+
				"raise max_allowed_packet", n.Type, size)
		}
		if n.Queue == "" {
			n.Queue = s.tables.Options.DefaultQueue
		}
		prepared[i] = n
	}
	return prepared, nil
}

// wake wakes the workers of this host: jobs are due.
func (s *Store) wake(list []jobs.Spec) {
	woken := map[string]bool{}
	for _, n := range list {
		queue := n.Queue
		if queue == "" {
			queue = s.tables.Options.DefaultQueue
		}
		if n.Delay == 0 && n.RunAt.IsZero() && !woken[queue] {
			woken[queue] = true
			s.NoteArrival(queue)
			s.tables.Options.Wake(queue)
		}
	}
}

// insertAll inserts jobs in the caller's transaction. Jobs that carry a name
// (UUID or unique key) go one by one, the others in large statements.
func (s *Store) insertAll(ctx context.Context, t tables.Transaction, list []jobs.Spec) ([]jobs.Receipt, error) {
	receipts := make([]jobs.Receipt, len(list))
	var plain []jobs.Spec
	var permits []int
	for i, n := range list {
		if n.Queue == "" {
			n.Queue = s.tables.Options.DefaultQueue
		}
		if n.UUID == "" && n.UniqueKey == "" {
			n.UUID = newUUID()
			plain, permits = append(plain, n), append(permits, i)
			continue
		}
		receipt, err := s.insertNamed(ctx, t, n)
		if err != nil {
			return nil, err
		}
		receipts[i] = receipt
	}
	ids, err := s.insertPlain(ctx, t.Main, plain)
	if err != nil {
		return nil, err
	}
	for i, permit := range permits {
		receipts[permit] = jobs.Receipt{ID: ids[i], UUID: plain[i].UUID}
	}
	return receipts, nil
}
