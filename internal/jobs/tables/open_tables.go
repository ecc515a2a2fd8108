package tables

import (
	"context"
	"database/sql"
	"fmt"
)

// readTable reads the columns of a table that must be there; missing says what
// to do where it is not.
func (s *Tables) readTable(ctx context.Context, plain, missing string) (map[string]column, error) {
	if err := checkName(plain); err != nil {
		return nil, err
	}
	have, err := s.columnsOf(ctx, s.DB, plain)
	if err == nil && len(have) == 0 {
		err = fmt.Errorf("there is no table %s in the database%s", plain, missing)
	}
	return have, err
}

// ReadJobs finds out what the jobs table looks like.
func (s *Tables) ReadJobs(ctx context.Context) error {
	plain := s.Options.Prefix + s.Options.Table
	have, err := s.readTable(ctx, plain, ": set the table's prefix, or let \"cmsjobs migrate up --create-jobs\" make it")
	if err != nil {
		return err
	}
	indexes, err := s.IndexesOf(ctx, s.DB, plain)
	if err != nil {
		return err
	}
	t := JobsTable{d: s.Dialect, Plain: plain, Name: s.Dialect.Ident(plain), AttemptsLimit: s.attemptsLimit(have["attempts"]), Transactional: true, byQueue: indexOn(indexes, "queue")}
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
	t.Payload, t.Due, t.Locked, t.Created = s.Dialect.Ident("payload_json"), s.momentOf(have["run_at"]), s.momentOf(have["locked_at"]), s.momentOf(have["created_at"])
	t.Ordered, t.byQueue = indexOn(indexes, "queue", "status", "priority", "run_at"), indexOn(indexes, "queue", "status", "run_at")
	if updated, ok := have["updated_at"]; ok {
		t.updated = s.momentOf(updated)
	}
	s.Layout = &extended{t}
	return need(t.Plain, have, "id", "queue", "name", "payload_json", "status", "priority", "run_at", "attempts", "max_attempts", "last_error", "locked_at", "locked_by", "created_at")
}

func (s *Tables) readStock(t JobsTable, have map[string]column, indexes map[string][]string) error {
	t.Payload, t.Due, t.Locked, t.Created = s.Dialect.Ident("payload"), s.momentOf(have["available_at"]), s.momentOf(have["reserved_at"]), s.momentOf(have["created_at"])
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
	if _, err := s.QueryRow(ctx, s.DB, []any{&engine}, "SELECT engine FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?", s.Layout.Table().Plain); err != nil {
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
	found, err := s.QueryRow(ctx, s.DB, []any{&name, &enforced}, "SHOW GLOBAL VARIABLES LIKE 'enforce_gtid_consistency'")
	if err != nil {
		return fmt.Errorf("reading enforce_gtid_consistency: %w", err)
	}
	if t := s.Layout.Table(); found && enforced == "ON" {
		return fmt.Errorf("the table %s has the engine %s, which this server allows no change of together with an InnoDB table"+
			" (enforce_gtid_consistency=ON): run ALTER TABLE %s ENGINE=InnoDB", t.Plain, engine, t.Name)
	}
	return nil
}
