package restore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/lock"
)

// Settled is a restore that was brought to its end.
type Settled struct {
	Backup string `json:"backup"`
	// Restored is true when the site is now as the backup, and false when it is as it was.
	Restored bool     `json:"restored"`
	Problems []string `json:"problems,omitempty"`
}

// How a restore that did not finish is brought to its end.
type How int

// Settle takes the nearer end: a restore that did not come to its exchange is rolled back, one
// that did is finished. Finish exchanges too, where everything is loaded. Undo only rolls back.
const (
	Settle How = iota
	Finish
	Undo
)

// Errors of a restore that did not finish.
var (
	ErrNotLoaded = errors.New("not everything was loaded when the restore stopped, so it cannot be finished: roll it " +
		"back (cmsjobs backup restore --undo) and restore again")
	ErrExchanged = errors.New("the site is already the backup's, so the restore cannot be rolled back: finish it " +
		"(cmsjobs backup restore --finish)")
)

// Settle brings restores that did not finish to their end. While a restore runs that is
// lock.ErrBusy.
func (r *Restorer) Settle(ctx context.Context, how How) ([]Settled, error) {
	found, err := r.entries(ctx)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	ctx, unlock, err := r.config.Locks.Exclusive(ctx, "the end of "+strings.TrimSuffix(found[0].String(), ","))
	if err != nil {
		return nil, err
	}
	defer unlock()
	return r.settle(ctx, how)
}

// SettleQuietly is what a start of the service and a backup do first: what goes wrong
// stays known as unfinished.
func (r *Restorer) SettleQuietly(ctx context.Context) {
	all, err := r.Settle(ctx, Settle)
	r.tell(ctx, all)
	if err != nil && !errors.Is(err, lock.ErrBusy) && ctx.Err() == nil {
		r.config.Logger.ErrorContext(ctx, "restore that did not finish not brought to its end",
			"event", "backup.restore_unfinished", "error", err)
	}
}

func (r *Restorer) tell(ctx context.Context, all []Settled) {
	for _, s := range all {
		r.config.Logger.WarnContext(ctx, "restore that did not finish brought to its end",
			"event", "backup.restore_settled", "backup", s.Backup, "restored", s.Restored, "problems", s.Problems)
	}
}

// settle does it while the exclusive lock is held.
func (r *Restorer) settle(ctx context.Context, how How) (all []Settled, err error) {
	found, err := r.entries(ctx)
	if err != nil {
		return nil, err
	}
	for i := range found {
		e := &found[i]
		s, err := r.settleOne(ctx, e, how)
		if err != nil {
			return all, fmt.Errorf("%s did not finish: %w", strings.TrimSuffix(e.String(), ","), err)
		}
		all = append(all, s)
	}
	return all, nil
}

func (r *Restorer) settleOne(ctx context.Context, e *entry, how How) (s Settled, err error) {
	s.Backup = e.Backup
	if s.Restored, err = r.happened(ctx, e); err != nil {
		return s, err
	}
	switch {
	case s.Restored && how == Undo:
		return s, tooLate(e)
	case !s.Restored && how == Finish:
		if err := r.exchangeLate(ctx, e); err != nil {
			return s, err
		}
		s.Restored = true
	case !s.Restored:
		return s, r.undo(ctx, e)
	}
	if e.Phase != published {
		if err := r.enter(ctx, e, exchanged); err != nil {
			return s, err
		}
	}
	s.Problems, err = r.finish(ctx, e)
	return s, err
}

// tooLate says that a restore cannot be rolled back any more, and what can be done.
func tooLate(e *entry) error {
	if e.detail.Safety == "" {
		return ErrExchanged
	}
	return fmt.Errorf("%w; what was there before is the backup %s", ErrExchanged, e.detail.Safety)
}

