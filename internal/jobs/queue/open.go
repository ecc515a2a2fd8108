package queue

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// chooseMode takes the configured claim mode or finds it by trying: never by a
// version, as TiDB and others accept SKIP LOCKED and take no lock.
func (s *Store) chooseMode(ctx context.Context) error {
	switch s.tables.Options.Mode {
	case tables.Skip, tables.CAS:
		s.mode = s.tables.Options.Mode
		return nil
	case tables.Auto:
	default:
		return fmt.Errorf("the claim mode %q is none of auto, skip, cas", s.tables.Options.Mode)
	}
	if s.tables.Dialect.OneWriter {
		s.mode = tables.Skip // BEGIN IMMEDIATE: one writer at a time
		return nil
	}
	s.mode = tables.CAS
	if !s.tables.Layout.Table().Transactional {
		return nil
	}
	if s.skips(ctx) {
		s.mode = tables.Skip
	}
	return ctx.Err()
}

// skips says whether a second connection steps over a row that a first one
// holds, and gets it once it is free. Any error means no: the other mode is
// always right.
func (s *Store) skips(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	name := "probe/" + tables.RandomPart(tables.NewToken(""))
	if _, err := s.tables.Exec(ctx, s.tables.OwnDB, s.tables.Dialect.InsertIgnore("cmsjobs_control_signals",
		"name, at", "(?, 0)"), name); err != nil {
		return false
	}
	defer func() { // a row that stays does no harm
		_, _ = s.tables.Exec(context.WithoutCancel(ctx), s.tables.OwnDB, "DELETE FROM cmsjobs_control_signals WHERE "+
			"name = ?", name)
	}()
	first, err := s.tables.Begin(ctx, s.tables.OwnDB)
	if err != nil {
		return false
	}
	defer tables.Rollback(first)
	held, err := s.locks(ctx, first, name)
	if err != nil || held != 1 {
		return false
	}
	if beside, err := s.beside(ctx, name); err != nil || beside != 0 {
		return false
	}
	if err := first.Rollback(); err != nil {
		return false
	}
	after, err := s.beside(ctx, name)
	return err == nil && after == 1
}

func (s *Store) beside(ctx context.Context, name string) (int, error) {
	second, err := s.tables.Begin(ctx, s.tables.OwnDB)
	if err != nil {
		return 0, err
	}
	defer tables.Rollback(second)
	return s.locks(ctx, second, name)
}

func (s *Store) locks(ctx context.Context, t *sqlx.Tx, name string) (n int, err error) {
	err = s.tables.Query(ctx, t, func(*sql.Rows) error { n++; return nil },
		"SELECT name FROM cmsjobs_control_signals WHERE name = ?"+s.tables.Dialect.SkipLocked, name)
	return n, err
}

// Open looks at the tables in db and returns a Store on them. Our own tables
// must be there (migrations.Up).
func Open(ctx context.Context, db *sqlx.DB, o tables.Options) (*Store, error) {
	t, err := tables.Open(ctx, db, o)
	if err != nil {
		return nil, err
	}
	return New(ctx, t)
}

// New returns the queue in tables that were opened, which others may share. It
// tries how rows can be claimed there.
func New(ctx context.Context, t *tables.Tables) (*Store, error) {
	s := &Store{
		tables: t, claiming: make(chan struct{}, 1), cursors: map[scanCursorKey]*scanCursor{},
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
	if err := s.chooseMode(ctx); err != nil {
		return nil, err
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
	d := s.tables.Describe()
	d.Mode = s.mode
	return d
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
