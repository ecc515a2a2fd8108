package announce

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Kept is how long a type is known after a worker last announced it.
const Kept = 30 * 24 * time.Hour

// Every is how often a process reads the types of others.
const Every = 10 * time.Second

// maxTypes bounds how many types others may announce.
const maxTypes = 1000

// Store keeps types in cmsjobs_announced_types. It is safe for concurrent use.
type Store struct {
	DB  *sqlx.DB
	Now func() time.Time
}

// Announce writes types, or that they are still run. Of two programs that say
// different things of a type, the last one counts.
func (s *Store) Announce(ctx context.Context, list ...Type) error {
	d, err := database.DialectFor(s.DB)
	if err != nil {
		return err
	}
	statement := s.DB.Rebind(d.Upsert("cmsjobs_announced_types", "type, title, queue, payload_schema, max_attempts, "+
		"timeout_ms, max_running, announced_at", "(?, ?, ?, ?, ?, ?, ?, ?)", "type",
		"title", "queue", "payload_schema", "max_attempts", "timeout_ms", "max_running", "announced_at"))
	for _, t := range list {
		p := t.Policy
		err := database.Retry(ctx, "announcing a type", func() error {
			_, err := s.DB.ExecContext(ctx, statement, t.Name, jobs.PlainText(t.Title, MaxTitle), t.Queue,
				string(t.Schema), p.MaxAttempts, p.Timeout.Milliseconds(), p.Limit, s.Now().UnixMilli())
			return err
		})
		if err != nil {
			return fmt.Errorf("announcing %s: %w", t.Name, err)
		}
	}
	return nil
}

// Types reads the types that were announced within Kept. One that cannot be read
// any more is left out.
func (s *Store) Types(ctx context.Context) ([]jobs.Entry, error) {
	var rows []struct {
		Type, Title, Queue string
		Schema             string `db:"payload_schema"`
		MaxAttempts        int    `db:"max_attempts"`
		TimeoutMS          int64  `db:"timeout_ms"`
		MaxRunning         int    `db:"max_running"`
	}
	err := s.DB.SelectContext(ctx, &rows, s.DB.Rebind(fmt.Sprintf("SELECT type, title, queue, payload_schema, "+
		"max_attempts, timeout_ms, max_running FROM cmsjobs_announced_types WHERE announced_at > ? ORDER BY type "+
		"LIMIT %d", maxTypes)), s.Now().Add(-Kept).UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("reading the types of other programs: %w", err)
	}
	list := make([]jobs.Entry, 0, len(rows))
	for _, r := range rows {
		t := Type{Name: r.Type, Title: r.Title, Queue: r.Queue, Policy: jobs.Policy{MaxAttempts: r.MaxAttempts,
			Timeout: time.Duration(r.TimeoutMS) * time.Millisecond, Limit: r.MaxRunning}}
		if r.Schema != "" {
			t.Schema = json.RawMessage(r.Schema)
		}
		if e, err := t.Entry(); err == nil {
			list = append(list, e)
		}
	}
	return list, nil
}

// Prune removes the types that nobody announced for longer than Kept.
func (s *Store) Prune(ctx context.Context) error {
	if _, err := s.DB.ExecContext(ctx, s.DB.Rebind("DELETE FROM cmsjobs_announced_types WHERE announced_at <= ?"),
		s.Now().Add(-Kept).UnixMilli()); err != nil {
		return fmt.Errorf("removing types that nobody runs any more: %w", err)
	}
	return nil
}

// Refresh makes a registry know the types of other programs.
func (s *Store) Refresh(ctx context.Context, registry *jobs.Registry) error {
	list, err := s.Types(ctx)
	if err == nil {
		registry.SetElsewhere(list)
	}
	return err
}

// Follow refreshes a registry until ctx ends. trouble hears of what went wrong.
func (s *Store) Follow(ctx context.Context, registry *jobs.Registry, trouble func(error)) {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.Refresh(ctx, registry); err != nil && ctx.Err() == nil {
			trouble(err)
		}
	}
}