// exchangeLate exchanges what a process that died had loaded.
func (r *Restorer) exchangeLate(ctx context.Context, e *entry) error {
	p, err := r.placeOf(e)
	switch {
	case err != nil:
		return err
	case e.Phase != ready || p != nil && !p.late():
		return ErrNotLoaded
	case p == nil:
		return nil
	}
	return p.exchange(ctx)
}

// happened says whether the exchange did. It first ends what a dead process left running.
func (r *Restorer) happened(ctx context.Context, e *entry) (bool, error) {
	switch p, err := r.placeOf(e); {
	case err != nil:
		return false, err
	case e.Phase == exchanged || e.Phase == published:
		return true, nil
	case e.Phase == undoing || p == nil:
		return false, nil
	default:
		if err := p.stop(ctx); err != nil {
			return false, err
		}
		return p.exchanged(ctx)
	}
}

// finish does what follows the exchange. It may be repeated.
func (r *Restorer) finish(ctx context.Context, e *entry) (problems []string, err error) {
	p, err := r.placeOf(e)
	if err == nil && p != nil {
		problems, err = p.finish(ctx)
	}
	if e.Phase != published {
		err = errors.Join(err, r.eachSet(e, func(s stager) error { return s.Publish(ctx, e.ID) }))
	}
	if err != nil {
		return problems, fmt.Errorf("the site's tables are the backup's, but the restore did not finish. Remove the "+
			"cause and run cmsjobs backup restore --finish on %s: %w", e.Host, err)
	}
	if err := r.enter(ctx, e, published); err != nil {
		return problems, err
	}
	return problems, errors.Join(r.discard(ctx, e), r.forget(ctx, e))
}

// discard removes the folders of staged files.
func (r *Restorer) discard(ctx context.Context, e *entry) error {
	return r.eachSet(e, func(s stager) error { return s.Discard(ctx, e.ID) })
}

// undo removes what was loaded. It may be repeated.
func (r *Restorer) undo(ctx context.Context, e *entry) error {
	if err := r.enter(ctx, e, undoing); err != nil {
		return err
	}
	p, err := r.placeOf(e)
	if err == nil && p != nil {
		err = p.undo(ctx)
	}
	if err = errors.Join(err, r.discard(ctx, e)); err != nil {
		return fmt.Errorf("rolling the restore back: %w", err)
	}
	return r.forget(ctx, e)
}

// Unfinished says of a restore that does not run any more and did not come to its end
// what state the site is in; "" when there is none.
func (r *Restorer) Unfinished(ctx context.Context) (string, error) {
	text, err := r.unfinished(ctx)
	if err != nil || text == "" {
		return "", err
	}
	running, err := r.config.Locks.Busy(ctx)
	if err != nil || running {
		return "", err // perhaps it is the one that runs
	}
	return r.unfinished(ctx) // again: it may have finished just now
}

func (r *Restorer) unfinished(ctx context.Context) (string, error) {
	found, err := r.entries(ctx)
	if err != nil || len(found) == 0 {
		return "", err
	}
	e := &found[0]
	switch is, err := r.seen(ctx, e); {
	case err != nil:
		return "", err
	case !is:
		return e.String() + " stopped before it changed the site", nil
	}
	return e.String() + " stopped after it exchanged the tables: files, views, triggers or foreign keys may be " +
		"those of before", nil
}

// seen is what happened answers, without ending anything.
func (r *Restorer) seen(ctx context.Context, e *entry) (bool, error) {
	p, err := r.placeOf(e)
	known := e.Phase == exchanged || e.Phase == published
	if err != nil || p == nil || known || e.Phase == undoing {
		return known, err
	}
	return p.exchanged(ctx)
}

// Half says whether the site is between two states: its tables were exchanged and the
// rest did not follow yet. It is cheap.
func (r *Restorer) Half(ctx context.Context) (bool, error) {
	var n int
	err := r.config.DB.GetContext(ctx, &n, r.config.DB.Rebind("SELECT COUNT(*) FROM cmsjobs_backup_restores WHERE "+
		"phase "+
		"IN (?, ?)"), ready, exchanged)
	return n > 0, err
}
