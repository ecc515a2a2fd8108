package mail

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/template"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Payloads encrypts the payloads of a type and decrypts them: jobs.Registry.
type Payloads interface {
	Encrypted(jobType string, data json.RawMessage) (json.RawMessage, error)
	Decrypted(jobType string, data json.RawMessage) (json.RawMessage, error)
}

// keep stores what is to be sent, so that a person can send it again.
func (h *Handler) keep(ctx context.Context, uuid string, payload json.RawMessage) (err error) {
	if h.c.Payloads != nil {
		if payload, err = h.c.Payloads.Encrypted(Send.Name, payload); err != nil {
			return fmt.Errorf("keeping the mail: %w", err)
		}
	}
	l := h.ledger
	insert := database.Of(l.db).InsertIgnore("cmsjobs_mail_payloads", "job_uuid, payload, created_at", "(?, ?, ?)")
	if _, err := l.db.ExecContext(ctx, l.db.Rebind(insert), uuid, string(payload), l.now().UnixMilli()); err != nil {
		return fmt.Errorf("keeping the mail: %w", err)
	}
	return nil
}

// ErrNotKept says that a mail's payload was not stored.
var ErrNotKept = errors.New("what this mail said was not kept (mail.keep_body), so it cannot be sent again from here")

// kept is the payload that keep stored, or ErrNotKept.
func (h *Handler) kept(ctx context.Context, uuid string) (SendPayload, error) {
	var p SendPayload
	var stored string
	l := h.ledger
	err := l.db.GetContext(ctx, &stored, l.db.Rebind("SELECT payload FROM cmsjobs_mail_payloads WHERE job_uuid = ?"),
		uuid)
	if errors.Is(err, sql.ErrNoRows) {
		return p, ErrNotKept
	}
	raw := json.RawMessage(stored)
	if err == nil && h.c.Payloads != nil {
		raw, err = h.c.Payloads.Decrypted(Send.Name, raw)
	}
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil {
		return p, fmt.Errorf("reading what the mail %s said: %w", uuid, err)
	}
	return p, nil
}

// Body is what a mail said, made again from what was kept of it: a template
// that was changed since then shows its new text. Without anything kept it is
// ErrNotKept.
func (h *Handler) Body(ctx context.Context, uuid string) (template.Content, error) {
	p, err := h.kept(ctx, uuid)
	if err != nil {
		return template.Content{}, err
	}
	settings, err := h.c.Site.Settings(ctx)
	if err != nil {
		return template.Content{}, err
	}
	return h.content(ctx, p, settings)
}

// Resend enqueues a mail again as a new job: to everybody, or to those named.
func (h *Handler) Resend(ctx context.Context, uuid string, only ...string) (jobs.Receipt, error) {
	if h.c.Enqueue == nil {
		return jobs.Receipt{}, errors.New("mail: no queue to resend through")
	}
	n, err := h.Again(ctx, uuid, only...)
	if err != nil {
		return jobs.Receipt{}, err
	}
	receipts, err := h.c.Enqueue.Enqueue(ctx, n)
	if err != nil {
		return jobs.Receipt{}, fmt.Errorf("sending a mail again: %w", err)
	}
	return receipts[0], nil
}

// Again is the job that Resend enqueues.
func (h *Handler) Again(ctx context.Context, uuid string, only ...string) (jobs.Spec, error) {
	p, err := h.kept(ctx, uuid)
	if errors.Is(err, ErrNotKept) {
		err = h.unkept(ctx, uuid)
	}
	if err != nil {
		return jobs.Spec{}, err
	}
	if len(only) > 0 {
		p.To, p.CC, p.BCC = only, nil, nil
	}
	if err := p.Validate(); err != nil {
		return jobs.Spec{}, err
	}
	return Send.New(p).WithMetadata(map[string]any{"resendOf": uuid}), nil
}

// unkept says whether a mail that was not kept was ever sent.
func (h *Handler) unkept(ctx context.Context, uuid string) error {
	var sent int
	if err := h.c.DB.GetContext(ctx, &sent, h.c.DB.Rebind("SELECT COUNT(*) FROM cmsjobs_mail WHERE job_uuid = ?"),
		uuid); err != nil {
		return fmt.Errorf("looking for the mail %s: %w", uuid, err)
	}
	if sent == 0 {
		return fmt.Errorf("no mail has the job id %.80q; see cmsjobs mail log: %w", uuid, jobs.ErrNotFound)
	}
	return ErrNotKept
}

// SendUnknown lets the next run of a job send to the recipients of whom nobody
// knows whether they got the mail, and counts them. They may get it twice.
// Retry the failed job afterwards.
func (h *Handler) SendUnknown(ctx context.Context, uuid string) (int, error) {
	result, err := h.c.DB.ExecContext(ctx, h.c.DB.Rebind("UPDATE cmsjobs_mail SET status = ?, updated_at = ? WHERE "+
		"job_uuid = ? AND status = ?"),
		Deferred, h.c.Now().UnixMilli(), uuid, Unknown)
	if err != nil {
		return 0, fmt.Errorf("marking a mail to be sent again: %w", err)
	}
	n, err := result.RowsAffected()
	return int(n), err
}
