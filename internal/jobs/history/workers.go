package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// workerAlive is how old the last heartbeat of a live worker can be.
const workerAlive = time.Minute

// Workers lists workers by their last heartbeat, newest first. Each says its own
// running jobs.
func (s *Store) Workers(ctx context.Context) ([]jobs.WorkerRecord, error) {
	var list []jobs.WorkerRecord
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var w jobs.WorkerRecord
		var queues, kinds, running, php string
		var started, beat, now int64
		err := r.Scan(&w.ID, &w.Host, &w.PID, &w.Version, &queues, &kinds, &w.Slots, &w.ConfiguredSlots,
			&w.MaxSlots, &w.OrderedSlots, &w.Status, &started, &beat,
			&w.MemoryBytes, &w.Done, &w.Failed, &running, &php, &now)
		if err != nil {
			return err
		}
		// A worker of another version may write otherwise: then the list stays empty.
		_ = json.Unmarshal([]byte(queues), &w.Queues)
		_ = json.Unmarshal([]byte(kinds), &w.Types)
		_ = json.Unmarshal([]byte(running), &w.Running)
		_ = json.Unmarshal([]byte(php), &w.PHP)
		w.StartedAt, w.SeenAt, w.Alive = tables.UnixMilli(started), tables.UnixMilli(beat),
			now-beat < workerAlive.Milliseconds()
		list = append(list, w)
		return nil
	}, "SELECT id, host, pid, version, queues, types, slots, configured_slots, max_slots, ordered_slots, status, "+
		"started_at, heartbeat_at, memory_bytes, done, failed, running, php, "+s.tables.MillisNow()+
		" FROM cmsjobs_workers ORDER BY heartbeat_at DESC")
	if err != nil {
		return nil, fmt.Errorf("listing workers: %w", err)
	}
	return list, nil
}
