package mail

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/groupcommit"
)

// writeFunc writes what one mail has to write. It may be called twice: after
// others' fault it runs alone.
type writeFunc func(context.Context, *batch) error

// groupCommit makes what several mails write durable in one transaction.
type groupCommit struct {
	*groupcommit.Group[writeFunc]
	db *sqlx.DB

	isolation sync.Mutex // guards the next two
	asked     bool
	options   *sql.TxOptions
}

const (
	// maxShares of one transaction, so that it stays short.
	maxShares = 50
	// shareTime bounds one transaction.
	shareTime = 15 * time.Second
)

func newGroupCommit(db *sqlx.DB) *groupCommit {
	t := &groupCommit{db: db}
	t.Group = groupcommit.New(groupcommit.Config[writeFunc]{Commit: t.transaction, MaxSize: maxShares})
	return t
}

// begun is a batch at READ COMMITTED. What it takes to say so is asked once.
func (t *groupCommit) begun(ctx context.Context) *batch {
	t.isolation.Lock()
	defer t.isolation.Unlock()
	if !t.asked {
		t.options, t.asked = database.Isolation(ctx, t.db), true
	}
	return newBatch(t.db, t.options)
}

// do runs write in a transaction, perhaps with others before and after it in the
// same, and returns when it is durable, or was rolled back. It is given up while
// it waits when ctx ends, never while it is written.
func (t *groupCommit) do(ctx context.Context, doing string, write writeFunc) error {
	if err := t.Do(ctx, write); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

func (t *groupCommit) transaction(ctx context.Context, writes []writeFunc) error {
	ctx, cancel := context.WithTimeout(ctx, shareTime)
	defer cancel()
	b := t.begun(ctx)
	defer b.rollback()
	for _, write := range writes {
		if err := write(ctx, b); err != nil {
			return err
		}
	}
	return b.commit(ctx)
}

// alone runs write in a separate transaction, which waits for no other.
func (t *groupCommit) alone(ctx context.Context, doing string, write writeFunc) error {
	if err := t.transaction(ctx, []writeFunc{write}); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
