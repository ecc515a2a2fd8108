package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// errLoop says that a name changed hands again and again.
var errLoop = errors.New("the unique key is taken and freed faster than it can be read; try again")

// insertNamed inserts one job unless its UUID or unique key is in use.
func (s *Store) insertNamed(ctx context.Context, t tables.Transaction, n jobs.Spec) (jobs.Receipt, error) {
	var names []string
	if n.UniqueKey != "" {
		names = append(names, uniqueName("key", n.UniqueKey))
	}
	if n.UUID != "" {
		names = append(names, uniqueName("uuid", n.UUID))
		if ended, found, err := s.endedRun(ctx, t.Own, n.UUID); err != nil || found {
			return ended, err
		}
	} else {
		n.UUID = newUUID()
	}
	for i, name := range names {
		existing, err := s.takeName(ctx, t, name, n.UUID)
		if err != nil {
			return jobs.Receipt{}, err
		}
		if existing != nil {
			if i > 0 { // the first name was taken for nothing
				_, err = s.tables.Exec(ctx, t.Own, "DELETE FROM cmsjobs_unique WHERE name = ? AND job_id = 0", names[0])
			}
			return *existing, err
		}
	}
	ids, err := s.insertPlain(ctx, t.Main, []jobs.Spec{n})
	if err != nil {
		return jobs.Receipt{}, err
	}
	in, args := database.InWords("name", names)
	if _, err := s.tables.Exec(ctx, t.Own, "UPDATE cmsjobs_unique SET job_id = ? WHERE "+in,
		append([]any{ids[0]}, args...)...); err != nil {
		return jobs.Receipt{}, fmt.Errorf("noting unique keys: %w", err)
	}
	return jobs.Receipt{ID: ids[0], UUID: n.UUID}, nil
}

// uniqueName keeps UUIDs and keys apart in one column.
func uniqueName(sort, name string) string {
	if full := sort + ":" + name; len(full) <= 191 {
		return full
	}
	return sort + "#" + tables.NamedUUID(name)
}

// takeName takes a name for the job uuid. Where a live job has it, that job is
// returned; where its job is gone (settled by PHP, deleted by hand), the name
// is taken over.
func (s *Store) takeName(ctx context.Context, t tables.Transaction, name, id string) (*jobs.Receipt, error) {
	for range 5 {
		taken, err := s.tables.InsertOrLock(ctx, t.Own, "cmsjobs_unique", "name, job_id, uuid, created_at",
			"(?, 0, ?, "+s.tables.MillisNow()+")", "job_id", name, id)
		if err != nil {
			return nil, fmt.Errorf("taking a unique key: %w", err)
		}
		if taken {
			return nil, nil
		}
		var r jobs.Receipt
		found, err := s.tables.QueryRow(ctx, t.Own, []any{&r.ID, &r.UUID}, "SELECT job_id, uuid FROM cmsjobs_unique "+
			"WHERE name = ?"+s.tables.Dialect.ForUpdate, name)
		if err != nil {
			return nil, fmt.Errorf("reading a unique key: %w", err)
		}
		if !found {
			continue
		}
		alive, err := s.alive(ctx, t.Main, r)
		if err != nil {
			return nil, err
		}
		if alive {
			r.Existing = true
			return &r, nil
		}
		if _, err := s.tables.Exec(ctx, t.Own, "DELETE FROM cmsjobs_unique WHERE name = ? AND job_id = ? AND uuid = ?",
			name, r.ID, r.UUID); err != nil {
			return nil, fmt.Errorf("clearing a void unique key: %w", err)
		}
	}
	return nil, errLoop
}

// alive says whether the job is still in its table, and is the same one: row
// numbers come again after a TRUNCATE.
func (s *Store) alive(ctx context.Context, q tables.Tx, r jobs.Receipt) (bool, error) {
	var payload []byte
	t := s.tables.Layout.Table()
	found, err := s.tables.QueryRow(ctx, q, []any{&payload}, "SELECT "+t.Payload+" FROM "+t.Name+" WHERE id = ?", r.ID)
	if err != nil || !found {
		return false, err
	}
	e, _, _ := jobs.Parse(payload, s.tables.Known) // whose it is does not matter here
	return e.UUID == r.UUID, nil
}

// endedRun finds a job of this UUID that has ended already: enqueuing it again
// would run it twice.
func (s *Store) endedRun(ctx context.Context, q tables.Tx, id string) (jobs.Receipt, bool, error) {
	r := jobs.Receipt{UUID: id, Existing: true}
	found, err := s.tables.QueryRow(ctx, q, []any{&r.ID}, "SELECT job_id FROM cmsjobs_runs WHERE uuid = ? AND "+
		"outcome IN ('completed','failed','cancelled') ORDER BY id DESC LIMIT 1", id)
	if err != nil {
		return r, false, fmt.Errorf("looking for an earlier job of this UUID: %w", err)
	}
	return r, found, nil
}
