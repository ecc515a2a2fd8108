package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// ending is a settlement on its way into the tables.
type ending struct {
	*jobs.Settlement
	index int  // in the caller's list
	bare  bool // without what the database may have refused
}

// errShort says that fewer rows than named were still held: the transaction is
// undone and split, until those that were lost stand alone.
var errShort = errors.New("a lease in the batch is lost")

// Settle implements jobs.Source. It writes many ends in one transaction. A
// settlement whose lease is lost gets ErrLeaseLost and does not keep the
// others from being written, nor does one whose data the database refuses: it
// is written without them. After an error, what had been written stays
// written: settling the same again is harmless.
func (s *Store) Settle(ctx context.Context, settlements []jobs.Settlement) ([]error, error) {
	results := make([]error, len(settlements))
	ends := make([]ending, len(settlements))
	for i := range settlements {
		ends[i] = ending{Settlement: checked(&settlements[i]), index: i}
	}
	for batch := range slices.Chunk(ends, s.maxBatch) {
		if err := s.settle(ctx, batch, results, nil); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// checked turns a completion whose follow-ups cannot be enqueued into a
// failure: they would otherwise be lost without a word.
func checked(x *jobs.Settlement) *jobs.Settlement {
	if len(x.FollowUps) == 0 {
		return x
	}
	y := *x
	if y.Verdict != jobs.Completed {
		y.FollowUps = nil
	}
	for _, n := range y.FollowUps {
		if err := n.Check(); err != nil {
			y.Verdict, y.FollowUps = jobs.Buried, nil
			y.Error = "the job was done, but a job that should follow it is refused: " + err.Error()
			break
		}
	}
	return &y
}

// settle writes ends, and claims n in the same transaction where it is not nil.
func (s *Store) settle(ctx context.Context, ends []ending, results []error, n *next) error {
	ends, err := s.withoutSettled(ctx, ends)
	if err != nil || len(ends) == 0 {
		return err
	}
	err = s.settleTogether(ctx, ends, results, n)
	switch {
	case err == nil:
		s.forget(ends)
		s.wakeFor(ends)
		return nil
	case refusal(err):
		if n != nil {
			n.won = false
		}
		if len(ends) == 1 {
			return s.settlePlainer(ctx, ends[0], results, err)
		}
	case !errors.Is(err, errShort):
		s.remember(ends)
		return err
	case len(ends) == 1:
		if err := s.lost(ctx, ends[0], results); err != nil {
			return err
		}
		s.forget(ends)
		return nil
	}
	half := len(ends) / 2
	if err := s.settle(ctx, ends[:half], results, nil); err != nil {
		return err
	}
	return s.settle(ctx, ends[half:], results, nil)
}

// remember notes that it is not known whether these ends were written.
func (s *Store) remember(ends []ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range ends {
		s.unclear[leaseName(e.Claimed.Lease)] = true
	}
}

func (s *Store) forget(ends []ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unclear)+len(s.tried) == 0 {
		return
	}
	for _, e := range ends {
		delete(s.unclear, leaseName(e.Claimed.Lease))
		delete(s.tried, e.Claimed.Lease.ID)
	}
}

// leaseName names a lease over all claims.
func leaseName(l jobs.Lease) string {
	return fmt.Sprintf("%s.%d", randomPart(tokenOf(l)), l.ID)
}

// withoutSettled leaves out ends that an earlier call wrote though its answer
// was lost: the history knows their lease.
func (s *Store) withoutSettled(ctx context.Context, ends []ending) ([]ending, error) {
	s.mu.Lock()
	repeated := len(s.unclear) > 0 && slices.ContainsFunc(ends, func(e ending) bool { return s.unclear[leaseName(e.Claimed.Lease)] })
	s.mu.Unlock()
	if !repeated {
		return ends, nil
	}
	var left []ending
	for _, e := range ends {
		written, err := s.written(ctx, e)
		if err != nil {
			return nil, err
		}
		if written {
			s.forget([]ending{e})
		} else {
			left = append(left, e)
		}
	}
	return left, nil
}

// written asks the history whether it knows the end's lease.
func (s *Store) written(ctx context.Context, e ending) (bool, error) {
	var n int
	found, err := s.one(ctx, s.ownDB, []any{&n}, "SELECT 1 FROM cmsjobs_runs WHERE uuid = ? AND job_id = ? AND lease = ?",
		e.Claimed.Job.UUID, e.Claimed.Lease.ID, randomPart(tokenOf(e.Claimed.Lease)))
	if err != nil {
		return false, fmt.Errorf("asking whether jobs were settled: %w", err)
	}
	return found, nil
}

// lost notes that the end's lease does not hold any more: ErrLeaseLost, unless
// it is this very end that was written before. Whoever settles it again may be
// another process than the one that did not hear the answer.
func (s *Store) lost(ctx context.Context, e ending, results []error) error {
	written, err := s.written(ctx, e)
	if err == nil && !written {
		results[e.index] = jobs.ErrLeaseLost
	}
	return err
}

// write is the transaction. What needs the lease comes first.
func (s *Store) write(ctx context.Context, t tx, ends []ending) error {
	if err := s.bury(ctx, t, ends); err != nil {
		return err
	}
	if err := s.removeAndGiveBack(ctx, t, ends); err != nil {
		return err
	}
	for _, step := range []func(context.Context, Tx, []ending) error{s.recordRuns, s.freePlaces, s.freeKeys, s.storeLines, s.dropCancels} {
		if err := step(ctx, t.own, ends); err != nil {
			return err
		}
	}
	for _, e := range ends {
		if len(e.FollowUps) > 0 {
			if _, err := s.insertAll(ctx, t, e.FollowUps); err != nil {
				return fmt.Errorf("enqueuing what follows %s: %w", e.Claimed.Job.Kind, err)
			}
		}
	}
	return nil
}

// change is one statement on leases that share their condition.
type change struct {
	verb string // "DELETE FROM t" or "UPDATE t SET …"
	args []any
	cond string
	more []any
	ids  []int64
}

// alike are ends that one statement can write.
type alike struct {
	verdict     jobs.Verdict
	twin        bool
	delay       time.Duration
	failure     string
	attempt     int
	since, also int64 // what reserved_at may be
	token       string
}

// changes sorts ends and their twins into as few statements as can be. Each
// locks in the order of ids, the one order for all.
func (s *Store) changes(ends []ending) []*change {
	groups := map[alike]*change{}
	var list []*change
	add := func(e ending, l jobs.Lease, twin bool) {
		key := alike{verdict: e.Verdict, twin: twin, delay: e.Delay, attempt: l.Attempt, since: l.ReservedAt, also: s.triedRenewal(l.ID)}
		if e.Verdict == jobs.Retried {
			key.failure = e.Error
		}
		if s.t.kind() == Extended {
			key.token = tokenOf(l)
		}
		g := groups[key]
		if g == nil {
			g = &change{}
			g.verb, g.args = s.endOf(*e.Settlement, twin)
			g.cond, g.more = s.t.guard(l, key.also)
			groups[key], list = g, append(list, g)
		}
		g.ids = append(g.ids, l.ID)
	}
	for _, e := range ends {
		add(e, e.Claimed.Lease, false)
		for _, twin := range e.Claimed.Twins {
			add(e, twin, true)
		}
	}
	for _, g := range list {
		slices.Sort(g.ids)
	}
	return list
}

// statement is the change as SQL.
func (g *change) statement(d dialect) (string, []any) {
	in, inArgs := d.rows(g.ids)
	return g.verb + " WHERE " + in + " AND " + g.cond, slices.Concat(g.args, inArgs, g.more)
}

// removeAndGiveBack deletes the rows of jobs that ended and gives back the
// others.
func (s *Store) removeAndGiveBack(ctx context.Context, t tx, ends []ending) error {
	for _, g := range s.changes(ends) {
		statement, args := g.statement(s.d)
		n, err := s.exec(ctx, t.main, statement, args...)
		if err != nil {
			return err
		}
		if n != int64(len(g.ids)) {
			return errShort
		}
	}
	return nil
}

// endOf says what becomes of a row. A twin that is not done is given back as it
// was: not charged, not delayed.
func (s *Store) endOf(e jobs.Settlement, twin bool) (string, []any) {
	t := s.t.shape()
	switch e.Verdict {
	case jobs.Retried, jobs.Released:
		due := ""
		if !twin && (e.Delay > 0 || e.Verdict == jobs.Retried) {
			due = s.now() + fmt.Sprintf(" + %d", seconds(e.Delay))
		}
		if twin {
			e.Verdict = jobs.Released
		}
		set, args := s.t.giveBack(due, e, e.Verdict == jobs.Released)
		return "UPDATE " + t.name + " SET " + set, args
	}
	return "DELETE FROM " + t.name, nil
}

// seconds rounds up: nothing runs early.
func seconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

func (s *Store) triedRenewal(id int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tried[id]
}

// freeKeys ends unique keys with their jobs. A retried or released job keeps
// its key.
func (s *Store) freeKeys(ctx context.Context, q Tx, ends []ending) error {
	gone := idsOf(ends, func(e ending) bool { return e.gone() })
	if len(gone) == 0 {
		return nil
	}
	// A key is committed with its job, so one that is not there now is none of
	// these jobs'. Mostly there are none at all.
	var one int
	if found, err := s.one(ctx, q, []any{&one}, "SELECT 1 FROM cmsjobs_unique LIMIT 1"); err != nil || !found {
		return err
	}
	in, args := s.d.in("job_id", gone)
	if _, err := s.exec(ctx, q, "DELETE FROM cmsjobs_unique WHERE "+in, args...); err != nil {
		return fmt.Errorf("freeing unique keys: %w", err)
	}
	return nil
}

// gone says that the job's row is deleted.
func (e ending) gone() bool { return e.Verdict != jobs.Retried && e.Verdict != jobs.Released }

// idsOf lists the row numbers of ends, twins included.
func idsOf(ends []ending, which func(ending) bool) []int64 {
	var list []int64
	for _, e := range ends {
		if !which(e) {
			continue
		}
		list = append(list, e.Claimed.Lease.ID)
		for _, twin := range e.Claimed.Twins {
			list = append(list, twin.ID)
		}
	}
	return list
}

// dropCancels removes orders to cancel jobs that have ended.
func (s *Store) dropCancels(ctx context.Context, q Tx, ends []ending) error {
	var uuids []string
	for _, e := range ends {
		if e.Verdict == jobs.Cancelled {
			uuids = append(uuids, e.Claimed.Job.UUID)
		}
	}
	if len(uuids) == 0 {
		return nil
	}
	in, args := inWords("uuid", uuids)
	_, err := s.exec(ctx, q, "DELETE FROM cmsjobs_cancels WHERE "+in, args...)
	return err
}

// wakeFor tells waiting workers about follow-ups.
func (s *Store) wakeFor(ends []ending) {
	for _, e := range ends {
		s.wake(e.FollowUps)
	}
}

// firstLine is the message of an error text.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
