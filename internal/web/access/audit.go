package access

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/listing"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
	"github.com/cmsjobs/cmsjobs/internal/redact"
)

// AuditEntry is one thing that somebody did, or tried to do, or that the service did
// by itself (job_enqueued, job_failed).
type AuditEntry struct {
	ID      int64     `json:"id"`
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"` // "" for nobody known
	Via     string    `json:"via"`
	Address string    `json:"address"`
	Action  string    `json:"action"` // the route's name, e.g. "jobs.requeue"
	Target  string    `json:"target"` // a job's UUID, a queue's name, …
	Status  int       `json:"status"` // HTTP's answer; of the service's own actions 201 and 500
	Detail  string    `json:"detail,omitempty"`
}

// maxDetail bounds the free text of an entry, in bytes.
const maxDetail = 4096

// Record adds an entry to the audit log.
func (s *Store) Record(ctx context.Context, d AuditEntry) error {
	_, err := s.db.ExecContext(ctx, s.db.Rebind(`INSERT INTO cmsjobs_audit (at, actor, via, address, action, target,
		status, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`),
		s.millis(), text(d.Actor, 191), text(d.Via, 191), text(d.Address, 64), text(d.Action, 191),
		text(redact.Text(d.Target), 191), d.Status, text(redact.Text(d.Detail), maxDetail))
	if err != nil {
		return fmt.Errorf("writing the audit log: %w", err)
	}
	return nil
}

// text makes foreign bytes fit to be stored.
func text(s string, n int) string {
	return jobs.PlainText(s, n, '\n', '\t')
}

// AuditFilter chooses entries; empty fields choose all.
type AuditFilter struct {
	Actor, Action, Target string
	Since, Until          time.Time
}

// AuditEntries lists the audit log, newest first. The cursor is the last
// action's id; Total is −1 in a large log.
func (s *Store) AuditEntries(ctx context.Context, f AuditFilter, p jobs.Page) (jobs.List[AuditEntry], error) {
	where, args := []string{"1 = 1"}, []any{}
	and := func(condition string, arg any) { where, args = append(where, condition), append(args, arg) }
	for column, value := range map[string]string{"actor": f.Actor, "action": f.Action, "target": f.Target} {
		if value != "" {
			and(column+" = ?", value)
		}
	}
	if !f.Since.IsZero() {
		and("at >= ?", toMillis(f.Since))
	}
	if !f.Until.IsZero() {
		and("at < ?", toMillis(f.Until))
	}
	total, err := listing.Total(ctx, s.db, "cmsjobs_audit", strings.Join(where, " AND "), args...)
	if err != nil {
		return jobs.List[AuditEntry]{}, err
	}
	if p.Cursor != "" {
		before, err := strconv.ParseInt(p.Cursor, 10, 64)
		if err != nil {
			return jobs.List[AuditEntry]{}, jobs.Invalid(phrase.Errorf("the cursor is not one of ours"))
		}
		and("id < ?", before)
		p.Offset = 0
	}
	var rows []struct {
		ID      int64  `db:"id"`
		At      int64  `db:"at"`
		Actor   string `db:"actor"`
		Via     string `db:"via"`
		Address string `db:"address"`
		Action  string `db:"action"`
		Target  string `db:"target"`
		Status  int    `db:"status"`
		Detail  string `db:"detail"`
	}
	query := "SELECT * FROM cmsjobs_audit WHERE " + strings.Join(where, " AND ") + " ORDER BY id DESC LIMIT ? OFFSET ?"
	if err := s.db.SelectContext(ctx, &rows, s.db.Rebind(query), append(args, p.Limit+1, p.Offset)...); err != nil {
		return jobs.List[AuditEntry]{}, fmt.Errorf("reading the audit log: %w", err)
	}
	list := jobs.List[AuditEntry]{Items: []AuditEntry{}, Total: total}
	for i, r := range rows {
		if i == p.Limit {
			list.Next = strconv.FormatInt(rows[i-1].ID, 10)
			break
		}
		list.Items = append(list.Items, AuditEntry{r.ID, fromMillis(r.At), r.Actor, r.Via, r.Address, r.Action,
			r.Target, r.Status, r.Detail})
	}
	return list, nil
}
