package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// errLoop says that a name changed hands again and again.
var errLoop = errors.New("the unique key is taken and freed faster than it can be read; try again")

// names are what the job takes in cmsjobs_unique, in the order in which the
// service takes them.
func (e encoded) names() (names []string) {
	if e.UniqueKey != "" {
		names = append(names, uniqueName("key", e.UniqueKey))
	}
	if e.ID != "" {
		names = append(names, uniqueName("uuid", e.ID))
	}
	return names
}

// uniqueName keeps ids and keys apart in one column.
func uniqueName(sort, name string) string {
	if full := sort + ":" + name; len(full) <= maxWord {
		return full
	}
	return sort + "#" + named(name)
}

// takeName takes a name for a job. Where a live job has it, that job's id is
// returned; where its job is gone, the name is taken over.
func (c *Client) takeName(ctx context.Context, tx Tx, name, id string) (existing string, err error) {
	insert := c.table.insertOrLock("name, job_id, uuid, created_at", "(?, 0, ?, "+c.table.millis+")")
	for range 5 {
		r, err := tx.ExecContext(ctx, c.table.bind(insert), name, id)
		if err != nil {
			return "", fmt.Errorf("taking a unique key: %w", err)
		}
		if taken, err := c.table.isNew(r); err != nil || taken {
			return "", err
		}
		var row int64
		var holder string
		found, err := c.one(ctx, tx, []any{&row, &holder}, "SELECT job_id, uuid FROM cmsjobs_unique WHERE name = ?"+
			c.table.forUpdate, name)
		if err != nil {
			return "", fmt.Errorf("reading a unique key: %w", err)
		}
		if !found {
			continue
		}
		if alive, err := c.alive(ctx, tx, row, holder); err != nil || alive {
			return holder, err
		}
		if _, err := c.exec(ctx, tx, "DELETE FROM cmsjobs_unique WHERE name = ? AND job_id = ? AND uuid = ?", name,
			row, holder); err != nil {
			return "", fmt.Errorf("clearing a void unique key: %w", err)
		}
	}
	return "", errLoop
}

// alive says whether the job is still in its table, and is the same one: row
// numbers come again after a TRUNCATE.
func (c *Client) alive(ctx context.Context, tx Tx, row int64, id string) (bool, error) {
	var payload []byte
	found, err := c.one(ctx, tx, []any{&payload}, "SELECT "+c.table.payload+" FROM "+c.table.name+" WHERE id = ?", row)
	if err != nil || !found {
		return false, err
	}
	var there envelope
	return json.Unmarshal(payload, &there) == nil && there.UUID == id, nil
}

// ended says whether a job of this id ran to its end already: enqueuing it
// again would run it twice.
func (c *Client) ended(ctx context.Context, tx Tx, id string) (bool, error) {
	var row int64
	found, err := c.one(ctx, tx, []any{&row}, "SELECT job_id FROM cmsjobs_runs WHERE uuid = ? AND outcome IN "+
		"('completed','failed','cancelled') ORDER BY id DESC LIMIT 1", id)
	if err != nil {
		return false, fmt.Errorf("looking for an earlier job of this ID: %w", err)
	}
	return found, nil
}
