package tables

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// ReadJobs finds out what the jobs table looks like.
func (s *Tables) ReadJobs(ctx context.Context) error {
	plain := s.Options.Prefix + s.Options.Table
	have, err := s.readTable(ctx, plain,
		": set the table's prefix, or let \"cmsjobs migrate up --create-jobs\" make it")
	if err != nil {
		return err
	}
	indexes, err := s.IndexesOf(ctx, s.DB, plain)
	if err != nil {
		return err
	}
	t := JobsTable{d: s.Dialect, Plain: plain, Name: s.Dialect.Ident(plain),
		AttemptsLimit: s.attemptsLimit(have["attempts"]), Transactional: true, byQueue: indexOn(indexes, "queue")}
	_, named := have["payload_json"]
	_, status := have["status"]
	if named || status {
		err = s.readExtended(t, have, indexes)
	} else {
		err = s.readStock(t, have, indexes)
	}
	if err != nil {
		return fmt.Errorf("%w: it is neither Laravel's jobs table nor the extended one", err)
	}
	return s.readEngine(ctx)
}

func (s *Tables) readExtended(t JobsTable, have map[string]column, indexes map[string][]string) error {
	t.Payload, t.Due, t.Locked, t.Created = s.Dialect.Ident("payload_json"), s.momentOf(have["run_at"]),
		s.momentOf(have["locked_at"]), s.momentOf(have["created_at"])
	t.Ordered, t.byQueue = indexOn(indexes, "queue", "status", "priority", "run_at"),
		indexOn(indexes, "queue", "status", "run_at")
	if updated, ok := have["updated_at"]; ok {
		t.updated = s.momentOf(updated)
	}
	s.Layout = &extended{t}
	return need(t.Plain, have, "id", "queue", "name", "payload_json", "status", "priority", "run_at", "attempts",
		"max_attempts", "last_error", "locked_at", "locked_by", "created_at")
}

func (s *Tables) readStock(t JobsTable, have map[string]column, indexes map[string][]string) error {
	t.Payload, t.Due, t.Locked, t.Created = s.Dialect.Ident("payload"), s.momentOf(have["available_at"]),
		s.momentOf(have["reserved_at"]), s.momentOf(have["created_at"])
	t.Ordered = indexOn(indexes, "queue", "available_at")
	s.Layout = &stock{t}
	return need(t.Plain, have, "id", "queue", "payload", "attempts", "reserved_at", "available_at", "created_at")
}

// readEngine notices tables without transactions (MyISAM): each row is then
// taken and settled by itself.
func (s *Tables) readEngine(ctx context.Context) error {
	if !s.Dialect.Engines {
		return nil
	}
	var engine sql.NullString
	if _, err := s.QueryRow(ctx, s.DB, []any{&engine}, "SELECT engine FROM information_schema.tables WHERE "+
		"table_schema = DATABASE() AND table_name = ?", s.Layout.Table().Plain); err != nil {
		return fmt.Errorf("reading the engine of %s: %w", s.Layout.Table().Plain, err)
	}
	switch engine.String {
	case "MyISAM", "Aria", "MEMORY", "CSV":
		s.Layout.Table().Transactional, s.MaxBatch = false, 1
		return s.refuseUnderGTIDs(ctx, engine.String)
	}
	return nil
}

// refuseUnderGTIDs refuses a table without transactions on a server that enforces
// GTID consistency. There a job could be claimed and run but never settled, as its
// history is in an InnoDB table: each settlement ends with error 1785, and the job
// runs again.
func (s *Tables) refuseUnderGTIDs(ctx context.Context, engine string) error {
	var name, enforced string // MariaDB has no such variable, MySQL 5.5 neither
	found, err := s.QueryRow(ctx, s.DB, []any{&name, &enforced},
		"SHOW GLOBAL VARIABLES LIKE 'enforce_gtid_consistency'")
	if err != nil {
		return fmt.Errorf("reading enforce_gtid_consistency: %w", err)
	}
	if t := s.Layout.Table(); found && enforced == "ON" {
		return fmt.Errorf("the table %s has the engine %s, which this server allows no change of together with an "+
			"InnoDB table"+
			" (enforce_gtid_consistency=ON): run ALTER TABLE %s ENGINE=InnoDB", t.Plain, engine, t.Name)
	}
	return nil
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
		Options: o, DB: db, OwnDB: cmp.Or(o.OwnDB, db), Dialect: d, RetryAfter: int64(o.RetryAfter / time.Second),
		MaxBatch: 1000,
	}
	if own, err := database.DialectFor(s.OwnDB); err != nil || own.Name != d.Name {
		return nil, errors.New("the database of the cmsjobs_* tables must be of the same type as the CMS's")
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
			return fmt.Errorf(
				"our own tables (cmsjobs_*) are not there or not writable: run \"cmsjobs migrate up\": %w", err)
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
