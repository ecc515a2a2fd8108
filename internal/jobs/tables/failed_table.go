package tables

import (
	"context"
	"time"
)

// FailedAt is the moment as an SQL value: a wall clock in the CMS's zone, as
// Laravel writes it.
func (s *Tables) FailedAt(now int64) string {
	if s.Failed.FailedAt.Kind != WallClock {
		return s.Failed.FailedAt.FromUnix(now)
	}
	wall := "'" + time.Unix(now, 0).In(s.Options.Zone).Format(time.DateTime) + "'"
	if s.failedConverted() {
		return s.Dialect.FromServerZone(wall)
	}
	return wall
}

// FailedText reads failed_at as text: as Unix seconds where the column holds a
// moment, else as the wall clock that Laravel wrote.
func (s *Tables) FailedText() string {
	column := s.Failed.FailedAt.Name
	switch {
	case s.Failed.FailedAt.Kind != WallClock:
		return s.Dialect.Text(s.Failed.FailedAt.Seconds())
	case s.failedConverted():
		return s.Dialect.Text(s.Dialect.ToServerZone(column))
	}
	return s.Dialect.Text(column)
}

// failedConverted says that the server converts failed_at between time zones.
// Laravel's session reads it in the server's zone: it must find the wall clock
// there, whatever the zone of our session is.
func (s *Tables) failedConverted() bool {
	return s.Dialect.ConvertsTimestamps && s.Failed.ColumnType == "timestamp"
}

// readFailed finds out what failed_jobs looks like.
func (s *Tables) readFailed(ctx context.Context) error {
	plain := s.Options.Prefix + s.Options.FailedTable
	have, err := s.readTable(ctx, plain, ", where failed jobs go: let \"cmsjobs migrate up --create-jobs\" make it")
	if err != nil {
		return err
	}
	if err := need(plain, have, "id", "connection", "queue", "payload", "exception", "failed_at"); err != nil {
		return err
	}
	_, uuid := have["uuid"]
	s.Failed = FailedTable{Name: s.Dialect.Ident(plain), UUID: uuid, FailedAt: s.momentOf(have["failed_at"]),
		ColumnType: have["failed_at"].kind}
	return nil
}
