package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

const (
	// A look reads at most so many rows that are dated ahead.
	perLook = 2000
	// settle is how long a look waits after the last call of the feed, and settleMost
	// after the first: an editor's save is several statements.
	settle, settleMost = 100 * time.Millisecond, 500 * time.Millisecond
	// beside is how much later an instance looks that does not hold the lease: the
	// one that does has then asked for what is to follow.
	beside = 500 * time.Millisecond
	// Of the time, looks may take so small a part: those that the feed calls for, and
	// those that the clock does.
	calledShare, timedShare = 20, 100
	// costUsual is what a look of a small site costs at most.
	costUsual = 5 * time.Millisecond
	// watchedFor is how long a feed is trusted after it said that it works.
	watchedFor = 12 * time.Second
	// nightly is how much rarer looks without a feed are at night.
	nightly = 5
	// afterFailure is the wait after a look that failed.
	afterFailure = 5 * time.Second
	// overdue is how long after its date a draft is still published: older ones
	// were left by somebody for a reason, or are from before this service.
	overdue = 24 * time.Hour
)

// Calls are what the change feed tells a watcher. Nil channels tell nothing.
type Calls struct {
	// Changed receives when content may have changed.
	Changed <-chan struct{}
	// Rows takes the rows that calls have named, each TABLE:ID; nil: none do.
	Rows func() []string
	// Watched receives, every few seconds, while a feed works that sees each change.
	Watched <-chan struct{}
}

// Watcher finds out what editors do where the CMS says nothing.
type Watcher struct {
	h     *Handler
	calls Calls

	holder      bool          // this instance has the lease
	pace        pace          // of renewals
	asked       string        // the content whose renewal was enqueued last
	first, last time.Time     // calls of the feed that no look has answered; zero: none
	free        time.Time     // no look for a call before it: see pace
	full, probe time.Time     // the next look with the lease, and without
	watched     time.Time     // when the feed last said that it works
	missed      bool          // a look found what the feed had not told
	cost        time.Duration // of the last look
	failing     bool          // the log says so
}

// NewWatcher returns a watcher. It is not for several goroutines.
func (h *Handler) NewWatcher(calls Calls) *Watcher { return &Watcher{h: h, calls: calls} }

// Run looks until the context ends: when the feed calls, every Probe where no feed
// works, and every Every in any case. Of several instances one looks by the clock;
// when it ends, another may at once.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.release(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.calls.Changed:
			w.last = w.h.c.Now()
			if w.first.IsZero() {
				w.first = w.last
			}
		case <-w.calls.Watched:
			w.watched = w.h.c.Now()
		case <-timer.C:
			w.turn(ctx)
		}
		timer.Reset(w.next(w.h.c.Now()))
	}
}

// next is how long to wait for the next look.
func (w *Watcher) next(now time.Time) time.Duration {
	at := w.full
	if due := w.due(); !w.first.IsZero() && due.Before(at) {
		at = due
	}
	if w.probing(now) && w.probe.Before(at) {
		at = w.probe
	}
	return max(0, at.Sub(now))
}

// due is when the feed's calls are answered.
func (w *Watcher) due() time.Time {
	at := w.last.Add(settle)
	if most := w.first.Add(settleMost); most.Before(at) {
		at = most
	}
	if !w.holder {
		at = at.Add(beside)
	}
	return later(at, w.free)
}

// probing says that nobody else tells this instance of changes.
func (w *Watcher) probing(now time.Time) bool {
	return w.holder && w.h.c.Probe > 0 && (w.missed || now.Sub(w.watched) > watchedFor)
}

// turn makes the look that is due.
func (w *Watcher) turn(ctx context.Context) {
	began := w.h.c.Now()
	called := !w.first.IsZero()
	full := !began.Before(w.full)
	if !full && !(called && !began.Before(w.due())) && !w.probing(began) {
		return
	}
	var changed bool
	var err error
	if called {
		w.edited(ctx)
	}
	switch {
	case full:
		changed, err = w.Look(ctx)
	case called:
		changed, err = w.look(ctx)
	default:
		changed, err = w.renew(ctx)
	}
	w.note(ctx, err)
	ended := w.h.c.Now()
	w.plan(began, ended, full, err != nil)
	if changed {
		w.missed = !called && began.Sub(w.watched) <= watchedFor
		next := w.pace.renewed(ended)
		w.free, w.probe = later(w.free, next), later(w.probe, next)
	}
}

