package queue

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Heartbeat implements jobs.WorkerRegistry: it writes that the worker lives and what
// it runs, keeps its jobs' log lines, and reads the control signals.
func (s *Store) Heartbeat(ctx context.Context, w jobs.WorkerInfo) (jobs.ControlSignals, error) {
	o, err := s.beat(ctx, w)
	return o, s.tables.NoteTrouble(err)
}

func (s *Store) beat(ctx context.Context, w jobs.WorkerInfo) (jobs.ControlSignals, error) {
	var o jobs.ControlSignals
	var lines []tables.JobLine
	for _, j := range slices.Concat(w.Running, runningPHP(w.PHP)) {
		for _, l := range j.Lines {
			lines = append(lines, tables.JobLine{UUID: j.UUID, Attempt: j.Attempt, LogLine: l})
		}
	}
	op := "saying that the worker lives"
	var err error
	if len(lines) == 0 { // the usual case, all day: one statement needs no transaction
		err = database.Retry(ctx, op, func() error { return s.writeWorker(ctx, s.tables.OwnDB, w) })
	} else {
		err = s.tables.InTx(ctx, op, func(t tables.Transaction) error {
			if err := s.writeWorker(ctx, t.Own, w); err != nil {
				return err
			}
			return s.tables.InsertLines(ctx, t.Own, lines)
		})
	}
	if err != nil {
		return o, err
	}
	if o, err = s.controlSignals(ctx, w); err != nil {
		return o, fmt.Errorf("reading control signals: %w", err)
	}
	return o, nil
}

// runningPHP are the jobs that PHP processes run.
func runningPHP(list []jobs.PHPProcess) (running []jobs.RunningJob) {
	for _, p := range list {
		if p.Job != nil {
			running = append(running, *p.Job)
		}
	}
	return running
}

func (s *Store) writeWorker(ctx context.Context, q tables.Tx, w jobs.WorkerInfo) error {
	running, php := w.Running, w.PHP
	if running == nil {
		running = []jobs.RunningJob{}
	}
	if php == nil {
		php = []jobs.PHPProcess{}
	}
	var words [4]string
	for i, v := range []any{running, w.Queues, w.Types, php} {
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("encoding the worker's row: %w", err)
		}
		words[i] = string(data)
	}
	columns := "id, host, pid, version, queues, types, slots, configured_slots, max_slots, status, started_at, " +
		"heartbeat_at, memory_bytes, done, failed, running, php"
	values := "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, " + s.tables.MillisNow() + ", ?, ?, ?, ?, ?)"
	_, err := s.tables.Exec(ctx, q, s.tables.Dialect.Upsert("cmsjobs_workers", columns, values, "id", "queues",
		"types", "slots", "configured_slots", "max_slots", "status", "heartbeat_at", "memory_bytes", "done", "failed",
		"running", "php"), w.ID, tables.CutWord(w.Host), w.PID, tables.CutWord(w.Version), words[1], words[2], w.Slots,
		w.ConfiguredSlots, w.MaxSlots, w.Status,
		w.StartedAt.UnixMilli(), w.MemoryBytes, w.Done, w.Failed, words[0], words[3])
	return err
}

// controlSignals reads all control signals, in one statement.
func (s *Store) controlSignals(ctx context.Context, w jobs.WorkerInfo) (jobs.ControlSignals, error) {
	var o jobs.ControlSignals
	running := make([]string, len(w.Running))
	for i, j := range w.Running {
		running[i] = j.UUID
	}
	in, args := database.InWords("uuid", running)
	sighted, clock := s.tables.StartSighting(), int64(0)
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var sort, name string
		var at int64
		if err := r.Scan(&sort, &name, &at); err != nil {
			return err
		}
		switch sort {
		case "stop":
			o.Stop = true
		case "restart":
			o.RestartedAt = time.UnixMilli(at).UTC()
		case "slots":
			o.Slots = int(at)
		case "pause":
			o.Paused = append(o.Paused, name)
		case "cancel":
			o.Cancelled = append(o.Cancelled, name)
		case "clock":
			clock = at
		}
		return nil
	}, "SELECT 'stop', id, 0 FROM cmsjobs_workers WHERE id = ? AND stop <> 0 UNION ALL SELECT 'restart', name, at "+
		"FROM cmsjobs_control_signals WHERE name = 'restart'"+
		" UNION ALL SELECT 'slots', '', slots FROM ("+slotsOf+") ordered WHERE slots > 0"+
		" UNION ALL SELECT 'clock', '', "+s.tables.MillisNow()+
		" UNION ALL SELECT 'pause', queue, at FROM cmsjobs_paused UNION ALL SELECT 'cancel', uuid, at FROM "+
		"cmsjobs_cancels WHERE "+in, append([]any{w.ID, w.ID}, args...)...)
	if err == nil && s.tables.OwnDB == s.tables.DB { // else it is another server's clock
		sighted(time.UnixMilli(clock), time.Millisecond)
	}
	if err == nil && s.tables.Options.RestartedAt != nil {
		var called time.Time
		if called, err = s.tables.Options.RestartedAt(ctx); err == nil && called.After(o.RestartedAt) {
			o.RestartedAt = called
		}
	}
	slices.Sort(o.Paused)
	return o, err
}

// slotsOf are the slots that people ordered for one worker by its id, else for all.
const slotsOf = "SELECT COALESCE((SELECT ordered_slots FROM cmsjobs_workers WHERE id = ? AND ordered_slots > 0), " +
	"(SELECT value FROM cmsjobs_control_signals WHERE name = 'slots'), 0) AS slots"

// Deregister implements jobs.WorkerRegistry: the worker has ended.
func (s *Store) Deregister(ctx context.Context, workerID string) error {
	if _, err := s.tables.Exec(ctx, s.tables.OwnDB, "DELETE FROM cmsjobs_workers WHERE id = ?", workerID); err != nil {
		return fmt.Errorf("removing the worker: %w", err)
	}
	return nil
}

// Renew implements jobs.Source.
func (s *Store) Renew(ctx context.Context, leases []jobs.Lease, length time.Duration) ([]jobs.Lease, error) {
	renewed, err := s.renewals.Renew(ctx, leases, length, func(expires int64) error {
		return s.renewPermits(ctx, leases, expires)
	})
	return renewed, s.tables.NoteTrouble(err)
}

// renewPermits extends the permits of limited types with their jobs.
func (s *Store) renewPermits(ctx context.Context, leases []jobs.Lease, expires int64) error {
	s.mu.Lock()
	limited := len(s.permits) > 0
	s.mu.Unlock()
	if !limited {
		return nil
	}
	byToken := map[string][]int64{}
	for _, l := range leases {
		token := tables.RandomPart(tables.TokenOf(l))
		byToken[token] = append(byToken[token], l.ID)
	}
	for token, list := range byToken {
		in, args := s.tables.Dialect.In("job_id", list)
		if _, err := s.tables.Exec(ctx, s.tables.OwnDB,
			"UPDATE cmsjobs_permits SET expires_at = ? WHERE token = ? AND "+in,
			append([]any{expires, token}, args...)...); err != nil {
			return fmt.Errorf("renewing permits: %w", err)
		}
	}
	return nil
}
