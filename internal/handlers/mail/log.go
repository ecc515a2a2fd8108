package mail

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/listing"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Entry is one recipient of one mail, as people see it.
type Entry struct {
	ID        int64     `json:"id"`
	UUID      string    `json:"uuid"` // of the job
	Recipient string    `json:"recipient"`
	Sender    string    `json:"sender"`
	Subject   string    `json:"subject"`
	Template  string    `json:"template"`
	Status    Status    `json:"status"`
	Attempt   int       `json:"attempt"`
	MessageID string    `json:"message_id"`
	Driver    string    `json:"driver"`
	Host      string    `json:"host"`
	Code      int       `json:"code"`
	Answer    string    `json:"answer"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	// HasPayload says that Resend can send it again.
	HasPayload bool `json:"has_payload"`
}

// Attempt is one try to send to one recipient.
type Attempt struct {
	Recipient  string    `json:"recipient"`
	Attempt    int       `json:"attempt"`
	Status     Status    `json:"status"`
	Driver     string    `json:"driver"`
	Host       string    `json:"host"`
	Code       int       `json:"code"`
	Answer     string    `json:"answer"`
	DurationMS int64     `json:"duration_ms"`
	At         time.Time `json:"at,omitzero"`
}

// LogFilter chooses entries. Empty fields choose all.
type LogFilter struct {
	ID        int64
	Statuses  []Status
	UUID      string
	Recipient string // the whole address
	Text      string // a part of the recipient or of the subject
	Template  string
	Since     time.Time
}

const entryColumns = `id, job_uuid, recipient, sender, subject, template, status, attempt, message_id, driver, host,
	code, answer, created_at, updated_at,
	EXISTS (SELECT 1 FROM cmsjobs_mail_payloads p WHERE p.job_uuid = cmsjobs_mail.job_uuid) AS has_payload`

type entryRow struct {
	ID                                   int64
	UUID                                 string `db:"job_uuid"`
	Recipient, Sender, Subject, Template string
	Status                               Status
	Attempt                              int
	MessageID                            string `db:"message_id"`
	Driver, Host                         string
	Code                                 int
	Answer                               string
	CreatedAt                            int64 `db:"created_at"`
	UpdatedAt                            int64 `db:"updated_at"`
	HasPayload                           bool  `db:"has_payload"`
}

func (r entryRow) entry() Entry {
	return Entry{ID: r.ID, UUID: r.UUID, Recipient: r.Recipient, Sender: r.Sender, Subject: r.Subject,
		Template: r.Template, Status: r.Status, Attempt: r.Attempt,
		MessageID: r.MessageID, Driver: r.Driver, Host: r.Host, Code: r.Code, Answer: r.Answer,
		CreatedAt: time.UnixMilli(r.CreatedAt).UTC(), UpdatedAt: time.UnixMilli(r.UpdatedAt).UTC(),
		HasPayload: r.HasPayload}
}

// Log lists mails, the newest first, by the page's cursor. Total is −1 in a large log.
func (h *Handler) Log(ctx context.Context, f LogFilter, p jobs.Page) (jobs.List[Entry], error) {
	limit := p.Limit
	if limit <= 0 || limit > 500 {
		limit = 50
	}
	where, args := f.where()
	total, err := listing.Total(ctx, h.c.DB, "cmsjobs_mail", strings.Join(append([]string{"1 = 1"}, where...),
		" AND "), args...)
	if err != nil {
		return jobs.List[Entry]{}, err
	}
	if p.Cursor != "" {
		before, err := strconv.ParseInt(p.Cursor, 10, 64)
		if err != nil {
			return jobs.List[Entry]{}, jobs.Invalid(phrase.Errorf("the cursor %.40q is not one of this list", p.Cursor))
		}
		where, args = append(where, "id < ?"), append(args, before)
	}
	query := "SELECT " + entryColumns + " FROM cmsjobs_mail"
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	var rows []entryRow
	if err := h.c.DB.SelectContext(ctx, &rows, h.c.DB.Rebind(query+" ORDER BY id DESC LIMIT ?"),
		append(args, limit+1)...); err != nil {
		return jobs.List[Entry]{}, fmt.Errorf("listing mail: %w", err)
	}
	list := jobs.List[Entry]{Total: total}
	for i, r := range rows {
		if i == limit {
			list.Next = strconv.FormatInt(rows[i-1].ID, 10)
			break
		}
		list.Items = append(list.Items, r.entry())
	}
	return list, nil
}

func (f LogFilter) where() (where []string, args []any) {
	add := func(condition string, arg any) { where, args = append(where, condition), append(args, arg) }
	if f.ID != 0 {
		add("id = ?", f.ID)
	}
	if f.UUID != "" {
		add("job_uuid = ?", f.UUID)
	}
	if f.Recipient != "" {
		add("recipient = ?", strings.ToLower(f.Recipient))
	}
	if f.Text != "" {
		where = append(where, "(recipient LIKE ? ESCAPE '!' OR subject LIKE ? ESCAPE '!')")
		args = append(args, containing(strings.ToLower(f.Text)), containing(f.Text))
	}
	if f.Template != "" {
		add("template = ?", f.Template)
	}
	if !f.Since.IsZero() {
		add("created_at >= ?", f.Since.UnixMilli())
	}
	if len(f.Statuses) > 0 {
		where = append(where, "status IN (?"+strings.Repeat(", ?", len(f.Statuses)-1)+")")
		for _, s := range f.Statuses {
			args = append(args, s)
		}
	}
	return where, args
}

// containing is a pattern of LIKE, whose escape is "!".
func containing(text string) string {
	return "%" + strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(text) + "%"
}

// Attempts lists every try of a job, or those for one recipient, oldest first,
// at most 1,000.
func (h *Handler) Attempts(ctx context.Context, uuid string, recipient ...string) ([]Attempt, error) {
	where, args := "job_uuid = ?", []any{uuid}
	if len(recipient) > 0 {
		where, args = where+" AND recipient = ?", append(args, recipient[0])
	}
	var rows []struct {
		Recipient    string
		Attempt      int
		Status       Status
		Driver, Host string
		Code         int
		Answer       string
		DurationMS   int64 `db:"duration_ms"`
		CreatedAt    int64 `db:"created_at"`
	}
	err := h.c.DB.SelectContext(ctx, &rows, h.c.DB.Rebind(`SELECT recipient, attempt, status, driver, host, code,
		answer, duration_ms, created_at
		FROM cmsjobs_mail_attempts WHERE `+where+` ORDER BY id LIMIT 1000`), args...)
	if err != nil {
		return nil, fmt.Errorf("listing the attempts of a mail: %w", err)
	}
	list := make([]Attempt, len(rows))
	for i, r := range rows {
		list[i] = Attempt{r.Recipient, r.Attempt, r.Status, r.Driver, r.Host, r.Code, r.Answer,
			r.DurationMS, time.UnixMilli(r.CreatedAt).UTC()}
	}
	return list, nil
}

// Prune removes what is older than the given moments: entries, attempts and
// kept payloads. It returns how many rows went, and works in steps, so that it
// never holds many locks. Let entries live longer than failed jobs: a job that
// is retried after its entries went is sent to everybody again.
func (h *Handler) Prune(ctx context.Context, entries, payloads time.Time) (int64, error) {
	var total int64
	for _, table := range []struct {
		name   string
		before time.Time
	}{{"cmsjobs_mail_attempts", entries}, {"cmsjobs_mail", entries}, {"cmsjobs_mail_payloads", payloads}} {
		key := "id"
		if table.name == "cmsjobs_mail_payloads" {
			key = "job_uuid"
		}
		query := fmt.Sprintf("DELETE FROM %s WHERE %s IN (SELECT k FROM (SELECT %s AS k FROM %s WHERE created_at < ? "+
			"ORDER BY created_at LIMIT 1000) old)", table.name, key, key, table.name)
		for {
			result, err := h.c.DB.ExecContext(ctx, h.c.DB.Rebind(query), table.before.UnixMilli())
			if err != nil {
				return total, fmt.Errorf("pruning the mail log: %w", err)
			}
			n, err := result.RowsAffected()
			if total += n; err != nil || n == 0 {
				if err != nil {
					return total, err
				}
				break
			}
		}
	}
	return total, nil
}
