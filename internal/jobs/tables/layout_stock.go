package tables

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

func (t *stock) Name() Layout      { return Stock }
func (t *stock) Table() *JobsTable { return &t.JobsTable }

func (t *stock) Columns() string  { return "'', NULL, '', 0, 0" }
func (t *stock) Waiting() string  { return t.Locked.Name + " IS NULL" }
func (t *stock) Class(int) string { return "" }

func (t *stock) Expired(now string, retryAfter int64) string {
	return t.Locked.Name + " < " + t.Locked.FromExpr(fmt.Sprintf("%s - %d", now, retryAfter))
}

func (t *stock) Unchanged(c *Candidate) (string, []any) {
	if !c.Locked.Valid {
		seen, args := t.Due.At(c.Seen)
		return fmt.Sprintf("attempts = %d AND %s IS NULL AND %s <= %s", c.Attempts, t.Locked.Name, t.Due.Name,
			seen), args
	}
	locked, args := t.Locked.At(c.Locked.Int64)
	return fmt.Sprintf("attempts = %d AND %s = %s", c.Attempts, t.Locked.Name, locked), args
}

func (t *stock) ClaimRows(until int64, _ string) (string, []any) {
	moment, args := t.Locked.At(until)
	return "attempts = " + t.oneMore() + ", " + t.Locked.Name + " = " + moment, args
}

// oneMore counts an attempt and stops at what the column holds: a strict
// server would refuse the claim for ever.
func (t *JobsTable) oneMore() string {
	if t.AttemptsLimit == 0 {
		return "attempts + 1"
	}
	return fmt.Sprintf("CASE WHEN attempts >= %d THEN attempts ELSE attempts + 1 END", t.AttemptsLimit)
}

func (t *stock) Renew(until int64) string { return t.Locked.Name + " = " + t.Locked.FromUnix(until) }

func (t *stock) Release(due string, _ jobs.Settlement, uncount bool) (string, []any) {
	set := t.Locked.Name + " = NULL"
	if due != "" { // first: MySQL evaluates from left to right, and due may ask for the lease
		set = t.Due.Name + " = " + t.Due.FromExpr(due) + ", " + set
	}
	if uncount {
		set += ", attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END"
	}
	return set, nil
}

func (t *stock) Guard(l jobs.Lease, tried []int64) (string, []any) {
	// Not IN: of several times made from numbers, MariaDB 11.8 compares a TIMESTAMP with the first alone.
	since, args := t.Locked.At(l.ReservedAt)
	same := t.Locked.Name + " = " + since
	for _, until := range tried {
		moment, more := t.Locked.At(until)
		same, args = same+" OR "+t.Locked.Name+" = "+moment, append(args, more...)
	}
	return fmt.Sprintf("attempts = %d AND (%s)", l.Attempt, same), args
}

func (t *stock) Insert() string {
	return strings.Join([]string{"queue", t.Payload, "attempts", t.Due.Name, t.Created.Name}, ", ")
}

func (t *stock) Row(n jobs.Spec, payload, due, now string, _ int) (string, []any) {
	return "(?, ?, 0, " + t.Due.FromExpr(due) + ", " + t.Created.FromExpr(now) + ")", []any{n.Queue, payload}
}
