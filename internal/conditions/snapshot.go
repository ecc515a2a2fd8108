package conditions

import (
	"context"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// snapshot is what one statement reads at the begin of an evaluation: the
// database's clock, the conditions as they are written down, and of two small
// tables whether there is more to read.
type snapshot struct {
	asked    time.Time // by our clock, before the statement
	now      time.Time // by the database's clock
	down     error     // the database does not answer
	rows     map[string]*row
	rowsErr  error
	circuits bool // there may be breakers that are not closed
	// scheduled is when a scheduler last went through the timetable, started when
	// the first process began; zero where there is none.
	scheduled, started time.Time
	processesErr       error
}

// row is a condition as it is written down.
type row struct {
	Name         string
	Active       bool
	PendingSince int64  `db:"pending_since"`
	ChangedAt    int64  `db:"changed_at"`
	SeenAt       int64  `db:"seen_at"`
	SeenBy       string `db:"seen_by"`
	Detail       string
}

// installedRow is the row whose time says since when there are conditions here.
const installedRow = "(installed)"

// readSnapshot reads everything in one statement. If a table refuses, each is read
// alone: what is wrong with one must not hide what is wrong elsewhere.
func (e *Evaluator) readSnapshot(ctx context.Context) *snapshot {
	if e.c.Process != nil && !e.ready {
		e.ready = e.insertRows(ctx) == nil // else the rows are missing, and it is tried again
	}
	s := &snapshot{asked: e.c.Now()}
	if e.readTogether(ctx, s) == nil {
		return s
	}
	s.asked = e.c.Now()
	if s.now, s.down = e.c.Queue.Now(ctx); s.down != nil {
		s.now, s.rowsErr = s.asked, s.down
		return s
	}
	s.circuits = true
	var scheduled, started int64
	if err := e.c.DB.QueryRowxContext(ctx, "SELECT "+lastScheduled+", "+firstStarted).Scan(&scheduled,
		&started); err != nil {
		s.processesErr = fmt.Errorf("reading the processes of the service: %w", err)
	}
	s.scheduled, s.started = moment(scheduled), moment(started)
	var list []row
	if err := e.c.DB.SelectContext(ctx, &list, "SELECT name, active, pending_since, changed_at, seen_at, seen_by, "+
		"detail FROM cmsjobs_conditions"); err != nil {
		s.rowsErr = fmt.Errorf("reading the conditions: %w", err)
		return s
	}
	s.keep(e, list)
	return s
}

const (
	lastScheduled = "(SELECT COALESCE(MAX(scheduled_at), 0) FROM cmsjobs_processes)"
	firstStarted  = "(SELECT COALESCE(MIN(started_at), 0) FROM cmsjobs_processes)"
)

func (e *Evaluator) readTogether(ctx context.Context, s *snapshot) error {
	var list []struct {
		row
		Now, Circuits, Scheduled, Started int64
	}
	err := e.c.DB.SelectContext(ctx, &list, `SELECT COALESCE(c.name, '') AS name, COALESCE(c.active, 0) AS active,
		COALESCE(c.pending_since, 0) AS pending_since,
		COALESCE(c.changed_at, 0) AS changed_at, COALESCE(c.seen_at, 0) AS seen_at, COALESCE(c.seen_by, '') AS seen_by,
		COALESCE(c.detail, '') AS detail,
		o.now, o.circuits, o.scheduled, o.started FROM (SELECT `+database.Of(e.c.DB).Millis+` AS now,
			(SELECT COUNT(*) FROM cmsjobs_breakers WHERE state <> 'closed') AS circuits,
			`+lastScheduled+` AS scheduled, `+firstStarted+` AS started) AS o LEFT JOIN cmsjobs_conditions AS c ON 1 =
				1`)
	if err != nil {
		return err
	}
	rows := make([]row, len(list))
	for i, r := range list {
		rows[i] = r.row
		s.now, s.circuits, s.scheduled, s.started = time.UnixMilli(r.Now).UTC(), r.Circuits > 0, moment(r.Scheduled),
			moment(r.Started)
	}
	s.keep(e, rows)
	return nil
}

// moment is the time of milliseconds, zero for 0.
func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// keep sorts the rows by their names.
func (s *snapshot) keep(e *Evaluator, list []row) {
	s.rows = map[string]*row{}
	for i := range list {
		if list[i].Name != "" { // the row of an empty table
			s.rows[list[i].Name] = &list[i]
		}
	}
	if r := s.rows[installedRow]; r != nil {
		e.installed = r.changed()
	}
}

func (r *row) changed() time.Time { return time.UnixMilli(r.ChangedAt).UTC() }

// fresh says that the condition was seen within three intervals.
func (r *row) fresh(now time.Time, every time.Duration) bool {
	return now.Sub(time.UnixMilli(r.SeenAt)) < 3*max(every, time.Second)
}

// insertRows writes down the rows that are missing.
func (e *Evaluator) insertRows(ctx context.Context) error {
	now, err := e.c.Queue.Now(ctx)
	if err != nil {
		return err
	}
	names := append(Names(), installedRow)
	var args []any
	for _, name := range names {
		args = append(args, name, now.UnixMilli())
	}
	statement := database.Of(e.c.DB).InsertIgnore("cmsjobs_conditions", "name, active, pending_since, changed_at, "+
		"seen_at, seen_by, detail",
		database.Rows("(?, 0, 0, ?, 0, '', '')", len(names)))
	if _, err := e.c.DB.ExecContext(ctx, e.c.DB.Rebind(statement), args...); err != nil {
		return fmt.Errorf("preparing the conditions: %w", err)
	}
	return nil
}
