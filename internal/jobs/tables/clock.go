package tables

import (
	"context"
	"fmt"
	"time"
)

// Now is the database's clock.
func (s *Tables) Now(ctx context.Context) (time.Time, error) {
	var ms int64
	if _, err := s.QueryRow(ctx, s.OwnDB, []any{&ms}, "SELECT "+s.MillisNow()); err != nil {
		return time.Time{}, err
	}
	return UnixMilli(ms), nil
}

// ReadClock is the database's clock in whole Unix seconds, or the test's.
func (s *Tables) ReadClock(ctx context.Context, q Tx) (now int64, err error) {
	sighted := s.StartSighting()
	if _, err = s.QueryRow(ctx, q, []any{&now}, "SELECT "+s.SecondsNow()); err == nil {
		sighted(time.Unix(now, 0), time.Second)
	}
	return now, err
}

// SecondsNow is the expression for the database's clock in Unix seconds, millis the
// one in milliseconds.
func (s *Tables) SecondsNow() string {
	if s.Options.DatabaseClock != nil {
		return fmt.Sprint(s.Options.DatabaseClock().Unix())
	}
	return s.Dialect.Now
}

func (s *Tables) MillisNow() string {
	if s.Options.DatabaseClock != nil {
		return fmt.Sprint(s.Options.DatabaseClock().UnixMilli())
	}
	return s.Dialect.Millis
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
	now := sighting{at: r.seen.at, last: after,
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
	s.Options.Logger.Warn("the database's clock jumped; no lease counts as lost for the length of one lease", "event",
		"database.clock_jumped",
		"by_ms", by.Milliseconds(), "wait_ms", r.length.Milliseconds())
}

// clockKept is how long a look at the database's clock says what it shows now.
const clockKept = 10 * time.Second

// RecentSeconds is what the database's clock shows, to a second, by the last look at it;
// known is false where that is long ago.
func (s *Tables) RecentSeconds() (now int64, known bool) {
	if s.Options.DatabaseClock != nil {
		return s.Options.DatabaseClock().Unix(), true
	}
	if s.Options.Monotonic == nil {
		return 0, false
	}
	r := &s.rescue
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen.most == 0 {
		return 0, false
	}
	at := s.Options.Monotonic()
	return int64((r.seen.least + at.Sub(r.seen.at)) / time.Second), at.Sub(r.seen.last) <= clockKept
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
