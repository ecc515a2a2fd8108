package tables

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// A job whose lease has run out is taken from its worker, which is presumed
// dead, and its attempt counts. Two things look the same and are not:
//
//   - The database was in trouble for longer than the lease: read-only, full,
//     not reachable. The worker lives, could not renew, and writes the end of
//     its run within seconds when the trouble is over.
//   - The database's clock was moved forward. Each lease seems to have run out,
//     until its worker has renewed it by the new clock.
//
// So a store rescues nothing for a while after it met either, by its own
// monotonic clock: OwnersFirst after trouble, one lease after a jump.

// OwnersFirst is how long after trouble with the database no job is rescued.
const OwnersFirst = 5 * time.Second

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

func (s *Tables) lookAtClock(ctx context.Context) error {
	var millis int64
	sighted := s.StartSighting()
	if _, err := s.QueryRow(ctx, s.DB, []any{&millis}, "SELECT "+s.MillisNow()); err != nil {
		return fmt.Errorf("asking the database's clock: %w", err)
	}
	sighted(time.UnixMilli(millis), time.Millisecond)
	return nil
}

// probeSize is so large that the row needs new pages: a table has free space inside
// of its pages when the disk has none.
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
