package queue

import (
	"context"
	"sync"

	"github.com/cmsjobs/cmsjobs/internal/jobs"

	"github.com/cmsjobs/cmsjobs/internal/database"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// groupCommit puts the enqueues of callers that come at the same time into one
// transaction. The first caller works for those who come while it works; a
// single caller waits for nobody.
type groupCommit struct {
	mu      sync.Mutex
	working bool
	waiting []*enqueueRequest
}

// enqueueRequest is one caller's list.
type enqueueRequest struct {
	list     []jobs.Spec
	receipts []jobs.Receipt
	err      error
	done     chan struct{}
	lead     chan struct{} // closed when its caller is to go on with the work
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
