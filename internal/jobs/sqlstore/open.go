package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Mode is how rows are taken.
type Mode string

// The claim modes.
const (
	// Auto probes the server and takes Skip where SKIP LOCKED does what it says.
	Auto Mode = "auto"
	// Skip locks the candidates by primary key with SKIP LOCKED.
	Skip Mode = "skip"
	// CAS changes candidates on the condition that they are as they were read.
	CAS Mode = "cas"
)

// Options say which tables a Store works on. Zero fields mean the defaults
// that are named.
type Options struct {
	// Prefix of the CMS's tables (Laravel's DB_PREFIX). Ours have none.
	Prefix string
	// Table and FailedTable are "jobs" and "failed_jobs".
	Table, FailedTable string
	// Registry knows which kinds are ours. Required.
	Registry *jobs.Registry
	// DefaultQueue is where jobs go that name none: "default".
	DefaultQueue string
	// OwnQueues are those whose unreadable rows are buried instead of left to
	// PHP: {"cmsjobs"}. In the extended layout every queue is our own.
	OwnQueues []string
	// Connection is written to failed_jobs.connection: "database".
	Connection string
	Mode       Mode
	// RetryAfter must equal the CMS's DB_QUEUE_RETRY_AFTER: 90 s. Every worker
	// on one table must use the same.
	RetryAfter time.Duration
	// Zone is the CMS's (settings.time_zone), in which failed_at is written: UTC.
	Zone *time.Location
	// OwnDB holds our tables where the CMS's database gives no right to make any.
	OwnDB *sqlx.DB
	// KeepData is up to how many bytes a job's data is kept in the history: 4096.
	// Negative keeps none.
	KeepData int
	// Logger gets what a person should know: nil discards it.
	Logger *slog.Logger
	// Wake is called with the queue after due jobs were committed.
	Wake func(queue string)
	// RestartedAt reads when PHP's queue:restart was last called, from the CMS's
	// cache; nil where that is unknown.
	RestartedAt func(context.Context) (time.Time, error)
	// DatabaseClock replaces the database's clock. For tests only.
	DatabaseClock func() time.Time
	// Clock measures lengths of time: time.Now.
	Clock func() time.Time
}

