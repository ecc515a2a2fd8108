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

const (
	// A look reads at most so many rows of a table; the next one goes on.
	perBatch, perLook = 200, 2000
	// settle leaves the newest seconds to the next look: their rows may not be
	// committed yet, and times have whole seconds.
	settle = 5 * time.Second
	// share is what part of the time a table may be read: a look that took a
	// second, where there is no index, is not repeated for a hundred.
	share = 100
	// overdue is how long after its date a draft is still published: older ones
	// were left by somebody for a reason, or are from before this service.
	overdue = 24 * time.Hour
)

// Watcher finds out what editors do where the CMS says nothing.
type Watcher struct {
	h    *Handler
	rest map[string]time.Time // tables that are expensive to read, until when they rest
}

// NewWatcher returns a watcher. It is not for several goroutines.
func (h *Handler) NewWatcher() *Watcher { return &Watcher{h: h, rest: map[string]time.Time{}} }

// Run looks until the context ends. Only one instance of many does at a time;
// when it ends, another may at once.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.release(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if _, err := w.Look(ctx); err != nil && ctx.Err() == nil {
			w.h.c.Logger.ErrorContext(ctx, "the CMS's content not read; the next poll continues where this one stopped",
				"event", "publish.watch_failed", "error", err)
		}
		timer.Reset(w.h.c.Every)
	}
}

// releaseTimeout bounds how long an ending watcher waits for the database.
const releaseTimeout = time.Second

// release releases the lease, so that the next instance need not wait until
// it ends by itself.
func (w *Watcher) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	h := w.h
	end := h.c.DB.Rebind("UPDATE cmsjobs_watch SET " + h.until() + " = 0 WHERE name = ? AND holder = ?")
	if _, err := h.c.DB.ExecContext(ctx, end, leaseRow, h.c.Name); err != nil {
		h.c.Logger.WarnContext(ctx, "lease of the CMS watcher not released; it expires",
			"event", "publish.release_failed", "error", err)
	}
}

// Look looks once and says how many changes it found. What fails for one model
// keeps no other from its turn.
func (w *Watcher) Look(ctx context.Context) (changes int, err error) {
	mine, err := w.h.lease(ctx)
	if err != nil || !mine {
		return 0, err
	}
	var failed []error
	for _, m := range w.h.c.Models {
		began := w.h.c.Now()
		if began.Before(w.rest[m.Name]) {
			continue
		}
		n, err := w.h.look(ctx, m)
		changes += n
		failed = append(failed, err)
		ended := w.h.c.Now()
		w.rest[m.Name] = ended.Add(share*ended.Sub(began) - w.h.c.Every)
	}
	return changes, errors.Join(failed...)
}

func (h *Handler) look(ctx context.Context, m Model) (int, error) {
	columns, err := h.c.Site.Columns(ctx, m.Table)
	if err != nil || len(columns) == 0 {
		return 0, err
	}
	if m.DateColumn != "" && columns[m.DateColumn] == "" {
		return 0, fmt.Errorf("the CMS's table %s has no column %q for publication dates", m.Table, m.DateColumn)
	}
	if err := h.agree(ctx, m); err != nil {
		return 0, err
	}
	n, err := h.follow(ctx, m, "updated_at")
	if err != nil || !m.Scheduled {
		return n, err
	}
	// What was dated ahead and became visible while nobody watched.
	more, err := h.follow(ctx, m, "created_at")
	return n + more, err
}

