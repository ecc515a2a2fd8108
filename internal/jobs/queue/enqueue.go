package queue

import (
	"context"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/database"
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
	receipts, err := s.combine.do(ctx, s, prepared)
	if err != nil {
		return nil, fmt.Errorf("enqueuing: %w", err)
	}
	s.wake(prepared)
	return receipts, nil
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
	if s.OwnDB != s.DB {
		own = s.OwnDB
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
		if err := n.Check(); err != nil {
			return nil, err
		}
		if size := len(n.Data) + len(n.Metadata); size > s.MaxBytes {
			return nil, fmt.Errorf("the payload of %s has %d bytes, more than the server takes in one statement: raise max_allowed_packet", n.Type, size)
		}
		if n.Queue == "" {
			n.Queue = s.Options.DefaultQueue
		}
		prepared[i] = n
	}
	return prepared, nil
}

// wake tells workers of this process and of this host that jobs are due.
func (s *Store) wake(list []jobs.Spec) {
	told := map[string]bool{}
	for _, n := range list {
		queue := n.Queue
		if queue == "" {
			queue = s.Options.DefaultQueue
		}
		if n.Delay == 0 && n.RunAt.IsZero() && !told[queue] {
			told[queue] = true
			s.Options.Wake(queue)
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
			n.Queue = s.Options.DefaultQueue
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

// combinedJobs is how many jobs share a transaction at most.
const combinedJobs = 500

func (c *groupCommit) do(ctx context.Context, s *Store, list []jobs.Spec) ([]jobs.Receipt, error) {
	o := &enqueueRequest{list: list, done: make(chan struct{}), lead: make(chan struct{})}
	c.mu.Lock()
	c.waiting = append(c.waiting, o)
	if c.working {
		c.mu.Unlock()
		select {
		case <-o.done:
			return o.receipts, o.err
		case <-o.lead:
		}
	} else {
		c.working = true
		c.mu.Unlock()
	}
	// Others depend on what the leader writes: its own caller's impatience must
	// not undo their jobs. The connection's time-outs bound it.
	c.work(context.WithoutCancel(ctx), s, c.next())
	c.handOver()
	return o.receipts, o.err
}

// next takes a transaction's worth of orders, the leader's own first.
func (c *groupCommit) next() []*enqueueRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, size := 0, 0
	for n < len(c.waiting) && (n == 0 || size+len(c.waiting[n].list) <= combinedJobs) {
		size += len(c.waiting[n].list)
		n++
	}
	batch := c.waiting[:n:n]
	c.waiting = append([]*enqueueRequest(nil), c.waiting[n:]...)
	return batch
}

// handOver makes the longest waiting caller the next leader.
func (c *groupCommit) handOver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		c.working = false
		return
	}
	close(c.waiting[0].lead)
}

func (c *groupCommit) work(ctx context.Context, s *Store, batch []*enqueueRequest) {
	var all []jobs.Spec
	for _, o := range batch {
		all = append(all, o.list...)
	}
	receipts, err := s.insertInTx(ctx, all)
	if err != nil && len(batch) > 1 && !database.Classify(err).Unclear() {
		for _, o := range batch { // one caller's fault is not the others'
			o.receipts, o.err = s.insertInTx(ctx, o.list)
			close(o.done)
		}
		return
	}
	for _, o := range batch {
		if o.err = err; err == nil {
			o.receipts, receipts = receipts[:len(o.list):len(o.list)], receipts[len(o.list):]
		}
		close(o.done)
	}
}

func (s *Store) insertInTx(ctx context.Context, list []jobs.Spec) (receipts []jobs.Receipt, err error) {
	if s.single(list) {
		receipts, err = s.insertAll(ctx, tables.Transaction{Main: s.DB, Own: s.OwnDB}, list)
		if database.Classify(err) != database.RetryTransaction {
			return receipts, err
		}
	}
	err = s.InTx(ctx, "inserting jobs", func(t tables.Transaction) error {
		receipts, err = s.insertAll(ctx, t, list)
		return err
	})
	return receipts, err
}

// single says that the list is one statement, which needs no transaction.
func (s *Store) single(list []jobs.Spec) bool {
	return len(list) == 1 && list[0].UUID == "" && list[0].UniqueKey == ""
}