func (o *Options) defaults() {
	o.Table, o.FailedTable = cmp.Or(o.Table, "jobs"), cmp.Or(o.FailedTable, "failed_jobs")
	o.DefaultQueue, o.Connection = cmp.Or(o.DefaultQueue, "default"), cmp.Or(o.Connection, "database")
	o.Mode, o.RetryAfter = cmp.Or(o.Mode, Auto), cmp.Or(o.RetryAfter, 90*time.Second)
	o.KeepData = cmp.Or(o.KeepData, 4096)
	if o.OwnQueues == nil {
		o.OwnQueues = []string{"cmsjobs"}
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Wake == nil {
		o.Wake = func(string) {}
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
}

// Store keeps jobs in SQL. It is safe for concurrent use.
type Store struct {
	o          Options
	db, ownDB  *sqlx.DB
	d          dialect
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
	claiming chan struct{}
	lanes    map[laneKey]*lane
	classes  map[string]*classes
	heldBack map[string][]int64
	doubts   map[int64]doubt // unclear claims, by row: see doubt.go
	crowded  int             // claims for which others are expected: see takeSkipping
	places   map[string]int  // kinds whose permit rows were made

	oneStatement atomic.Bool // see settle_plain.go
	jsonTable    bool        // see runtable.go
	asked        atomic.Int64

	mu      sync.Mutex      // never held while the database is asked
	unclear map[string]bool // settlements whose answer was lost, by lease
	tried   map[int64]int64 // renewals whose answer was lost: what they wrote
	combine combiner

	flows flowsTo                            // see ledger_flows.go
	watch func(statement string, args []any) // sees what is read: for tests of plans
}

// failedTable is failed_jobs as it was found.
type failedTable struct {
	name     string // quoted
	uuid     bool   // Laravel 5 to 7 had none
	failedAt moment
	kind     string // the column's type: a MySQL TIMESTAMP is converted by session
}

// Description is what Open found, for people.
type Description struct {
	Database      string   `json:"database"` // mysql, postgres, sqlite
	Server        string   `json:"server"`   // the server's own version text
	Layout        Layout   `json:"layout"`
	Mode          Mode     `json:"mode"`
	Table         string   `json:"table"`
	Times         string   `json:"times"` // "unix seconds" or "wall clock"
	AttemptsLimit int      `json:"attemptsLimit,omitempty"`
	FailedTable   string   `json:"failedTable"`
	FailedUUID    bool     `json:"failedUuid"`
	OrderedIndex  string   `json:"orderedIndex"` // "" where the offered index is missing
	Transactional bool     `json:"transactional"`
	Notes         []string `json:"notes,omitempty"`
}

// Describe says what Open found.
func (s *Store) Describe() Description { return s.schema }

// Open looks at the tables in db and returns a Store on them. Our own tables
// must be there (migrations.Up).
func Open(ctx context.Context, db *sqlx.DB, o Options) (*Store, error) {
	if o.Registry == nil {
		return nil, errors.New("a store needs a registry of kinds")
	}
	o.defaults()
	d, err := dialectOf(db.DriverName())
	if err != nil {
		return nil, err
	}
	s := &Store{o: o, db: db, ownDB: cmp.Or(o.OwnDB, db), d: d, retryAfter: int64(o.RetryAfter / time.Second),
		claiming: make(chan struct{}, 1), lanes: map[laneKey]*lane{}, classes: map[string]*classes{}, heldBack: map[string][]int64{}, doubts: map[int64]doubt{},
		unclear: map[string]bool{}, tried: map[int64]int64{}, places: map[string]int{}, maxBatch: 1000}
	if s.ownDB.DriverName() != db.DriverName() {
		return nil, errors.New("the database of our own tables must be of the same kind as the CMS's")
	}
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
	return s.d.now
}

func (s *Store) millis() string {
	if s.o.DatabaseClock != nil {
		return fmt.Sprint(s.o.DatabaseClock().UnixMilli())
	}
	return s.d.millis
}

// readServer reads what the connection is set to.
func (s *Store) readServer(ctx context.Context) error {
	s.maxBytes = 4 << 20
	switch s.d.name {
	case "mysql":
		var packet int
		var isolation string
		_, err := s.one(ctx, s.db, []any{&s.server, &packet}, "SELECT CONCAT(VERSION(), ' ', @@version_comment), @@max_allowed_packet")
		if err != nil {
			return explain("asking the server for its version", err)
		}
		s.maxBytes = min(s.maxBytes, packet*3/4)
		// READ COMMITTED set for the session saves a round trip per transaction.
		if _, err = s.one(ctx, s.db, []any{&isolation}, "SELECT @@transaction_isolation"); err != nil {
			_, err = s.one(ctx, s.db, []any{&isolation}, "SELECT @@tx_isolation") // MariaDB before 11.1
		}
		if err != nil || isolation != "READ-COMMITTED" {
			s.txOptions = &sql.TxOptions{Isolation: sql.LevelReadCommitted}
		}
	case "postgres":
		s.txOptions = &sql.TxOptions{Isolation: sql.LevelReadCommitted}
		if _, err := s.one(ctx, s.db, []any{&s.server}, "SELECT version()"); err != nil {
			return explain("asking the server for its version", err)
		}
	case "sqlite":
		if _, err := s.one(ctx, s.db, []any{&s.server}, "SELECT 'SQLite ' || sqlite_version()"); err != nil {
			return explain("asking SQLite for its version", err)
		}
	}
	s.oneStatement.Store(s.takesOneStatement())
	if s.d.name == "mysql" && s.takesOneStatement() {
		s.probeJSONTable(ctx)
	}
	return nil
}

// readJobs finds out what the jobs table looks like.
func (s *Store) readJobs(ctx context.Context) error {
	plain := s.o.Prefix + s.o.Table
	if err := checkName(plain); err != nil {
		return err
	}
	have, err := s.columnsOf(ctx, s.db, plain)
	if err != nil {
		return err
	}
	if len(have) == 0 {
		return fmt.Errorf("there is no table %s in the database: set the table's prefix, or let \"cmsjobs migrate up --create-jobs\" make it", plain)
	}
	indexes, err := s.indexesOf(ctx, s.db, plain)
	if err != nil {
		return err
	}
	t := table{d: s.d, plain: plain, name: s.d.ident(plain), attemptsLimit: s.attemptsLimit(have["attempts"]), transactional: true, byQueue: indexOn(indexes, "queue")}
	_, named := have["payload_json"]
	_, status := have["status"]
	if named || status {
		err = need(plain, have, "id", "queue", "name", "payload_json", "status", "priority", "run_at", "attempts", "max_attempts", "last_error", "locked_at", "locked_by", "created_at")
		t.payload, t.due, t.locked, t.created = s.d.ident("payload_json"), s.momentOf(have["run_at"]), s.momentOf(have["locked_at"]), s.momentOf(have["created_at"])
		t.ordered, t.byQueue = indexOn(indexes, "queue", "status", "priority", "run_at"), indexOn(indexes, "queue", "status", "run_at")
		if updated, ok := have["updated_at"]; ok {
			t.updated = s.momentOf(updated)
		}
		s.t = &extended{t}
	} else {
		err = need(plain, have, "id", "queue", "payload", "attempts", "reserved_at", "available_at", "created_at")
		t.payload, t.due, t.locked, t.created = s.d.ident("payload"), s.momentOf(have["available_at"]), s.momentOf(have["reserved_at"]), s.momentOf(have["created_at"])
		t.ordered = indexOn(indexes, "queue", "available_at")
		s.t = &stock{t}
	}
	if err != nil {
		return fmt.Errorf("%w: it is neither Laravel's jobs table nor the extended one", err)
	}
	return s.readEngine(ctx)
}

// readEngine notices tables without transactions (MyISAM): each row is then
// taken and settled by itself.
func (s *Store) readEngine(ctx context.Context) error {
	if s.d.name != "mysql" {
		return nil
	}
	var engine sql.NullString
	if _, err := s.one(ctx, s.db, []any{&engine}, "SELECT engine FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?", s.t.shape().plain); err != nil {
		return fmt.Errorf("reading the engine of %s: %w", s.t.shape().plain, err)
	}
	switch engine.String {
	case "MyISAM", "Aria", "MEMORY", "CSV":
		s.t.shape().transactional, s.maxBatch = false, 1
	}
	return nil
}

// readFailed finds out what failed_jobs looks like.
func (s *Store) readFailed(ctx context.Context) error {
	plain := s.o.Prefix + s.o.FailedTable
	if err := checkName(plain); err != nil {
		return err
	}
	have, err := s.columnsOf(ctx, s.db, plain)
	if err != nil {
		return err
	}
	if len(have) == 0 {
		return fmt.Errorf("there is no table %s in the database, where failed jobs go: let \"cmsjobs migrate up --create-jobs\" make it", plain)
	}
	if err := need(plain, have, "id", "connection", "queue", "payload", "exception", "failed_at"); err != nil {
		return err
	}
	_, uuid := have["uuid"]
	s.failed = failedTable{name: s.d.ident(plain), uuid: uuid, failedAt: s.momentOf(have["failed_at"]), kind: have["failed_at"].kind}
	return nil
}

// checkOwn looks for our own tables, and whether the driver counts rows as we
// need it: found ones, not changed ones.
func (s *Store) checkOwn(ctx context.Context) error {
	touch := s.d.upsert("cmsjobs_orders", "name, at", "('probe', 0)", "name", "at")
	err := s.repeated(ctx, "opening the store", func() error { _, err := s.exec(ctx, s.ownDB, touch); return err })
	if err != nil {
		if Classify(err) == StopClaiming {
			return fmt.Errorf("our own tables (cmsjobs_*) are not there or not writable: run \"cmsjobs migrate up\": %w", err)
		}
		return explain("writing to our own tables", err)
	}
	var found int64
	err = s.repeated(ctx, "opening the store", func() error {
		found, err = s.exec(ctx, s.ownDB, "UPDATE cmsjobs_orders SET at = 0 WHERE name = 'probe'")
		return err
	})
	if err != nil {
		return explain("writing to our own tables", err)
	}
	if found != 1 {
		return errors.New("the connection counts changed rows instead of found ones: open it with clientFoundRows=true")
	}
	return nil
}

func (s *Store) describe() {
	t := s.t.shape()
	s.schema = Description{Database: s.d.name, Server: s.server, Layout: s.t.kind(), Mode: s.mode, Table: t.plain, AttemptsLimit: t.attemptsLimit,
		FailedTable: s.o.Prefix + s.o.FailedTable, FailedUUID: s.failed.uuid, OrderedIndex: t.ordered, Transactional: t.transactional, Times: "unix seconds"}
	if t.due.kind != unixSeconds {
		s.schema.Times = "wall clock"
		s.schema.Notes = append(s.schema.Notes, "the times of "+t.plain+" are wall-clock texts in the connection's time zone: whoever writes them must use the same zone")
	}
	if t.ordered == "" {
		s.schema.Notes = append(s.schema.Notes, "the index that serves claims is missing: \"cmsjobs migrate index\" adds it")
	}
	if !t.transactional {
		s.schema.Notes = append(s.schema.Notes, t.plain+" has an engine without transactions: jobs are taken one by one and a crash between two writes may lose history; use InnoDB")
	}
	if !s.failed.uuid {
		s.schema.Notes = append(s.schema.Notes, s.schema.FailedTable+" has no uuid column: queue:retry takes its id")
	}
}
