package conditions

import (
	"context"
	"fmt"
	"time"
)

// processesKept is how long the row of a process stays after its last
// heartbeat: it says when a scheduler last ran.
const processesKept = 30 * 24 * time.Hour

// heartbeat writes that this process lives. It is the write that shows that
// the tables of ours take writes.
func (l *look) heartbeat(ctx context.Context) error {
	p := l.c.Process
	if p == nil {
		_, err := l.change(ctx, "UPDATE cmsjobs_conditions SET seen_by = seen_by WHERE name = ?", installedRow)
		return err
	}
	scheduled := int64(0)
	if p.Scheduled != nil {
		if at := p.Scheduled(); !at.IsZero() {
			scheduled = l.now.Add(-l.c.Now().Sub(at)).UnixMilli()
		}
	}
	won, err := l.change(ctx, "UPDATE cmsjobs_processes SET heartbeat_at = ?, scheduled_at = ? WHERE id = ?",
		l.now.UnixMilli(), scheduled, p.ID)
	if err != nil || won {
		return err
	}
	_, err = l.change(ctx, "INSERT INTO cmsjobs_processes (id, host, pid, version, parts, started_at, heartbeat_at, "+
		"scheduled_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		p.ID, p.Host, p.PID, p.Version, p.Parts, l.now.UnixMilli(), l.now.UnixMilli(), scheduled)
	if err != nil {
		return err
	}
	_, err = l.change(ctx, "DELETE FROM cmsjobs_processes WHERE heartbeat_at < ?",
		l.now.Add(-processesKept).UnixMilli())
	return err
}

// ProcessRecord is a process of the service as it last said.
type ProcessRecord struct {
	ID, Host, Version, Parts       string
	PID                            int
	StartedAt, SeenAt, ScheduledAt time.Time // ScheduledAt is zero where it has no scheduler
}

// Processes lists the processes that gave a sign of life within so long, the
// newest first.
func (e *Evaluator) Processes(ctx context.Context, within time.Duration) ([]ProcessRecord, error) {
	now, err := e.c.Queue.Now(ctx)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		ID, Host, Version, Parts string
		PID                      int
		StartedAt                int64 `db:"started_at"`
		BeatAt                   int64 `db:"heartbeat_at"`
		ScheduledAt              int64 `db:"scheduled_at"`
	}
	err = e.c.DB.SelectContext(ctx, &rows, e.c.DB.Rebind("SELECT id, host, version, parts, pid, started_at, "+
		"heartbeat_at, scheduled_at FROM cmsjobs_processes WHERE heartbeat_at >= ? ORDER BY heartbeat_at DESC LIMIT "+
		"1000"),
		now.Add(-within).UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("listing the processes of the service: %w", err)
	}
	list := make([]ProcessRecord, len(rows))
	for i, r := range rows {
		list[i] = ProcessRecord{ID: r.ID, Host: r.Host, Version: r.Version, Parts: r.Parts, PID: r.PID,
			StartedAt: time.UnixMilli(r.StartedAt).UTC(), SeenAt: time.UnixMilli(r.BeatAt).UTC()}
		if r.ScheduledAt > 0 {
			list[i].ScheduledAt = time.UnixMilli(r.ScheduledAt).UTC()
		}
	}
	return list, nil
}
