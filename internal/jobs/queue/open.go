package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/groupcommit"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Store is the queue. It is safe for concurrent use.
type Store struct {
	*tables.Tables
	mode tables.Mode

	// claiming lets one claimer in at a time, see claim.go: what follows is its.
	claiming  chan struct{}
	lanes     map[scanCursorKey]*scanCursor
	classes   map[string]*classes
	deferred  map[string][]int64
	inDoubt   map[int64]inDoubtClaim // unclear claims, by row: see in_doubt.go
	contended int                    // claims for which others are expected: see claimWithLock
	permits   map[string]int         // types whose permit rows were made

	oneStatement atomic.Bool // see settle_plain.go
	packets      sender      // nil where the server gets none

	mu       sync.Mutex        // never held while the database is asked
	unclear  map[string]bool   // settlements whose answer was lost, by lease
	tried    map[int64][]int64 // what unanswered renewals may have written, by row
	delays   delays            // see pending.go
	enqueues *groupcommit.Group[*enqueueRequest]
}

// Open looks at the tables in db and returns a Store on them. Our own tables
// must be there (migrations.Up).
func Open(ctx context.Context, db *sqlx.DB, o tables.Options) (*Store, error) {
	t, err := tables.Open(ctx, db, o)
	if err != nil {
		return nil, err
	}
	s := &Store{
		Tables: t, claiming: make(chan struct{}, 1), lanes: map[scanCursorKey]*scanCursor{}, classes: map[string]*classes{},
		deferred: map[string][]int64{}, inDoubt: map[int64]inDoubtClaim{}, permits: map[string]int{},
		delays:  delays{map[string]map[int64]time.Time{}, map[string]map[time.Time]bool{}},
		unclear: map[string]bool{}, tried: map[int64][]int64{},
	}
	s.enqueues = s.newEnqueues()
	s.choosePackets()
	s.oneStatement.Store(s.packets != nil || s.takesOneStatement())
	if s.Dialect.Name == "mysql" && s.oneStatement.Load() {
		s.ProbeJSONTable(ctx)
	}
	if err := s.chooseMode(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Describe says what Open found.
func (s *Store) Describe() tables.Description {
	d := s.Tables.Describe()
	d.Mode = s.mode
	return d
}
