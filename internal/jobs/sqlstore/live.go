package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// live is the filter on the jobs table, as far as SQL decides it.
func (s *History) live(f jobs.Filter) (table, where string, args []any) {
	t := s.Layout.Table()
	var c conditions
	queued, running := slices.Contains(f.Statuses, jobs.StatusQueued), slices.Contains(f.Statuses, jobs.StatusProcessing)
	if queued && !running {
		c.add(s.Layout.waiting())
	}
	if running && !queued {
		c.add("NOT (" + s.Layout.waiting() + ")")
	}
	c.in("queue", f.Queues)
	if f.Text != "" {
		columns := []string{t.payload}
		if s.Layout.Name() == Extended {
			columns = append(columns, "last_error")
		}
		part, args := s.like(f.Text, columns...)
		c.add(part, args...)
	}
	if !f.Since.IsZero() {
		c.add(t.created.name + " >= " + t.created.fromUnix(f.Since.Unix()))
	}
	if !f.Until.IsZero() {
		c.add(t.created.name + " < " + t.created.fromUnix(f.Until.Unix()))
	}
	return t.name, c.String(), c.args
}

// plainWord is a word that every JSON encoder writes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_.:-]+$`)

// hints narrows the jobs table to rows whose payload may match; Go decides.
func (s *History) hints(f jobs.Filter, column string) (string, []any) {
	var c conditions
	for _, words := range [][]string{s.spellings(f.Types), f.UUIDs} {
		if len(words) == 0 || len(words) > 50 || slices.ContainsFunc(words, func(w string) bool { return !plainWord.MatchString(w) }) {
			continue
		}
		var parts []string
		for _, w := range words {
			part, args := s.like(w, column)
			parts, c.args = append(parts, part), append(c.args, args...)
		}
		if slices.ContainsFunc(words, derived) {
			parts = append(parts, column+` NOT LIKE '%"uuid"%'`)
		}
		c.parts = append(c.parts, "("+strings.Join(parts, " OR ")+")")
	}
	return c.String(), c.args
}

