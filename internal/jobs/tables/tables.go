package tables

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// Tables are the CMS's jobs and failed_jobs as they were found, and our own
// tables beside them. They are safe for concurrent use.
type Tables struct {
	Options    Options
	DB, OwnDB  *sqlx.DB
	Dialect    database.Dialect
	Layout     Fragments
	Failed     FailedTable
	TxOptions  *sql.TxOptions
	Server     string
	MaxBatch   int // rows that one transaction takes or settles
	MaxBytes   int // of one statement
	RetryAfter int64
	JSONTable  bool // see runs_json.go
	Asked      atomic.Int64
	rescue     rescue                             // see rescue.go
	Watch      func(statement string, args []any) // sees what is read. For tests of plans only
}

// Open looks at the tables in db. Our own tables must be there (migrations.Up).
func Open(ctx context.Context, db *sqlx.DB, o Options) (*Tables, error) {
	if o.Registry == nil {
		return nil, errors.New("a store needs a registry of types")
	}
	o.defaults()
	d, err := database.DialectFor(db)
	if err != nil {
		return nil, err
	}
	s := &Tables{
		Options: o, DB: db, OwnDB: cmp.Or(o.OwnDB, db), Dialect: d, RetryAfter: int64(o.RetryAfter / time.Second), MaxBatch: 1000,
	}
	if own, err := database.DialectFor(s.OwnDB); err != nil || own.Name != d.Name {
		return nil, errors.New("the database of our own tables must be of the same type as the CMS's")
	}
	for _, step := range []func(context.Context) error{s.readServer, s.ReadJobs, s.readFailed, s.checkOwn} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// readServer reads what the connection is set to.
func (s *Tables) readServer(ctx context.Context) error {
	s.MaxBytes = 4 << 20
	var packet int
	if _, err := s.QueryRow(ctx, s.DB, []any{&s.Server, &packet}, s.Dialect.Version()); err != nil {
		return database.Explain("asking the server for its version", err)
	}
	if packet > 0 {
		s.MaxBytes = min(s.MaxBytes, packet*3/4)
	}
	s.TxOptions = database.Isolation(ctx, s.DB)
	return nil
}

// checkOwn looks for our own tables, and whether the driver counts rows as we
// need it: found ones, not changed ones.
func (s *Tables) checkOwn(ctx context.Context) error {
	touch := s.Dialect.Upsert("cmsjobs_control_signals", "name, at", "('probe', 0)", "name", "at")
	err := database.Retry(ctx, "opening the store", func() error { _, err := s.Exec(ctx, s.OwnDB, touch); return err })
	if err != nil {
		if database.Classify(err) == database.Schema {
			return fmt.Errorf("our own tables (cmsjobs_*) are not there or not writable: run \"cmsjobs migrate up\": %w", err)
		}
		return database.Explain("writing to our own tables", err)
	}
	var found int64
	err = database.Retry(ctx, "opening the store", func() error {
		found, err = s.Exec(ctx, s.OwnDB, "UPDATE cmsjobs_control_signals SET at = 0 WHERE name = 'probe'")
		return err
	})
	if err != nil {
		return database.Explain("writing to our own tables", err)
	}
	if found != 1 {
		return errors.New("the connection counts changed rows instead of found ones: open it with clientFoundRows=true")
	}
	return nil
}
