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
