package sqlstore

import (
	"fmt"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// stock is Laravel's own jobs table. The lease is (attempts, reserved_at):
// every claim raises attempts, and only the holder of a lease lowers it again.
// No two claims of a row write the same pair: a row that is released in the
// second in which its lease was written is due in the next one (see
// Store.releasedDue), and a claim checks that the row was due when it was read.
type stock struct{ JobsTable }

func (t *stock) Name() Layout  { return Stock }
func (t *stock) Table() *JobsTable { return &t.JobsTable }

func (t *stock) columns() string  { return "'', NULL, '', 0, 0" }
func (t *stock) waiting() string  { return t.locked.name + " IS NULL" }
func (t *stock) class(int) string { return "" }

func (t *stock) expired(now string, retryAfter int64) string {
	return t.locked.name + " < " + t.locked.fromExpr(fmt.Sprintf("%s - %d", now, retryAfter))
}

func (t *stock) unchanged(c *Candidate) (string, []any) {
	if !c.locked.Valid {
		return fmt.Sprintf("attempts = %d AND %s IS NULL AND %s <= %s", c.attempts, t.locked.name, t.due.name, t.due.fromUnix(c.seen)), nil
	}
	return fmt.Sprintf("attempts = %d AND %s = %s", c.attempts, t.locked.name, t.locked.fromUnix(c.locked.Int64)), nil
}

func (t *stock) claimRows(until int64, _ string) (string, []any) {
	return "attempts = " + t.oneMore() + ", " + t.locked.name + " = " + t.locked.fromUnix(until), nil
}

// oneMore counts an attempt and stops at what the column holds: a strict
// server would refuse the claim for ever.
func (t *JobsTable) oneMore() string {
	if t.attemptsLimit == 0 {
		return "attempts + 1"
	}
	return fmt.Sprintf("CASE WHEN attempts >= %d THEN attempts ELSE attempts + 1 END", t.attemptsLimit)
}

func (t *stock) renew(until int64) string { return t.locked.name + " = " + t.locked.fromUnix(until) }

func (t *stock) giveBack(due string, _ jobs.Settlement, uncount bool) (string, []any) {
	set := t.locked.name + " = NULL"
	if due != "" { // first: MySQL evaluates from left to right, and due may ask for the lease
		set = t.due.name + " = " + t.due.fromExpr(due) + ", " + set
	}
	if uncount {
		set += ", attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END"
	}
	return set, nil
}

func (t *stock) guard(l jobs.Lease, tried []int64) (string, []any) {
	values := []string{t.locked.fromUnix(l.ReservedAt)}
	for _, until := range tried {
		values = append(values, t.locked.fromUnix(until))
	}
	return fmt.Sprintf("attempts = %d AND %s IN (%s)", l.Attempt, t.locked.name, strings.Join(values, ", ")), nil
}

func (t *stock) insert() string {
	return strings.Join([]string{"queue", t.payload, "attempts", t.due.name, t.created.name}, ", ")
}

func (t *stock) row(n jobs.Spec, payload, due, now string, _ int) (string, []any) {
	return "(?, ?, 0, " + t.due.fromExpr(due) + ", " + t.created.fromExpr(now) + ")", []any{n.Queue, payload}
}
