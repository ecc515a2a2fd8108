package history

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// A look at the backlog is bounded: so many queues, and in each so many rows
// at either end of its numbers, of which so many are read. What lies between
// the ends of a longer queue is not seen; its ends age as it does.
const (
	backlogQueues = 200
	backlogWindow = 2000
	backlogRows   = 200
)

// Backlogs looks at every queue that has rows. known says whether a type can
// be run by anyone.
func (s *Store) Backlogs(ctx context.Context, known func(kind string) bool) ([]jobs.QueueBacklog, error) {
	names, err := s.queueNames(ctx)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	paused, err := s.pausedQueues(ctx)
	if err != nil {
		return nil, err
	}
	list, l := make([]jobs.QueueBacklog, len(names)), backlogLook{s: s, known: known, atRate: map[string]bool{}}
	for i, name := range names {
		list[i] = jobs.QueueBacklog{Queue: name, Paused: paused[name], Unknown: map[string]int{}}
		if err := l.backlog(ctx, &list[i]); err != nil {
			return nil, fmt.Errorf("looking at the queue %s: %w", name, err)
		}
	}
	return list, nil
}

// backlogLook is one look at all queues.
type backlogLook struct {
	s      *Store
	known  func(kind string) bool
	atRate map[string]bool // types with a rate, asked once
}

// rateStart is how long ago the newest start of a type may be whose jobs wait because
// of its rate. One that begins none at all waits for something else.
const rateStart = time.Minute

// waitsForRate says whether jobs of a type wait because of its rate: permits of the rate
// are used, or were a moment ago.
func (l *backlogLook) waitsForRate(ctx context.Context, kind string) (bool, error) {
	entry, found := l.s.tables.Options.Registry.Known(kind)
	if !found || len(entry.Policy.Rates) == 0 {
		return false, nil
	}
	if waits, asked := l.atRate[entry.Type]; asked {
		return waits, nil
	}
	for _, r := range entry.Policy.Rates {
		var one int
		used, err := l.s.tables.QueryRow(ctx, l.s.tables.OwnDB, []any{&one}, fmt.Sprintf("SELECT 1 FROM "+
			"cmsjobs_permits WHERE type = ? AND expires_at >= %s - %d LIMIT 1", l.s.tables.SecondsNow(),
			int64(rateStart.Seconds())), r.PermitsOf(entry.Type))
		if err != nil {
			return false, fmt.Errorf("asking whether %s begins at its rate: %w", entry.Type, err)
		}
		l.atRate[entry.Type] = l.atRate[entry.Type] || used
	}
	return l.atRate[entry.Type], nil
}

// queueNames goes from one name to the next by the index on queue, so that it
// costs a seek a queue, however many jobs there are.
func (s *Store) queueNames(ctx context.Context) ([]string, error) {
	var names []string
	where, args := "", []any(nil)
	for len(names) < backlogQueues {
		var name sql.NullString
		if _, err := s.tables.QueryRow(ctx, s.tables.DB, []any{&name}, "SELECT MIN(queue) FROM "+
			s.tables.Layout.Table().Name+where, args...); err != nil {
			return nil, fmt.Errorf("listing the queues: %w", err)
		}
		if !name.Valid {
			break
		}
		names = append(names, name.String)
		where, args = " WHERE queue > ?", []any{name.String}
	}
	return names, nil
}

func (l *backlogLook) backlog(ctx context.Context, b *jobs.QueueBacklog) error {
	last, full, err := l.s.rowsEnd(ctx, b.Queue, "MAX", "")
	if err != nil || last == 0 {
		return err
	}
	if err := l.read(ctx, b, fmt.Sprintf("id <= %d", last)); err != nil || !full {
		return err
	}
	begin, _, err := l.s.rowsEnd(ctx, b.Queue, "MIN", " DESC")
	if err != nil {
		return err
	}
	return l.read(ctx, b, fmt.Sprintf("id >= %d AND id > %d", begin, last))
}

