package conditions

import (
	"context"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// lasts says whether a lasting condition was seen for long enough.
func (e *Evaluator) lasts(ctx context.Context, l *look, d Definition, r reading, row *row) bool {
	pending := row.PendingSince
	switch {
	case r.holds && pending == 0:
		pending = l.now.UnixMilli()
	case !r.holds:
		pending = 0
	}
	if pending != row.PendingSince && e.c.Process != nil {
		if _, err := e.change(ctx, "UPDATE cmsjobs_conditions SET pending_since = ? WHERE name = ? AND pending_since "+
			"= ?", pending, d.Name, row.PendingSince); err != nil {
			e.warnUnwritten(d.Name, err)
		}
	}
	return r.holds && l.now.Sub(time.UnixMilli(pending)) >= d.Limit.Duration()
}

// change is one compare-and-set; won says that this process made it.
func (e *Evaluator) change(ctx context.Context, statement string, args ...any) (won bool, err error) {
	result, err := e.c.DB.ExecContext(ctx, e.c.DB.Rebind(statement), args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// write writes down what changed, and notifies of it.
func (e *Evaluator) write(ctx context.Context, l *look, d Definition, s State, row *row) {
	err := e.writeChange(ctx, l, d, s, row)
	if err == nil {
		delete(e.untold, d.Name)
		delete(e.unwritten, d.Name)
		return
	}
	e.warnUnwritten(d.Name, err)
	if s.Active && !row.Active {
		row.ChangedAt = e.direct(d, reading{holds: true, detail: s.Detail}).UnixMilli()
	}
}

// warnUnwritten says once that a condition cannot be written down, until it can
// be again: a full disk lasts for hours and is measured every 20 seconds.
func (e *Evaluator) warnUnwritten(name string, err error) {
	if !e.unwritten[name] {
		e.c.Logger.Warn("condition not written", "event", "condition.write_failed", "condition", name, "error", err)
	}
	e.unwritten[name] = true
}

// writeChange writes that a condition began, ended, or was seen again.
func (e *Evaluator) writeChange(ctx context.Context, l *look, d Definition, s State, row *row) error {
	was := e.untold[d.Name]
	switch {
	case s.Active && row.Active:
		return e.seen(ctx, l, d, s, row)
	case s.Active:
		return e.begin(ctx, l, d, s, row, was)
	case row.Active:
		return e.end(ctx, l, d, row)
	case was != nil: // it came and went while nothing could be written
		err := e.begin(ctx, l, d, State{Definition: d, Active: true, Detail: was.detail}, row, was)
		if err == nil && row.Active {
			err = e.end(ctx, l, d, row)
		}
		return err
	}
	return nil
}

// seen writes, once in an interval, that a condition still holds; a local one's
// own process does, or another where that is silent.
func (e *Evaluator) seen(ctx context.Context, l *look, d Definition, s State, row *row) error {
	mine := !d.Local || row.SeenBy == e.id() || !row.fresh(l.now, e.c.Every)
	if !mine || l.now.Sub(time.UnixMilli(row.SeenAt)) < e.c.Every {
		return nil
	}
	_, err := e.change(ctx, "UPDATE cmsjobs_conditions SET seen_at = ?, seen_by = ?, detail = ? WHERE name = ? AND "+
		"active = 1", l.now.UnixMilli(), e.id(), s.Detail, d.Name)
	return err
}

// begin and end count only what was measured after the last change: a slow
// evaluation must not undo what a later one found.
func (e *Evaluator) begin(ctx context.Context, l *look, d Definition, s State, row *row, was *untold) error {
	at := l.now
	if was != nil {
		at = was.since
	}
	won, err := e.change(ctx, "UPDATE cmsjobs_conditions SET active = 1, changed_at = ?, seen_at = ?, seen_by = ?, "+
		"detail = ? WHERE name = ? AND active = 0 AND changed_at <= ?",
		at.UnixMilli(), l.now.UnixMilli(), e.id(), s.Detail, d.Name, l.now.UnixMilli())
	if err != nil {
		return err
	}
	if !won { // another process wrote a change since this evaluation began
		return nil
	}
	row.Active, row.ChangedAt, row.SeenAt, row.SeenBy, row.Detail = true, at.UnixMilli(), l.now.UnixMilli(), e.id(),
		s.Detail
	e.notify(Change{Definition: d, Began: true, At: at, Since: at, Detail: s.Detail, Told: was != nil && was.told,
		Unattended: l.unattended(ctx)})
	return nil
}

// end ends a condition. One that is local to another process ends only when
// that process no longer says that it sees it.
func (e *Evaluator) end(ctx context.Context, l *look, d Definition, row *row) error {
	if d.Local && row.SeenBy != e.id() && row.fresh(l.now, e.c.Every) {
		return nil
	}
	won, err := e.change(ctx, "UPDATE cmsjobs_conditions SET active = 0, changed_at = ?, seen_at = ? WHERE name = ? "+
		"AND active = 1 AND seen_by = ? AND changed_at <= ?",
		l.now.UnixMilli(), l.now.UnixMilli(), d.Name, row.SeenBy, l.now.UnixMilli())
	if err != nil {
		return err
	}
	began := row.changed()
	if won {
		row.Active, row.ChangedAt = false, l.now.UnixMilli()
		e.notify(Change{Definition: d, At: l.now, Since: began, Detail: row.Detail, Unattended: l.unattended(ctx)})
	}
	return nil
}

// notify tells of a change that is written down. It is tried once: what is
// lost with a process that dies at this moment is still in the state.
func (e *Evaluator) notify(c Change) {
	if c.Began {
		e.c.Logger.Warn("condition began", "event", "condition.began",
			"condition", c.Name, "severity", c.Severity, "detail", c.Detail)
	} else {
		e.c.Logger.Info("condition ended", "event", "condition.ended",
			"condition", c.Name, "severity", c.Severity, "lasted_s", int(c.At.Sub(c.Since).Seconds()))
	}
	e.outbox = append(e.outbox, message{Change: c})
}

// deliveryTime bounds telling of one change.
const deliveryTime = 30 * time.Second

// deliver tells of all changes since the last time. It is not part of an
// evaluation: a slow chat must not hold up a probe.
func (e *Evaluator) deliver(ctx context.Context) {
	e.mu.Lock()
	outbox := e.outbox
	e.outbox = nil
	e.mu.Unlock()
	for _, m := range outbox {
		call, cancel := context.WithTimeout(ctx, deliveryTime)
		e.deliverOne(call, m)
		cancel()
	}
}

func (e *Evaluator) deliverOne(ctx context.Context, m message) {
	var err error
	if !m.direct {
		if err = e.c.Notify(ctx, m.Change); err == nil {
			return
		}
		e.c.Logger.Error("condition not sent to anyone", "event", "condition.notify_failed",
			"condition", m.Name, "error", err)
	}
	if e.c.Direct == nil || m.Told {
		return
	}
	if err = e.c.Direct(ctx, m.Change); err != nil {
		e.c.Logger.Error("condition not sent to any chat", "event", "condition.notify_failed",
			"condition", m.Name, "error", err)
	}
}

// directAfter is how long a condition must hold that only this process knows
// of, before chats are notified: a restart of the server is none.
const directAfter = 30 * time.Second

// direct remembers a condition that cannot be written down and tells the chats
// of it, once. It returns since when it holds.
func (e *Evaluator) direct(d Definition, r reading) time.Time {
	if !r.holds || e.c.Process == nil {
		return time.Time{}
	}
	u := e.untold[d.Name]
	if u == nil {
		u = &untold{since: e.c.Now().UTC()}
		e.untold[d.Name] = u
	}
	u.detail = jobs.PlainText(r.detail, 900)
	if e.c.Direct == nil || u.told || e.c.Now().Sub(u.since) < min(directAfter, 3*e.c.Every) {
		return u.since
	}
	u.told = true
	e.outbox = append(e.outbox,
		message{Change{Definition: d, Began: true, At: u.since, Since: u.since, Detail: u.detail}, true})
	return u.since
}
