package queue

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Open looks at the tables in db and returns a Store on them. Our own tables
// must be there (migrations.Up).
func Open(ctx context.Context, db *sqlx.DB, o tables.Options) (*Store, error) {
	t, err := tables.Open(ctx, db, o)
	if err != nil {
		return nil, err
	}
	return New(ctx, t)
}

// New returns the queue in tables that were opened, which others may share.
func New(ctx context.Context, t *tables.Tables) (*Store, error) {
	s := &Store{
		tables: t, name: tables.RandomPart(tables.NewToken("")), claiming: make(chan struct{}, 1),
		cursors: map[scanCursorKey]*scanCursor{},
		classes: map[string]*classes{}, emptied: map[string]emptyLook{}, arrivals: map[string]uint64{},
		deferred: map[string][]int64{}, inDoubt: map[int64]inDoubtClaim{}, permits: map[string]int{},
		delays:  delays{map[string]map[int64]time.Time{}, map[string]map[time.Time]bool{}},
		unclear: map[string]bool{}, renewals: tables.NewRenewals(t),
	}
	s.enqueues = s.newEnqueues()
	s.chooseCompound()
	if s.oneStatement.Load() && s.compound != database.WritableCTE {
		s.tables.ProbeJSONTable(ctx)
	}
	return s, nil
}

// Now is the database's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) { return s.tables.Now(ctx) }

// Statements is how many statements the store's tables were asked since they
// were opened.
func (s *Store) Statements() int64 { return s.tables.Statements() }

// Describe says what Open found.
func (s *Store) Describe() tables.Description {
	return s.tables.Describe()
}

// OfferIndex is the statement that adds the index which serves claims, for an
// administrator to read; "" where there is one already.
func (s *Store) OfferIndex() string { return s.tables.OfferIndex() }

// AddIndex adds the offered index to the CMS's table.
func (s *Store) AddIndex(ctx context.Context) error {
	if err := s.tables.AddIndex(ctx); err != nil {
		return err
	}
	return s.reread(ctx)
}

// DropIndex removes the index that AddIndex added, where it is there.
func (s *Store) DropIndex(ctx context.Context) error {
	if err := s.tables.DropIndex(ctx); err != nil {
		return err
	}
	return s.reread(ctx)
}

// reread looks at the table again between two claims.
func (s *Store) reread(ctx context.Context) error {
	s.claiming <- struct{}{}
	defer func() { <-s.claiming }()
	clear(s.cursors)
	return s.tables.ReadJobs(ctx)
}

// LeastAhead is for jobs.Config: twice the usual makes transactions cheap where many
// processes share a server. MariaDB writes the lines of one statement at a time into the history, as
// it gives out their numbers; what waits longer for its turn than 3 s is refused (1467). So
// it keeps the usual.
func (s *Store) LeastAhead() int {
	if s.compound == database.Block {
		return jobs.LeastAhead
	}
	return 2 * jobs.LeastAhead
}