// edited renews the pages of the rows that the feed named, before the whole site is
// compared. It is only sooner: what fails here, or has no such page any more, is found by
// the comparison.
func (w *Watcher) edited(ctx context.Context) {
	if w.calls.Rows == nil {
		return
	}
	rows := w.calls.Rows()
	if !w.holder || len(rows) == 0 || w.h.c.Edited == nil {
		return
	}
	next, err := w.h.c.Edited(ctx, rows)
	if err == nil && len(next) > 0 {
		_, err = w.h.c.Queue.Enqueue(ctx, next...)
	}
	if err != nil {
		w.h.c.Logger.DebugContext(ctx, "pages of edited rows not renewed; the comparison of the site finds them",
			"event", "publish.rows_failed", "error", err)
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// plan sets the times of the next looks after one.
func (w *Watcher) plan(began, ended time.Time, full, failed bool) {
	// The first look, or one on a busy machine, takes longer than looks do: only one that
	// follows another as long counts in full.
	took, c := min(ended.Sub(began), 2*max(w.cost, costUsual)), w.h.c
	w.cost = took
	w.free, w.probe = ended.Add(calledShare*took), ended.Add(max(c.Probe, timedShare*took))
	if c.Night != nil && c.Night(ended) {
		w.probe = ended.Add(max(nightly*c.Probe, timedShare*took))
	}
	if full {
		w.full = ended.Add(max(c.Every, timedShare*took))
	}
	if failed { // what the feed said is not answered
		w.free, w.probe = ended.Add(afterFailure), ended.Add(max(c.Probe, afterFailure))
		return
	}
	w.first = time.Time{}
}

// note logs that looks fail, once until they succeed again.
func (w *Watcher) note(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil && !w.failing {
		w.h.c.Logger.ErrorContext(ctx, "the CMS's content not read; it is looked at again until it can be",
			"event", "publish.watch_failed", "error", err)
	}
	w.failing = err != nil
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

// Look looks at everything if this instance holds the lease, or gets it, and says
// whether the content changed.
func (w *Watcher) Look(ctx context.Context) (changed bool, err error) {
	if w.holder, err = w.h.lease(ctx); err != nil || !w.holder {
		return false, err
	}
	return w.look(ctx)
}

// look plans what is dated ahead, and renews what shows the content. What fails for
// one model keeps no other from its turn.
func (w *Watcher) look(ctx context.Context) (changed bool, err error) {
	var failed []error
	for _, m := range w.h.c.Models {
		failed = append(failed, w.h.agree(ctx, m))
	}
	changed, err = w.renew(ctx)
	return changed, errors.Join(append(failed, err)...)
}

// renew asks for the renewal of what shows the content, once for each change. It asks
// after it has looked: a crash between repeats and loses nothing.
func (w *Watcher) renew(ctx context.Context) (changed bool, err error) {
	c := w.h.c
	if c.Outdated == nil {
		return false, nil
	}
	content, next, err := c.Outdated(ctx)
	if err != nil {
		return false, fmt.Errorf("comparing the content with what shows it: %w", err)
	}
	if len(next) == 0 {
		w.asked = ""
		return false, nil
	}
	if content == w.asked {
		return false, nil
	}
	if _, err := c.Queue.Enqueue(ctx, next...); err != nil {
		return false, fmt.Errorf("enqueuing what a change of content causes: %w", err)
	}
	c.Logger.InfoContext(ctx, "content changed", "event", "publish.content_changed", "next", next[0].Type)
	w.asked = content
	return true, nil
}

// agree makes the pending publications of a model those that its rows ask for.
func (h *Handler) agree(ctx context.Context, m Model) error {
	columns, err := h.c.Site.Columns(ctx, m.Table)
	if err != nil || len(columns) == 0 {
		return err
	}
	if m.DateColumn != "" && columns[m.DateColumn] == "" {
		return fmt.Errorf("the CMS's table %s has no column %q for publication dates", m.Table, m.DateColumn)
	}
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
	insert := database.Of(h.c.DB).InsertIgnore("cmsjobs_watch", "name, holder, "+h.until(), "(?, '', 0)")
	if _, err := h.c.DB.ExecContext(ctx, h.c.DB.Rebind(insert), name); err != nil {
		return fmt.Errorf("preparing the watch: %w", err)
	}
	return nil
}