// rowsEnd finds where the rows that are looked at end; full says that there
// may be others behind.
func (s *Store) rowsEnd(ctx context.Context, queue, edge, direction string) (id int64, full bool, err error) {
	var at sql.NullInt64
	var rows int
	_, err = s.tables.QueryRow(ctx, s.tables.DB, []any{&at, &rows}, fmt.Sprintf("SELECT %s(id), COUNT(*) FROM "+
		"(SELECT id FROM %s WHERE queue = ? ORDER BY id%s LIMIT %d) AS part",
		edge, s.tables.Layout.Table().Name, direction, backlogWindow), queue)
	return at.Int64, rows == backlogWindow, err
}

func (l *backlogLook) read(ctx context.Context, b *jobs.QueueBacklog, where string) error {
	s := l.s
	ended := s.tables.Layout.Expired(s.tables.SecondsNow(), s.tables.RetryAfter)
	found, now, err := s.tables.ReadCandidates(ctx, s.tables.DB, tables.CandidateQuery{
		Where: fmt.Sprintf("queue = ? AND %s AND (%s OR %s)", where, s.tables.Layout.Waiting(), ended), Args: []any{
			b.Queue}, Order: " ORDER BY id", Limit: backlogRows})
	if err != nil {
		return err
	}
	for _, c := range found {
		kind, claimable := s.typeOf(c, l.known)
		waited := time.Duration(max(now-c.Due, 0)) * time.Second
		switch {
		case !claimable && kind == "":
		case !claimable:
			b.Unknown[kind]++
			b.OldestUnknown = max(b.OldestUnknown, waited)
		case c.Locked.Valid || c.Status == "processing":
			b.Stalled++
			b.OldestStalled = max(b.OldestStalled,
				time.Duration(max(now-s.tables.RetryAfter-c.Locked.Int64, 0))*time.Second)
		default:
			rated, err := l.waitsForRate(ctx, kind)
			if err != nil {
				return err
			}
			if rated {
				b.Rated++
				continue
			}
			b.Due++
			b.OldestDue = max(b.OldestDue, waited)
		}
	}
	return nil
}

// typeOf says which type a row has, and whether it is one that someone can
// run. PHP's own rows and unreadable ones have none.
func (s *Store) typeOf(c *tables.Candidate, known func(string) bool) (kind string, claimable bool) {
	if known(c.Name) {
		return c.Name, true
	}
	if c.Size > tables.Oversize {
		kind = tables.PeekType(c.Payload)
		return kind, known(kind)
	}
	e, origin, _ := jobs.Parse(c.Payload, known) // its error says in words what origin says
	switch {
	case origin == jobs.Ours:
		return e.Type, true
	case origin == jobs.Foreign && strings.ContainsAny(e.Type, `\@`): // a class of PHP
		return "", false
	case origin == jobs.Malformed:
		return "(unreadable)", false
	}
	return cmp.Or(e.Type, c.Name, "(none)"), false
}

// outcomesCounted bounds the counting of one outcome.
const outcomesCounted = 10_000

// Outcomes counts the failed and the completed attempts (jobs.Figures) since
// then, each outcome up to 10,000. Runs of
// the type except are left out: each failure causes a notification, which would
// halve the share of failures.
func (s *Store) Outcomes(ctx context.Context, since time.Duration, except string) (failed, completed int64, err error) {
	var parts []string
	var args []any
	for _, outcome := range []string{"completed", "failed", "retried", jobs.CrashedOutcome} {
		parts = append(parts, fmt.Sprintf("SELECT '%s', COUNT(*) FROM (SELECT id FROM cmsjobs_runs WHERE outcome = "+
			"'%s' AND ended_at >= %s - %d AND type <> ? LIMIT %d) AS %s",
			outcome, outcome, s.tables.MillisNow(), since.Milliseconds(), outcomesCounted, outcome))
		args = append(args, except)
	}
	err = s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var outcome string
		var n int64
		if err := r.Scan(&outcome, &n); err != nil {
			return err
		}
		if jobs.FailedAttempt(outcome) {
			failed += n
		} else {
			completed = n
		}
		return nil
	}, strings.Join(parts, " UNION ALL "), args...)
	if err != nil {
		return 0, 0, fmt.Errorf("counting the outcomes of runs: %w", err)
	}
	return failed, completed, nil
}