// spellings are all names under which rows may say the types.
func (s *History) spellings(kinds []string) []string {
	names := slices.Clone(kinds)
	for _, name := range s.Options.Registry.Names() {
		if slices.Contains(kinds, s.canonical(name)) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// readLive reads the shelf of waiting and running jobs.
func (s *History) readLive(ctx context.Context, f jobs.Filter, from keysetCursor, limit int) (page, error) {
	_, where, args := s.live(f)
	if s.Layout.Name() == Stock || len(f.UUIDs) > 0 {
		hint, more := s.hints(f, s.Layout.Table().payload)
		where, args = where+" AND "+hint, append(args, more...)
	}
	return s.scanTable(ctx, tableScan{table: s.Layout.Table().name, db: s.db, matches: s.matches(f), whole: f.Text == "" && len(f.Types) == 0,
		read: func(condition, order string, limit int) ([]record, error) {
			return s.queryLive(ctx, s.db, where+" AND "+condition, args, order, limit)
		}}, from, limit)
}

// queryLive reads rows of the jobs table as records.
func (s *History) queryLive(ctx context.Context, q Tx, where string, args []any, order string, limit int) ([]record, error) {
	t := s.Layout.Table()
	failure := "''"
	if s.Layout.Name() == Extended {
		failure = "last_error"
	}
	statement := fmt.Sprintf("SELECT id, queue, %s, %s, attempts, %s, %s, %s, %s, %s, %s FROM %s WHERE %s%s LIMIT %d",
		t.due.seconds(), t.created.seconds(), t.locked.seconds(), s.Layout.columns(), failure, s.payloadOf(t.payload), s.Dialect.Bytes+"("+t.payload+")", s.SecondsNow(), t.name, where, order, limit)
	var rows []record
	err := s.query(ctx, q, func(r *sql.Rows) error {
		var c Candidate
		var queue string
		var created sql.NullInt64
		var failure sql.NullString
		var clock int64
		err := r.Scan(&c.id, &queue, &c.due, &created, &c.attempts, &c.locked, &c.status, &c.token, &c.name, &c.priority, &c.MaxAttempts, &failure, &c.payload, &c.size, &clock)
		if err != nil {
			return err
		}
		c.created = created.Int64
		rows = append(rows, s.liveRecord(queue, c, failure.String, clock))
		return nil
	}, statement, args...)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", t.plain, err)
	}
	return rows, nil
}

// payloadOf reads a payload, of oversized ones the beginning only.
func (s *History) payloadOf(column string) string {
	return fmt.Sprintf("CASE WHEN %s(%s) <= %d THEN %s ELSE SUBSTR(%s, 1, %d) END", s.Dialect.Bytes, column, oversize, column, column, sniffed)
}

func (s *History) liveRecord(queue string, c Candidate, failure string, now int64) record {
	e, origin := s.envelope(c.payload, c.size)
	kind := e.Type
	if origin != jobs.Ours && origin != jobs.Foreign && c.name != "" {
		kind = s.canonical(c.name) // an extended row names its type in a column
	}
	if e.UUID == "" || len(e.UUID) > 191 {
		e.UUID = DerivedUUID(s.Layout.Table().plain, c.id, c.created)
	}
	r := jobs.Record{ID: c.id, UUID: e.UUID, Type: kind, Queue: queue, Status: jobs.StatusQueued, Foreign: origin == jobs.Foreign,
		Priority: c.priority, Attempt: c.attempts, MaxAttempts: s.limitOf(kind, e.MaxTries, c.MaxAttempts), Payload: c.payload, Error: failure,
		EnqueuedAt: unix(c.created), RunAt: unix(c.due)}
	if c.locked.Valid || c.status == "processing" {
		r.Status = jobs.StatusProcessing
		r.Worker = HolderOf(c.token.String)
		// Until its worker's heartbeat tells the start, the lease does: it
		// was made or renewed at that second, by the database's clock.
		r.StartedAt = unix(min(c.locked.Int64, now))
		if !r.Foreign && c.locked.Int64 < now-s.retryAfter {
			r.Detail = "stalled"
		}
	} else if c.due > now {
		r.Detail = "delayed"
		if c.attempts > 0 {
			r.Detail = "retrying"
		}
	}
	return record{key: c.id, size: c.size, claimable: s.owns(origin, e.Type, c.name, queue), Record: r}
}

// envelope takes a payload apart for people: PHP's own jobs get the name that
// PHP shows.
func (s *History) envelope(payload []byte, size int64) (jobs.Envelope, jobs.Origin) {
	if size > oversize {
		return jobs.Envelope{Type: s.canonical(peekType(payload))}, jobs.Unknown
	}
	e, origin, _ := jobs.Parse(payload, s.known) // the error is for people; the origin says it here
	e.Type = s.canonical(e.Type)
	if origin == jobs.Foreign {
		var php struct {
			UUID        string `json:"uuid"`
			DisplayName string `json:"displayName"`
		}
		if json.Unmarshal(payload, &php) == nil {
			e.UUID = php.UUID
			if php.DisplayName != "" {
				e.Type = php.DisplayName
			}
		}
	}
	return e, origin
}

// limitOf is how often a job may start; of a type that nobody here knows, by
// the column's word or the payload's, 0 where neither says it.
func (s *History) limitOf(kind string, tries, column int) int {
	if entry, known := s.Options.Registry.Lookup(kind); known {
		return entry.Policy.Attempts(tries, column)
	}
	return cmp.Or(max(column, 0), max(tries, 0))
}

func unix(seconds int64) time.Time {
	if seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// addLive adds what workers said at their last heartbeat to running jobs, and
// which queues are paused to waiting ones.
func (s *History) addLive(ctx context.Context, records []jobs.Record) error {
	if !slices.ContainsFunc(records, func(r jobs.Record) bool { return r.Status == jobs.StatusProcessing || r.Status == jobs.StatusQueued }) {
		return nil
	}
	paused, err := s.pausedQueues(ctx)
	if err != nil {
		return err
	}
	running, err := s.runningJobs(ctx)
	if err != nil {
		return err
	}
	for i := range records {
		r := &records[i]
		if r.Status == jobs.StatusQueued && paused[r.Queue] && !r.Foreign {
			r.Detail = "paused"
		}
		if x, there := running[r.UUID]; there && r.Status == jobs.StatusProcessing {
			r.Worker, r.StartedAt, r.Progress = x.worker, x.Since.UTC(), x.Progress
		}
	}
	return nil
}

func (s *History) pausedQueues(ctx context.Context) (map[string]bool, error) {
	list, err := s.PausedQueues(ctx)
	paused := make(map[string]bool, len(list))
	for _, p := range list {
		paused[p.Queue] = true
	}
	return paused, err
}

type heldJob struct {
	worker string
	jobs.RunningJob
}

// runningJobs are what workers said that they run, by UUID.
func (s *History) runningJobs(ctx context.Context) (map[string]heldJob, error) {
	held := map[string]heldJob{}
	err := s.query(ctx, s.ownDB, func(r *sql.Rows) error {
		var worker, list string
		if err := r.Scan(&worker, &list); err != nil {
			return err
		}
		var running []jobs.RunningJob
		if json.Unmarshal([]byte(list), &running) == nil { // a worker of another version may write otherwise
			for _, x := range running {
				held[x.UUID] = heldJob{worker, x}
			}
		}
		return nil
	}, "SELECT id, running FROM cmsjobs_workers ORDER BY heartbeat_at")
	if err != nil {
		return nil, fmt.Errorf("reading what workers run: %w", err)
	}
	return held, nil
}
