package tables

import (
	"fmt"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// extended is the layout of the specification. The lease is locked_by, which
// holds the worker's name and a fresh random token.
type extended struct{ JobsTable }

func (t *extended) Name() Layout      { return Extended }
func (t *extended) Table() *JobsTable { return &t.JobsTable }

func (t *extended) Columns() string { return "status, locked_by, name, priority, max_attempts" }
func (t *extended) Waiting() string { return "status = 'queued'" }
func (t *extended) Class(priority int) string {
	return fmt.Sprintf(" AND priority = %d", priority)
}

func (t *extended) Expired(now string, retryAfter int64) string {
	return "status = 'processing' AND (" + t.Locked.Name + " IS NULL OR " + t.Locked.Name + " < " +
		t.Locked.FromExpr(fmt.Sprintf("%s - %d", now, retryAfter)) + ")"
}

func (t *extended) Unchanged(c *Candidate) (string, []any) {
	lock, args := t.Locked.Name+" IS NULL", []any(nil)
	if c.Locked.Valid {
		lock, args = t.Locked.At(c.Locked.Int64)
		lock = t.Locked.Name + " = " + lock
	}
	cond := fmt.Sprintf("attempts = %d AND status = '%s' AND %s", c.Attempts, strings.ReplaceAll(c.Status, "'", ""),
		lock)
	if !c.Token.Valid {
		return cond + " AND locked_by IS NULL", args
	}
	return cond + " AND locked_by = ?", append(args, c.Token.String)
}

func (t *extended) ClaimRows(until int64, token string) (string, []any) {
	moment, args := t.Locked.At(until)
	return "status = 'processing', locked_by = ?, attempts = " + t.oneMore() + ", " + t.Locked.Name + " = " + moment +
		t.touch(), append([]any{token}, args...)
}

// touch keeps updated_at where the server does not do it by itself.
func (t *JobsTable) touch() string {
	if t.updated.Name == "" {
		return ""
	}
	return ", " + t.updated.Name + " = " + t.updated.FromExpr(t.d.Now)
}

func (t *extended) Renew(until int64) string {
	return t.Locked.Name + " = " + t.Locked.FromUnix(until) + t.touch()
}

func (t *extended) Release(due string, end jobs.Settlement, uncount bool) (string, []any) {
	set := "status = 'queued', locked_by = NULL, " + t.Locked.Name + " = NULL"
	var args []any
	if due != "" {
		set += ", " + t.Due.Name + " = " + t.Due.FromExpr(due)
	}
	if uncount {
		set += ", attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END"
	}
	if end.Outcome == jobs.Retried {
		set, args = set+", last_error = ?", append(args, CutText(end.Error))
	}
	return set + t.touch(), args
}

func (t *extended) Guard(l jobs.Lease, _ []int64) (string, []any) {
	return "status = 'processing' AND locked_by = ?", []any{TokenOf(l)}
}

func (t *extended) Insert() string {
	columns := "queue, name, " + t.Payload + ", status, priority, attempts, max_attempts, " + t.Due.Name + ", " +
		t.Created.Name
	if t.updated.Name != "" {
		columns += ", " + t.updated.Name
	}
	return columns
}

func (t *extended) Row(n jobs.Spec, payload, due, now string, maxAttempts int) (string, []any) {
	values := "(?, ?, ?, 'queued', ?, 0, ?, " + t.Due.FromExpr(due) + ", " + t.Created.FromExpr(now)
	if t.updated.Name != "" {
		values += ", " + t.updated.FromExpr(now)
	}
	return values + ")", []any{n.Queue, n.Type, payload, n.Priority, maxAttempts}
}
