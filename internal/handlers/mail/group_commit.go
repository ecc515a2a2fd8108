package mail

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// groupCommit makes what several mails write durable in one transaction, since
// that is what costs: whoever comes while one transaction is written shares
// the next. A single mail waits for nobody.
type groupCommit struct {
	db *sqlx.DB

	isolation sync.Mutex // guards the next two
	asked     bool
	options   *sql.TxOptions

	mu      sync.Mutex
	working bool
	waiting []*pendingWrite
}

// pendingWrite is what one mail has to write.
type pendingWrite struct {
	write func(context.Context, *batch) error
	err   error
	done  chan struct{}
	lead  chan struct{} // closed when its caller is to write for those who wait
}

const (
	// maxShares of one transaction, so that it stays short.
	maxShares = 50
	// shareTime bounds one transaction.
	shareTime = 15 * time.Second
)

func newTogether(db *sqlx.DB) *groupCommit { return &groupCommit{db: db} }

// begun is a batch at READ COMMITTED. What it takes to say so is asked once.
func (t *groupCommit) begun(ctx context.Context) *batch {
	t.isolation.Lock()
	defer t.isolation.Unlock()
	if !t.asked {
		t.options, t.asked = database.Isolation(ctx, t.db), true
	}
	return newBatch(t.db, t.options)
}

// do runs write in a transaction, perhaps with others before and after it in
// the same, and returns when it is durable, or was rolled back. write may be
// called twice: after others' fault it runs alone. It is given up while it
// waits when ctx ends, never while it is written.
func (t *groupCommit) do(ctx context.Context, doing string, write func(context.Context, *batch) error) error {
	s := &pendingWrite{write: write, done: make(chan struct{}), lead: make(chan struct{})}
	if err := t.wait(ctx, s); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if s.err != nil {
		return fmt.Errorf("%s: %w", doing, s.err)
	}
	return nil
}

// wait returns when s is written, by its caller or by another.
func (t *groupCommit) wait(ctx context.Context, s *pendingWrite) error {
	t.mu.Lock()
	t.waiting = append(t.waiting, s)
	leads := !t.working
	t.working = true
	t.mu.Unlock()
	if !leads {
		select {
		case <-s.done:
			return nil
		case <-s.lead:
		case <-ctx.Done():
			if t.withdraw(s) {
				return context.Cause(ctx)
			}
			select {
			case <-s.done:
				return nil
			case <-s.lead:
			}
		}
	}
	t.commit(context.WithoutCancel(ctx), t.next())
	t.handOver()
	return nil
}

// withdraw takes s out of the queue; false when it is being written, or is to
// lead.
func (t *groupCommit) withdraw(s *pendingWrite) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, w := range t.waiting {
		select {
		case <-w.lead:
			continue
		default:
		}
		if w == s {
			t.waiting = append(t.waiting[:i:i], t.waiting[i+1:]...)
			return true
		}
	}
	return false
}

func (t *groupCommit) next() []*pendingWrite {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(t.waiting), maxShares)
	shares := t.waiting[:n:n]
	t.waiting = append([]*pendingWrite(nil), t.waiting[n:]...)
	return shares
}

// handOver makes the one who waits longest the next to write.
func (t *groupCommit) handOver() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.working = false
		return
	}
	close(t.waiting[0].lead)
}

func (t *groupCommit) commit(ctx context.Context, shares []*pendingWrite) {
	err := t.transaction(ctx, shares)
	for _, s := range shares {
		if s.err = err; err != nil && len(shares) > 1 { // one mail's fault is not the others'
			s.err = t.transaction(ctx, []*pendingWrite{s})
		}
		close(s.done)
	}
}

func (t *groupCommit) transaction(ctx context.Context, shares []*pendingWrite) error {
	ctx, cancel := context.WithTimeout(ctx, shareTime)
	defer cancel()
	b := t.begun(ctx)
	defer b.rollback()
	for _, s := range shares {
		if err := s.write(ctx, b); err != nil {
			return err
		}
	}
	return b.commit(ctx)
}

// alone runs write in a transaction of its own, which waits for no other.
func (t *groupCommit) alone(ctx context.Context, doing string, write func(context.Context, *batch) error) error {
	if err := t.transaction(ctx, []*pendingWrite{{write: write}}); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
