package queue

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// chooseMode takes the configured claim mode or finds it by trying: never by a
// version, as TiDB and others accept SKIP LOCKED and take no lock.
func (s *Store) chooseMode(ctx context.Context) error {
	switch s.Options.Mode {
	case tables.Skip, tables.CAS:
		s.mode = s.Options.Mode
		return nil
	case tables.Auto:
	default:
		return fmt.Errorf("the claim mode %q is none of auto, skip, cas", s.Options.Mode)
	}
	if s.Dialect.Name == "sqlite" {
		s.mode = tables.Skip // BEGIN IMMEDIATE: one writer at a time
		return nil
	}
	s.mode = tables.CAS
	if !s.Layout.Table().Transactional {
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
	if _, err := s.Exec(ctx, s.OwnDB, s.Dialect.InsertIgnore("cmsjobs_control_signals", "name, at", "(?, 0)"), name); err != nil {
		return false
	}
	defer func() { // a row that stays is in nobody's way
		_, _ = s.Exec(context.WithoutCancel(ctx), s.OwnDB, "DELETE FROM cmsjobs_control_signals WHERE name = ?", name)
	}()
	first, err := s.Begin(ctx, s.OwnDB)
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
	second, err := s.Begin(ctx, s.OwnDB)
	if err != nil {
		return 0, err
	}
	defer tables.Rollback(second)
	return s.locks(ctx, second, name)
}

func (s *Store) locks(ctx context.Context, t *sqlx.Tx, name string) (n int, err error) {
	err = s.Query(ctx, t, func(*sql.Rows) error { n++; return nil },
		"SELECT name FROM cmsjobs_control_signals WHERE name = ?"+s.Dialect.SkipLocked, name)
	return n, err
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
