package publish

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/database"
)

// Plan makes a piece of content's pending job agree with its row: one at its
// date, none where it has none. Call it when content was created, changed or
// deleted; the watcher does.
func (h *Handler) Plan(ctx context.Context, model, id string) error {
	m, err := h.model(model, "")
	if err != nil {
		return err
	}
	e, found, err := h.c.Site.Entry(ctx, m.Model, m.DateColumn, id)
	if err != nil {
		return err
	}
	if !found {
		return h.cancel(ctx, m, id)
	}
	return h.plan(ctx, m, e)
}

// plan does it for a row that was read. What was refreshed or published by its
// own job is done with.
func (h *Handler) plan(ctx context.Context, m Model, e cms.Entry) error {
	due := dueOf(m, e, h.c.Now())
	if due.IsZero() {
		return h.cancel(ctx, m, e.ID)
	}
	_, err := h.schedule(ctx, m, e.ID, due, e.Status == m.Published)
	return err
}

// dueOf is when a row is to be published: its date as a draft, or as something
// public that is dated ahead; zero when neither.
func dueOf(m Model, e cms.Entry, now time.Time) time.Time {
	switch {
	case e.Status == "draft" || e.Status == "pending":
		return e.Date
	case m.Scheduled && e.Status == m.Published && e.Created.After(now):
		return e.Created
	}
	return time.Time{}
}

// publication is a row of cmsjobs_publications. UUID is "" when it is done.
type publication struct {
	Entity string `db:"entity"`
	Due    int64  `db:"due"`
	UUID   string `db:"uuid"`
}

func (h *Handler) pending(ctx context.Context, m Model, id string) (p publication, there bool, err error) {
	err = h.c.DB.GetContext(ctx, &p, h.c.DB.Rebind("SELECT entity, due, uuid FROM cmsjobs_publications WHERE model = "+
		"? AND entity = ?"), m.Name, id)
	if errors.Is(err, sql.ErrNoRows) {
		return p, false, nil
	}
	if err != nil {
		return p, false, fmt.Errorf("reading the pending publication of %s %s: %w", m.Name, id, err)
	}
	return p, true, nil
}

// schedule sees to it that one job is pending at due. The job's unique key
// holds its date, so that several that plan the same make one job, and a job
// that is running does not keep out the one that it is moved to.
func (h *Handler) schedule(ctx context.Context, m Model, id string, due time.Time, refresh bool) (planned bool,
	err error) {
	p, there, err := h.pending(ctx, m, id)
	if err != nil || (there && p.Due == due.UnixMilli()) {
		return false, err
	}
	if there && p.UUID != "" {
		if err := h.c.Queue.CancelJob(ctx, p.UUID); err != nil {
			return false, fmt.Errorf("moving the publication of %s %s: %w", m.Name, id, err)
		}
	}
	at := due.UTC()
	job := Publish.New(Payload{Model: m.Name, ID: ID(id), At: &at, Refresh: refresh}).At(at).Unique(
		fmt.Sprintf("content.publish:%s:%s@%d", m.Name, id, at.Unix()))
	receipts, err := h.c.Queue.Enqueue(ctx, job)
	if err != nil {
		return false, fmt.Errorf("planning the publication of %s %s: %w", m.Name, id, err)
	}
	h.c.Logger.InfoContext(ctx, "publication planned", "event", "publish.planned",
		"model", m.Name, "id", id, "due", at, "uuid", receipts[0].UUID)
	return true, h.note(ctx, m, publication{id, due.UnixMilli(), receipts[0].UUID})
}

// note keeps a publication, in place of the one that was there.
func (h *Handler) note(ctx context.Context, m Model, p publication) error {
	upsert := database.Of(h.c.DB).Upsert("cmsjobs_publications", "model, entity, due, uuid", "(?, ?, ?, ?)",
		"model, entity", "due", "uuid")
	_, err := h.c.DB.ExecContext(ctx, h.c.DB.Rebind(upsert), m.Name, p.Entity, p.Due, p.UUID)
	if err != nil {
		return fmt.Errorf("noting the publication of %s %s: %w", m.Name, p.Entity, err)
	}
	return nil
}

// cancel ends a pending publication. One that is done is left: it says that its
// job has told the site already.
func (h *Handler) cancel(ctx context.Context, m Model, id string) error {
	p, there, err := h.pending(ctx, m, id)
	if err != nil || !there || p.UUID == "" {
		return err
	}
	if time.UnixMilli(p.Due).After(h.c.Now()) { // else its job is about to run, and will see for itself
		if err := h.c.Queue.CancelJob(ctx, p.UUID); err != nil {
			return fmt.Errorf("cancelling the publication of %s %s: %w", m.Name, id, err)
		}
		h.c.Logger.InfoContext(ctx, "publication cancelled", "event", "publish.cancelled",
			"model", m.Name, "id", id, "uuid", p.UUID)
		return h.forget(ctx, m, id)
	}
	return nil
}

func (h *Handler) forget(ctx context.Context, m Model, id string) error {
	_, err := h.c.DB.ExecContext(ctx, h.c.DB.Rebind("DELETE FROM cmsjobs_publications WHERE model = ? AND entity = ?"),
		m.Name, id)
	if err != nil {
		return fmt.Errorf("forgetting the publication of %s %s: %w", m.Name, id, err)
	}
	return nil
}

// done keeps the date of what was published, so that the watcher knows that it
// was notified, until it is swept away.
func (h *Handler) done(ctx context.Context, m Model, id string) error {
	_, err := h.c.DB.ExecContext(ctx, h.c.DB.Rebind("UPDATE cmsjobs_publications SET uuid = '' WHERE model = ? AND "+
		"entity = ?"), m.Name, id)
	if err != nil {
		return fmt.Errorf("noting that %s %s is published: %w", m.Name, id, err)
	}
	return nil
}
