package mail

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Reasons why an address gets no mail.
const (
	HardBounce = "hard_bounce" // there is no such mailbox
	Complaint  = "complaint"   // its owner called our mail spam
	Manual     = "manual"      // a person put it on the list
)

// Suppression is an address that gets no mail.
type Suppression struct {
	Recipient string    `json:"recipient"`
	Reason    string    `json:"reason"`
	Detail    string    `json:"detail"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	// ExpiresAt is zero for ever.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// Suppress puts an address on the list, or changes its entry. A zero expires
// is for ever.
func (h *Handler) Suppress(ctx context.Context, to, reason, detail string, expires time.Time) error {
	a, err := address.Parse(to)
	if err != nil {
		return jobs.Invalid(err)
	}
	until := int64(0)
	if !expires.IsZero() {
		until = expires.UnixMilli()
	}
	upsert := database.Of(h.c.DB).Upsert("cmsjobs_mail_suppressions", "recipient, reason, detail, created_at, "+
		"expires_at", "(?, ?, ?, ?, ?)",
		"recipient", "reason", "detail", "expires_at")
	_, err = h.c.DB.ExecContext(ctx, h.c.DB.Rebind(upsert), a.Key(), cut(reason, 32), cut(detail, maxAnswer),
		h.c.Now().UnixMilli(), until)
	if err != nil {
		return fmt.Errorf("suppressing an address: %w", err)
	}
	return nil
}

// Unsuppress takes an address off the list and says whether it was on it.
func (h *Handler) Unsuppress(ctx context.Context, to string) (bool, error) {
	a, err := address.Parse(to)
	if err != nil {
		return false, jobs.Invalid(err)
	}
	result, err := h.c.DB.ExecContext(ctx, h.c.DB.Rebind("DELETE FROM cmsjobs_mail_suppressions WHERE recipient = ?"),
		a.Key())
	if err != nil {
		return false, fmt.Errorf("taking an address off the suppression list: %w", err)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// Suppressions lists at most limit addresses after the one given, in order.
// Expired ones are left out.
func (h *Handler) Suppressions(ctx context.Context, after string, limit int) ([]Suppression, error) {
	var rows []suppressionRow
	err := h.c.DB.SelectContext(ctx, &rows, h.c.DB.Rebind(`SELECT recipient, reason, detail, created_at, expires_at
		FROM cmsjobs_mail_suppressions
		WHERE recipient > ? AND (expires_at = 0 OR expires_at > ?) ORDER BY recipient LIMIT ?`), after,
		h.c.Now().UnixMilli(), limit)
	if err != nil {
		return nil, fmt.Errorf("listing suppressed addresses: %w", err)
	}
	list := make([]Suppression, len(rows))
	for i, r := range rows {
		list[i] = r.suppression()
	}
	return list, nil
}

type suppressionRow struct {
	Recipient, Reason, Detail string
	CreatedAt                 int64 `db:"created_at"`
	ExpiresAt                 int64 `db:"expires_at"`
}

func (r suppressionRow) suppression() Suppression {
	s := Suppression{Recipient: r.Recipient, Reason: r.Reason, Detail: r.Detail,
		CreatedAt: time.UnixMilli(r.CreatedAt).UTC()}
	if r.ExpiresAt > 0 {
		s.ExpiresAt = time.UnixMilli(r.ExpiresAt).UTC()
	}
	return s
}

// suppressed finds which of the recipients are on the list.
func (h *Handler) suppressed(ctx context.Context, list []address.Address) ([]outcome, error) {
	var found []outcome
	err := inChunks(list, func(part []address.Address) error {
		byKey := map[string]address.Address{}
		keys := make([]string, len(part))
		for i, a := range part {
			keys[i], byKey[a.Key()] = a.Key(), a
		}
		query, args, err := sqlx.In(`SELECT recipient, reason, detail FROM cmsjobs_mail_suppressions WHERE recipient IN
			(?) AND (expires_at = 0 OR expires_at > ?)`,
			keys, h.c.Now().UnixMilli())
		if err != nil {
			return err
		}
		var rows []suppressionRow
		if err := h.c.DB.SelectContext(ctx, &rows, h.c.DB.Rebind(query), args...); err != nil {
			return fmt.Errorf("reading the suppression list: %w", err)
		}
		for _, r := range rows {
			found = append(found, outcome{to: byKey[r.Recipient], status: Suppressed,
				answer: "on the suppression list (" + r.Reason + "): " + r.Detail})
		}
		return nil
	})
	return found, err
}

// afterwards does what follows from the server's answers. The mail is sent and
// written down by then: trouble here is logged and fails nothing.
func (h *Handler) afterwards(ctx context.Context, d *delivery, g group, outcomes []outcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	var trouble []error
	for _, o := range outcomes {
		if o.hard {
			trouble = append(trouble, h.Suppress(ctx, o.to.Mailbox, HardBounce, o.answer,
				h.c.Now().Add(h.c.HardBounceExpiry)))
		}
	}
	if first := !d.logged[g.id] && slices.ContainsFunc(outcomes, func(o outcome) bool {
		return o.status == Accepted
	}); first && h.c.EmailLogs {
		d.logged[g.id] = true // one row a message, however many transactions it takes
		trouble = append(trouble, h.c.Site.LogEmail(ctx, d.letter.cmsLog(g, h.c.Now())))
	}
	if err := errors.Join(trouble...); err != nil {
		h.c.Logger.WarnContext(ctx, "mail sent, but its log entry is incomplete", "event", "mail.log_failed",
			"uuid", d.job.UUID, "error", err)
	}
}