// agree makes the pending publications of a model those that its rows ask for.
func (h *Handler) agree(ctx context.Context, m Model) error {
	now := h.c.Now()
	ahead, err := h.c.Site.Ahead(ctx, m.Model, m.DateColumn, now, perLook)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, e := range ahead {
		wanted[e.ID] = true
		if due := dueOf(m, e, now); due.Before(now.Add(-overdue)) {
			continue
		}
		if err := h.plan(ctx, m, e); err != nil {
			return err
		}
	}
	var known []publication
	if err := h.c.DB.SelectContext(ctx, &known, h.c.DB.Rebind("SELECT entity, due, uuid FROM cmsjobs_publications "+
		"WHERE model = ?"), m.Name); err != nil {
		return fmt.Errorf("reading pending publications: %w", err)
	}
	for _, p := range known {
		switch {
		case time.UnixMilli(p.Due).Before(now.Add(-overdue)):
			err = h.forget(ctx, m, p.Entity)
		case p.UUID != "" && !wanted[p.Entity]: // moved into the past, withdrawn or deleted
			err = h.Plan(ctx, m.Name, p.Entity)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// follow emits what changed by one of a table's times.
func (h *Handler) follow(ctx context.Context, m Model, column string) (changes int, err error) {
	zone, err := h.c.Site.Zone(ctx)
	if err != nil {
		return 0, err
	}
	now := h.c.Now()
	upTo := now.Add(-settle)
	name := m.Name + "." + column
	mark, err := h.mark(ctx, name)
	if err != nil {
		return 0, err
	}
	// The first look begins now: the past is not news. A wall clock that was set
	// back (daylight saving) begins again where it stands.
	if edge := cms.MarkAt(upTo, zone); mark.Wall == "" || mark.Wall > edge.Wall {
		return 0, h.setMark(ctx, name, edge)
	}
	for changes < perLook {
		list, next, err := h.c.Site.Changed(ctx, m.Model, column, mark, upTo, perBatch)
		if err != nil || len(list) == 0 {
			return changes, err
		}
		n, err := h.emit(ctx, m, column, list, now)
		if err != nil {
			return changes, err
		}
		if err := h.setMark(ctx, name, next); err != nil {
			return changes, err
		}
		changes, mark = changes+n, next
		if len(list) < perBatch {
			break
		}
	}
	return changes, nil
}

// emit enqueues what a batch of changes causes. Rows whose moment has a job of
// its own are left to it.
func (h *Handler) emit(ctx context.Context, m Model, column string, list []cms.Entry, now time.Time) (int, error) {
	var changes []Change
	for _, e := range list {
		if column == "created_at" {
			p, there, err := h.pending(ctx, m, e.ID)
			if err != nil {
				return 0, err
			}
			if there && p.Due == e.Created.UnixMilli() || !e.Updated.Before(e.Created) {
				continue // its job tells, or its updated_at did
			}
		}
		changes = append(changes, h.change(m, e, now))
	}
	if len(changes) == 0 {
		return 0, nil
	}
	next, err := h.c.Effects(ctx, changes)
	if err != nil {
		return 0, fmt.Errorf("naming what changes of %s cause: %w", m.Name, err)
	}
	if len(next) > 0 {
		if _, err := h.c.Queue.Enqueue(ctx, next...); err != nil {
			return 0, fmt.Errorf("enqueuing what changes of %s cause: %w", m.Name, err)
		}
	}
	return len(changes), nil
}

// leaseRow is the row of cmsjobs_watch that says who watches.
const leaseRow = "lease"

// lease says whether this instance watches. It holds for three looks; a holder
// that died is followed by another. Two holders, where clocks differ wildly,
// do the same work twice and no harm.
func (h *Handler) lease(ctx context.Context) (bool, error) {
	if err := h.row(ctx, leaseRow); err != nil {
		return false, err
	}
	now := h.c.Now()
	until := h.until()
	r, err := h.c.DB.ExecContext(ctx, h.c.DB.Rebind("UPDATE cmsjobs_watch SET holder = ?, "+until+
		" = ? WHERE name = ? AND (holder = ? OR "+until+" < ?)"),
		h.c.Name, now.Add(3*h.c.Every).UnixMilli(), leaseRow, h.c.Name, now.UnixMilli())
	if err != nil {
		return false, fmt.Errorf("taking the watch: %w", err)
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// until is the column of the lease's end; quoted, as TiDB keeps the word for
// itself.
func (h *Handler) until() string { return database.Of(h.c.DB).Ident("until") }

// row makes a row of cmsjobs_watch unless it is there.
func (h *Handler) row(ctx context.Context, name string) error {
	insert := database.Of(h.c.DB).InsertIgnore("cmsjobs_watch", "name, seen, seen_id, holder, "+h.until(),
		"(?, '', '', '', 0)")
	if _, err := h.c.DB.ExecContext(ctx, h.c.DB.Rebind(insert), name); err != nil {
		return fmt.Errorf("preparing the watch: %w", err)
	}
	return nil
}

func (h *Handler) mark(ctx context.Context, name string) (m cms.ChangeCursor, err error) {
	err = h.c.DB.QueryRowContext(ctx, h.c.DB.Rebind("SELECT seen, seen_id FROM cmsjobs_watch WHERE name = ?"),
		name).Scan(&m.Wall, &m.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return cms.ChangeCursor{}, h.row(ctx, name)
	}
	if err != nil {
		return m, fmt.Errorf("reading how far %s was watched: %w", name, err)
	}
	return m, nil
}

func (h *Handler) setMark(ctx context.Context, name string, m cms.ChangeCursor) error {
	if _, err := h.c.DB.ExecContext(ctx,
		h.c.DB.Rebind("UPDATE cmsjobs_watch SET seen = ?, seen_id = ? WHERE name = ?"), m.Wall, m.ID,
		name); err != nil {
		return fmt.Errorf("noting how far %s was watched: %w", name, err)
	}
	return nil
}
