package sqlstore

import (
	"fmt"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// extended is the layout of the specification. The lease is locked_by, which
// holds the worker's name and a fresh random token.
type extended struct{ JobsTable }

func (t *extended) Name() Layout  { return Extended }
func (t *extended) Table() *JobsTable { return &t.JobsTable }

func (t *extended) columns() string { return "status, locked_by, name, priority, max_attempts" }
func (t *extended) waiting() string { return "status = 'queued'" }
func (t *extended) class(priority int) string {
	return fmt.Sprintf(" AND priority = %d", priority)
}

func (t *extended) expired(now string, retryAfter int64) string {
	return "status = 'processing' AND (" + t.locked.name + " IS NULL OR " + t.locked.name + " < " + t.locked.fromExpr(fmt.Sprintf("%s - %d", now, retryAfter)) + ")"
}

func (t *extended) unchanged(c *Candidate) (string, []any) {
	lock := t.locked.name + " IS NULL"
	if c.locked.Valid {
		lock = t.locked.name + " = " + t.locked.fromUnix(c.locked.Int64)
	}
	cond := fmt.Sprintf("attempts = %d AND status = '%s' AND %s", c.attempts, strings.ReplaceAll(c.status, "'", ""), lock)
	if !c.token.Valid {
		return cond + " AND locked_by IS NULL", nil
	}
	return cond + " AND locked_by = ?", []any{c.token.String}
}

func (t *extended) claimRows(until int64, token string) (string, []any) {
	return "status = 'processing', locked_by = ?, attempts = " + t.oneMore() + ", " + t.locked.name + " = " + t.locked.fromUnix(until) + t.touch(), []any{token}
}

// touch keeps updated_at where the server does not do it by itself.
func (t *JobsTable) touch() string {
	if t.updated.name == "" {
		return ""
	}
	return ", " + t.updated.name + " = " + t.updated.fromExpr(t.d.Now)
}

func (t *extended) renew(until int64) string {
	return t.locked.name + " = " + t.locked.fromUnix(until) + t.touch()
}

func (t *extended) giveBack(due string, end jobs.Settlement, uncount bool) (string, []any) {
	set := "status = 'queued', locked_by = NULL, " + t.locked.name + " = NULL"
	var args []any
	if due != "" {
		set += ", " + t.due.name + " = " + t.due.fromExpr(due)
	}
	if uncount {
		set += ", attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END"
	}
	if end.Outcome == jobs.Retried {
		set, args = set+", last_error = ?", append(args, CutText(end.Error))
	}
	return set + t.touch(), args
}

func (t *extended) guard(l jobs.Lease, _ []int64) (string, []any) {
	return "status = 'processing' AND locked_by = ?", []any{tokenOf(l)}
}

func (t *extended) insert() string {
	columns := "queue, name, " + t.payload + ", status, priority, attempts, max_attempts, " + t.due.name + ", " + t.created.name
	if t.updated.name != "" {
		columns += ", " + t.updated.name
	}
	return columns
}

func (t *extended) row(n jobs.Spec, payload, due, now string, maxAttempts int) (string, []any) {
	values := "(?, ?, ?, 'queued', ?, 0, ?, " + t.due.fromExpr(due) + ", " + t.created.fromExpr(now)
	if t.updated.name != "" {
		values += ", " + t.updated.fromExpr(now)
	}
	return values + ")", []any{n.Queue, n.Type, payload, n.Priority, maxAttempts}
}
