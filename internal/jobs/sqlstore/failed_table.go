package sqlstore

import (
	"context"
	"time"
)

// failedAt is the moment as an SQL value: a wall clock in the CMS's zone, as
// Laravel writes it.
func (s *Tables) failedAt(now int64) string {
	if s.failed.failedAt.kind != wallClock {
		return s.failed.failedAt.fromUnix(now)
	}
	wall := "'" + time.Unix(now, 0).In(s.Options.Zone).Format(time.DateTime) + "'"
	if s.Dialect.Name == "mysql" && s.failed.ColumnType == "timestamp" {
		// Laravel's session reads a TIMESTAMP in the server's zone: it must read
		// this wall clock, whatever the zone of our own session is.
		return "COALESCE(CONVERT_TZ(" + wall + ", @@global.time_zone, @@session.time_zone), " + wall + ")"
	}
	return wall
}

// FailedTable is failed_jobs as it was found.
type FailedTable struct {
	name       string // quoted
	uuid       bool   // Laravel 5 to 7 had none
	failedAt   TimeColumn
	ColumnType string // the column's type: a MySQL TIMESTAMP is converted by session
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
	s.failed = FailedTable{name: s.Dialect.Ident(plain), uuid: uuid, failedAt: s.momentOf(have["failed_at"]), ColumnType: have["failed_at"].kind}
	return nil
}
