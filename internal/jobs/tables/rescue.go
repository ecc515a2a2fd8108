package tables

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// A job whose lease has run out is taken from its worker, which is presumed
// dead, and its attempt is charged. Two things look the same and are not:
//
//   - The database was in trouble for longer than the lease: read-only, full,
//     not reachable. The worker lives, could not renew, and writes the end of
//     its run within seconds when the trouble is over.
//   - The database's clock was moved forward. Each lease seems to have run out,
//     until its worker has renewed it by the new clock.
//
// So a store rescues nothing for a while after it met either, by its own
// monotonic clock: ownersFirst after trouble, one lease after a jump.
const OwnersFirst = 5 * time.Second

// rescue is what a store knows about both.
type rescue struct {
	mu       sync.Mutex
	length   time.Duration // of leases here, as last heard
	notUntil time.Time     // of Options.Clock: nothing is rescued before
	seen     sighting
	jump     ClockJump
}

// ClockJump is a step of the database's clock against this host's monotonic
// clock.
type ClockJump struct {
	At time.Time     // when it was noticed, by this host's clock
	By time.Duration // forward, or negative: backward; a little less than the truth
}

// sighting is one look at the database's clock: its offset against ours, which
// is not known more exactly than the look took.
type sighting struct {
	least, most time.Duration
	at          time.Time
}

// ClockJump is the last jump of the database's clock by more than a third of a
// lease; zero when none was noticed.
func (s *Tables) ClockJump() ClockJump {
	s.rescue.mu.Lock()
	defer s.rescue.mu.Unlock()
	return s.rescue.jump
}

// NoteTrouble remembers that the database was in trouble, where err says so, and
// returns err.
func (s *Tables) NoteTrouble(err error) error {
	if database.Classify(err).Trouble() {
		s.rescue.mu.Lock()
		defer s.rescue.mu.Unlock()
		s.rescue.rest(s.Options.Clock(), OwnersFirst)
	}
	return err
}

// rest lets nothing be rescued for so long, or for one lease if that is less.
func (r *rescue) rest(now time.Time, length time.Duration) {
	if r.length > 0 {
		length = min(length, r.length)
	}
	if until := now.Add(length); until.After(r.notUntil) {
		r.notUntil = until
	}
}

// SetLeaseLength notes how long leases are here.
func (s *Tables) SetLeaseLength(length time.Duration) {
	s.rescue.mu.Lock()
	defer s.rescue.mu.Unlock()
	s.rescue.length = length
}

// LeaseLength is how long leases last here; 0 before the first.
func (s *Tables) LeaseLength() time.Duration {
	s.rescue.mu.Lock()
	defer s.rescue.mu.Unlock()
	return s.rescue.length
}

// sawClock compares the database's clock, read between two moments of ours and
// exact to the given resolution, with the last look at it.
// Options.Monotonic said the two moments.
func (s *Tables) sawClock(database time.Time, resolution time.Duration, before, after time.Time) {
	r := &s.rescue
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen.at.IsZero() {
		r.seen.at = before
	}
	now := sighting{at: r.seen.at,
		least: time.Duration(database.UnixNano()) - after.Sub(r.seen.at),
		most:  time.Duration(database.UnixNano()) + resolution - before.Sub(r.seen.at)}
	last := r.seen
	r.seen = now
	if last.most == 0 || r.length == 0 {
		return
	}
	by := max(now.least-last.most, 0) // forward
	if by == 0 {
		by = min(now.most-last.least, 0) // or backward
	}
	if by.Abs() <= r.length/3 {
		return
	}
	r.jump = ClockJump{At: after, By: by}
	r.rest(s.Options.Clock(), r.length)
	s.Options.Logger.Warn("the database's clock jumped; no lease counts as lost for the length of one lease", "event", "database.clock_jumped",
		"by_ms", by.Milliseconds(), "wait_ms", r.length.Milliseconds())
}

// MayRescue says whether jobs whose lease has run out may be taken now. It
// looks at the database's clock, and tries whether a line of history can be
// written: where it cannot, the ends of runs cannot either.
func (s *Tables) MayRescue(ctx context.Context) (bool, error) {
	if err := s.lookAtClock(ctx); err != nil {
		return false, s.NoteTrouble(err)
	}
	if err := s.tryWriting(ctx); err != nil {
		return false, s.NoteTrouble(err)
	}
	s.rescue.mu.Lock()
	defer s.rescue.mu.Unlock()
	return !s.Options.Clock().Before(s.rescue.notUntil), nil
}

// StartSighting begins a look at the database's clock; the function that it
// returns ends the look with what was read, exact to a resolution.
func (s *Tables) StartSighting() func(database time.Time, resolution time.Duration) {
	if s.Options.Monotonic == nil {
		return func(time.Time, time.Duration) {}
	}
	before := s.Options.Monotonic()
	return func(database time.Time, resolution time.Duration) {
		s.sawClock(database, resolution, before, s.Options.Monotonic())
	}
}

func (s *Tables) lookAtClock(ctx context.Context) error {
	var millis int64
	sighted := s.StartSighting()
	if _, err := s.QueryRow(ctx, s.DB, []any{&millis}, "SELECT "+s.MillisNow()); err != nil {
		return fmt.Errorf("asking the database's clock: %w", err)
	}
	sighted(time.UnixMilli(millis), time.Millisecond)
	return nil
}

// probeSize is so large that the line needs pages of its own: a table has free
// space inside of its pages when the disk has none.
const probeSize = 64 << 10

// tryWriting writes a line of history and undoes it.
func (s *Tables) tryWriting(ctx context.Context) error {
	t, err := s.Begin(ctx, s.OwnDB)
	if err != nil {
		return fmt.Errorf("trying to write: %w", err)
	}
	defer Rollback(t)
	return s.writeProbe(ctx, t)
}

func (s *Tables) writeProbe(ctx context.Context, t *sqlx.Tx) error {
	line := Run{Job: jobs.Job{Type: "probe", Queue: "probe", UUID: NewToken("probe")}, Outcome: "probe",
		Error: strings.Repeat("x", probeSize)}
	if err := s.InsertRuns(ctx, t, []Run{line}); err != nil {
		return fmt.Errorf("trying to write: %w", err)
	}
	return nil
}
