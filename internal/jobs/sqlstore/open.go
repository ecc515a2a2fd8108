package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/groupcommit"
)

// Store keeps jobs in SQL. It is safe for concurrent use.
type Store struct {
	o          Options
	db, ownDB  *sqlx.DB
	d          database.Dialect
	t          layout
	failed     failedTable
	txOptions  *sql.TxOptions
	mode       Mode
	server     string
	maxBatch   int // rows that one transaction takes or settles
	maxBytes   int // of one statement
	retryAfter int64
	schema     Description

	// claiming lets one claimer in at a time, see claim.go: what follows is its.
	claiming  chan struct{}
	lanes     map[scanCursorKey]*scanCursor
	classes   map[string]*classes
	deferred  map[string][]int64
	inDoubt   map[int64]inDoubtClaim // unclear claims, by row: see doubt.go
	contended int                    // claims for which others are expected: see takeSkipping
	permits   map[string]int         // types whose permit rows were made

	oneStatement atomic.Bool // see settle_plain.go
	packets      sender      // nil where the server gets none
	jsonTable    bool        // see runtable.go
	asked        atomic.Int64

	mu       sync.Mutex        // never held while the database is asked
	unclear  map[string]bool   // settlements whose answer was lost, by lease
	tried    map[int64][]int64 // what unanswered renewals may have written, by row
	delays   delays            // see delays.go
	enqueues *groupcommit.Group[*enqueueRequest]
	rescue   rescue // see rescue.go

	flows flowsTo                            // see ledger_flows.go
	watch func(statement string, args []any) // sees what is read: for tests of plans
}

// Open looks at the tables in db and returns a Store on them. Our own tables
// must be there (migrations.Up).
func Open(ctx context.Context, db *sqlx.DB, o Options) (*Store, error) {
	if o.Registry == nil {
		return nil, errors.New("a store needs a registry of types")
	}
	o.defaults()
	d, err := database.DialectOf(db.DriverName())
	if err != nil {
		return nil, err
	}
	s := &Store{o: o, db: db, ownDB: cmp.Or(o.OwnDB, db), d: d, retryAfter: int64(o.RetryAfter / time.Second),
		claiming: make(chan struct{}, 1), lanes: map[scanCursorKey]*scanCursor{}, classes: map[string]*classes{}, deferred: map[string][]int64{}, inDoubt: map[int64]inDoubtClaim{},
		delays:  delays{map[string]map[int64]time.Time{}, map[string]map[time.Time]bool{}},
		unclear: map[string]bool{}, tried: map[int64][]int64{}, permits: map[string]int{}, maxBatch: 1000}
	if s.ownDB.DriverName() != db.DriverName() {
		return nil, errors.New("the database of our own tables must be of the same type as the CMS's")
	}
	s.enqueues = s.newEnqueues()
	for _, step := range []func(context.Context) error{s.readServer, s.readJobs, s.readFailed, s.checkOwn, s.chooseMode} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	s.describe()
	return s, nil
}

// now is the expression for the database's clock in Unix seconds, millis the
// one in milliseconds.
func (s *Store) now() string {
	if s.o.DatabaseClock != nil {
		return fmt.Sprint(s.o.DatabaseClock().Unix())
	}
	return s.d.Now
}

func (s *Store) millis() string {
	if s.o.DatabaseClock != nil {
		return fmt.Sprint(s.o.DatabaseClock().UnixMilli())
	}
	return s.d.Millis
}

// readServer reads what the connection is set to.
func (s *Store) readServer(ctx context.Context) error {
	s.maxBytes = 4 << 20
	switch s.d.Name {
	case "mysql":
		var packet int
		_, err := s.one(ctx, s.db, []any{&s.server, &packet}, "SELECT CONCAT(VERSION(), ' ', @@version_comment), @@max_allowed_packet")
		if err != nil {
			return database.Explain("asking the server for its version", err)
		}
		s.maxBytes = min(s.maxBytes, packet*3/4)
	case "postgres":
		if _, err := s.one(ctx, s.db, []any{&s.server}, "SELECT version()"); err != nil {
			return database.Explain("asking the server for its version", err)
		}
	case "sqlite":
		if _, err := s.one(ctx, s.db, []any{&s.server}, "SELECT 'SQLite ' || sqlite_version()"); err != nil {
			return database.Explain("asking SQLite for its version", err)
		}
	}
	s.txOptions = database.Isolation(ctx, s.db)
	s.choosePackets()
	s.oneStatement.Store(s.packets != nil || s.takesOneStatement())
	if s.d.Name == "mysql" && (s.packets != nil || s.takesOneStatement()) {
		s.probeJSONTable(ctx)
	}
	return nil
}

// checkOwn looks for our own tables, and whether the driver counts rows as we
// need it: found ones, not changed ones.
func (s *Store) checkOwn(ctx context.Context) error {
	touch := s.d.Upsert("cmsjobs_control_signals", "name, at", "('probe', 0)", "name", "at")
	err := database.Retry(ctx, "opening the store", func() error { _, err := s.exec(ctx, s.ownDB, touch); return err })
	if err != nil {
		if database.Classify(err) == database.Schema {
			return fmt.Errorf("our own tables (cmsjobs_*) are not there or not writable: run \"cmsjobs migrate up\": %w", err)
		}
		return database.Explain("writing to our own tables", err)
	}
	var found int64
	err = database.Retry(ctx, "opening the store", func() error {
		found, err = s.exec(ctx, s.ownDB, "UPDATE cmsjobs_control_signals SET at = 0 WHERE name = 'probe'")
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