// phpFailures is how many of the newest failed jobs are looked at.
const phpFailures = 200

// FailedByPHP counts our jobs, by queue, that a worker of PHP took and failed
// since then, by the database's clock: its exceptions carry the names of its classes.
func (s *Store) FailedByPHP(ctx context.Context, since time.Time, known func(string) bool) (map[string]int, error) {
	queues := map[string]int{}
	statement := fmt.Sprintf("SELECT queue, payload, SUBSTR(exception, 1, 300) FROM %s WHERE id > (SELECT "+
		"COALESCE(MAX(id), 0) - %d FROM %s) AND %s >= %s ORDER BY id DESC",
		s.tables.Failed.Name, phpFailures, s.tables.Failed.Name, s.tables.Failed.FailedAt.Name,
		s.tables.FailedAt(since.Unix()))
	err := s.tables.Query(ctx, s.tables.DB, func(r *sql.Rows) error {
		var queue, exception string
		var payload []byte
		if err := r.Scan(&queue, &payload, &exception); err != nil {
			return err
		}
		if !strings.HasPrefix(exception, `Illuminate\`) && !strings.Contains(exception, "Target class [") {
			return nil
		}
		if _, origin, _ := jobs.Parse(payload, known); origin == jobs.Ours {
			queues[queue]++
		}
		return nil
	}, statement)
	if err != nil {
		return nil, fmt.Errorf("looking for our jobs that PHP failed: %w", err)
	}
	return queues, nil
}

// NewestTicks are the newest ticks of schedule entries, those by hand left
// out; one seek an entry.
func (s *Store) NewestTicks(ctx context.Context, entries []string) (map[string]time.Time, error) {
	return s.perEntry(ctx, entries, "SELECT entry, tick FROM cmsjobs_ticks WHERE entry = ? AND outcome <> 'manual' "+
		"ORDER BY tick DESC LIMIT 1")
}

// successTicks is how many ticks of an entry are looked at for one that ended well.
const successTicks = 100

// LastSuccesses are when the jobs of schedule entries last completed. An entry
// that has ticks, but no success among the newest 100, has the zero time.
func (s *Store) LastSuccesses(ctx context.Context, entries []string) (map[string]time.Time, error) {
	return s.perEntry(ctx, entries, fmt.Sprintf(`SELECT t.entry, COALESCE(MAX(r.ended_at), 0) AS at FROM (SELECT entry,
		uuid FROM cmsjobs_ticks WHERE entry = ? ORDER BY tick DESC LIMIT %d) AS t
		LEFT JOIN cmsjobs_runs r ON r.uuid = t.uuid AND r.outcome = 'completed' AND t.uuid <> '' GROUP BY t.entry`,
		successTicks))
}

// perEntry asks the same of each entry, all in one statement.
func (s *Store) perEntry(ctx context.Context, entries []string, statement string) (map[string]time.Time, error) {
	if len(entries) == 0 {
		return map[string]time.Time{}, nil
	}
	parts, args := make([]string, len(entries)), make([]any, len(entries))
	for i, entry := range entries {
		parts[i], args[i] = fmt.Sprintf("SELECT * FROM (%s) AS e%d", statement, i), entry
	}
	at := map[string]time.Time{}
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var entry string
		var ms int64
		if err := r.Scan(&entry, &ms); err != nil {
			return err
		}
		at[entry] = time.Time{}
		if ms > 0 {
			at[entry] = tables.UnixMilli(ms)
		}
		return nil
	}, strings.Join(parts, " UNION ALL "), args...)
	if err != nil {
		return nil, fmt.Errorf("reading the ticks of %d schedule entries: %w", len(entries), err)
	}
	return at, nil
}

// TryWriting shows that the jobs table can be written to. It changes no row.
func (s *Store) TryWriting(ctx context.Context) error {
	_, err := s.tables.Exec(ctx, s.tables.DB, "UPDATE "+s.tables.Layout.Table().Name+" SET queue = queue WHERE id = -1")
	return err
}
