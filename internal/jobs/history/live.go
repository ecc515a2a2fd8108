package history

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
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// live is the filter on the jobs table, as far as SQL decides it.
func (s *Store) live(f jobs.Filter) (table, where string, args []any) {
	t := s.tables.Layout.Table()
	var c conditions
	queued, running := slices.Contains(f.Statuses, jobs.StatusQueued),
		slices.Contains(f.Statuses, jobs.StatusProcessing)
	if queued && !running {
		c.add(s.tables.Layout.Waiting())
	}
	if running && !queued {
		c.add("NOT (" + s.tables.Layout.Waiting() + ")")
	}
	c.in("queue", f.Queues)
	if f.Text != "" {
		columns := []string{t.Payload}
		if s.tables.Layout.Name() == tables.Extended {
			columns = append(columns, "last_error")
		}
		part, args := s.like(f.Text, columns...)
		c.add(part, args...)
	}
	if !f.Since.IsZero() {
		c.add(t.Created.Name + " >= " + t.Created.FromUnix(f.Since.Unix()))
	}
	if !f.Until.IsZero() {
		c.add(t.Created.Name + " < " + t.Created.FromUnix(f.Until.Unix()))
	}
	return t.Name, c.String(), c.args
}

// plainWord is a word that every JSON encoder writes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_.:-]+$`)

// hints narrows the jobs table to rows whose payload may match; Go decides.
func (s *Store) hints(f jobs.Filter, column string) (string, []any) {
	var c conditions
	for _, words := range [][]string{s.spellings(f.Types), f.UUIDs} {
		if len(words) == 0 || len(words) > 50 || slices.ContainsFunc(words, func(w string) bool {
			return !plainWord.MatchString(w)
		}) {
			continue
		}
		var parts []string
		for _, w := range words {
			part, args := s.like(w, column)
			parts, c.args = append(parts, part), append(c.args, args...)
		}
		if slices.ContainsFunc(words, tables.Derived) {
			parts = append(parts, column+` NOT LIKE '%"uuid"%'`)
		}
		c.parts = append(c.parts, "("+strings.Join(parts, " OR ")+")")
	}
	return c.String(), c.args
}

// spellings are all names under which rows may say the types.
func (s *Store) spellings(kinds []string) []string {
	names := slices.Clone(kinds)
	for _, name := range s.tables.Options.Registry.Names() {
		if slices.Contains(kinds, s.canonical(name)) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// readLive reads waiting and running jobs.
func (s *Store) readLive(ctx context.Context, f jobs.Filter, from keysetCursor, limit int) (page, error) {
	_, where, args := s.live(f)
	if s.tables.Layout.Name() == tables.Stock || len(f.UUIDs) > 0 {
		hint, more := s.hints(f, s.tables.Layout.Table().Payload)
		where, args = where+" AND "+hint, append(args, more...)
	}
	return s.scanTable(ctx, tableScan{table: s.tables.Layout.Table().Name, db: s.tables.DB, matches: s.matches(f),
		whole: f.Text == "" && len(f.Types)+len(f.Workers)+len(f.Tags) == 0,
		read: func(condition, order string, limit int) ([]record, error) {
			rows, err := s.queryLive(ctx, s.tables.DB, where+" AND "+condition, args, order, limit)
			return s.withWorkers(ctx, f, rows, err)
		}}, from, limit)
}

// queryLive reads rows of the jobs table as records.
func (s *Store) queryLive(ctx context.Context, q tables.Tx, where string, args []any, order string,
	limit int) ([]record, error) {
	t := s.tables.Layout.Table()
	failure := "''"
	if s.tables.Layout.Name() == tables.Extended {
		failure = "last_error"
	}
	statement := fmt.Sprintf("SELECT id, queue, %s, %s, attempts, %s, %s, %s, %s, %s, %s FROM %s WHERE %s%s LIMIT %d",
		t.Due.Seconds(), t.Created.Seconds(), t.Locked.Seconds(), s.tables.Layout.Columns(), failure,
		s.payloadOf(t.Payload), s.tables.Dialect.Bytes+"("+t.Payload+")", s.tables.SecondsNow(), t.Name, where, order,
		limit)
	var rows []record
	err := s.tables.Query(ctx, q, func(r *sql.Rows) error {
		var c tables.Candidate
		var queue string
		var created sql.NullInt64
		var failure sql.NullString
		var clock int64
		err := r.Scan(&c.ID, &queue, &c.Due, &created, &c.Attempts, &c.Locked, &c.Status, &c.Token, &c.Name,
			&c.Priority, &c.MaxAttempts, &failure, &c.Payload, &c.Size, &clock)
		if err != nil {
			return err
		}
		c.Created = created.Int64
		rows = append(rows, s.liveRecord(queue, c, failure.String, clock))
		return nil
	}, statement, args...)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", t.Plain, err)
	}
	return rows, nil
}

// payloadOf reads a payload, of oversized ones the beginning only.
func (s *Store) payloadOf(column string) string {
	return fmt.Sprintf("CASE WHEN %s(%s) <= %d THEN %s ELSE SUBSTR(%s, 1, %d) END", s.tables.Dialect.Bytes, column,
		tables.Oversize, column, column, tables.Sniffed)
}

func (s *Store) liveRecord(queue string, c tables.Candidate, failure string, now int64) record {
	e, origin := s.envelope(c.Payload, c.Size)
	kind := e.Type
	if origin != jobs.Ours && origin != jobs.Foreign && c.Name != "" {
		kind = s.canonical(c.Name) // an extended row names its type in a column
	}
	if e.UUID == "" || len(e.UUID) > 191 {
		e.UUID = tables.DerivedUUID(s.tables.Layout.Table().Plain, c.ID, c.Created)
	}
	r := jobs.Record{ID: c.ID, UUID: e.UUID, Type: kind, Queue: queue, Status: jobs.StatusQueued,
		Foreign:  origin == jobs.Foreign,
		Priority: c.Priority, Attempt: c.Attempts, MaxAttempts: s.limitOf(kind, e.MaxTries, c.MaxAttempts),
		Payload: c.Payload, Error: failure,
		EnqueuedAt: unix(c.Created), RunAt: unix(c.Due)}
	if c.Locked.Valid || c.Status == "processing" {
		r.Status = jobs.StatusProcessing
		r.Worker = tables.HolderOf(c.Token.String)
		// Until its worker's heartbeat tells the start, the lease does: it
		// was made or renewed at that second, by the database's clock.
		r.StartedAt = unix(min(c.Locked.Int64, now))
		if c.Locked.Int64 < now-s.tables.RetryAfter {
			r.Detail = "stalled"
		}
	} else if c.Due > now {
		r.Detail = "delayed"
		if c.Attempts > 0 {
			r.Detail = "retrying"
		}
	}
	return record{key: c.ID, size: c.Size, claimable: s.tables.Owns(s.known, origin, e.Type, c.Name, queue), Record: r}
}

// envelope takes a payload apart for people: PHP's own jobs get the name that
// PHP shows.
func (s *Store) envelope(payload []byte, size int64) (jobs.Envelope, jobs.Origin) {
	if size > tables.Oversize {
		return jobs.Envelope{Type: s.canonical(tables.PeekType(payload))}, jobs.Unknown
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

// known says whether a type runs here, or in a program that announced it.
func (s *Store) known(name string) bool {
	_, known := s.tables.Options.Registry.Known(name)
	return known
}

// limitOf is how often a job may start; of a type that nobody here knows, by
// the column's word or the payload's, 0 where neither says it.
func (s *Store) limitOf(kind string, tries, column int) int {
	if entry, known := s.tables.Options.Registry.Known(kind); known {
		return entry.Policy.Attempts(tries, column)
	}
	return cmp.Or(max(column, 0), max(tries, 0))
}

// addLive adds what workers said at their last heartbeat to running jobs, and
// which queues are paused to waiting ones.
func (s *Store) addLive(ctx context.Context, records []jobs.Record) error {
	if !slices.ContainsFunc(records, func(r jobs.Record) bool {
		return r.Status == jobs.StatusProcessing ||
			r.Status == jobs.StatusQueued
	}) {
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
			r.Process, r.Deadline = x.process, x.deadline.UTC()
		}
	}
	return nil
}

func (s *Store) pausedQueues(ctx context.Context) (map[string]bool, error) {
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
	// Of PHP's jobs: the process's number, and the time-out.
	process  int
	deadline time.Time
}

// runningJobs are what workers said that they run, by UUID.
func (s *Store) runningJobs(ctx context.Context) (map[string]heldJob, error) {
	held := map[string]heldJob{}
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var worker, list, php string
		if err := r.Scan(&worker, &list, &php); err != nil {
			return err
		}
		var running []jobs.RunningJob
		if json.Unmarshal([]byte(list), &running) == nil { // a worker of another version may write otherwise
			for _, x := range running {
				held[x.UUID] = heldJob{worker: worker, RunningJob: x}
			}
		}
		var processes []jobs.PHPProcess
		if json.Unmarshal([]byte(php), &processes) == nil { // as above
			for _, p := range processes {
				if p.Job != nil {
					held[p.Job.UUID] = heldJob{worker, *p.Job, p.PID, p.Deadline}
				}
			}
		}
		return nil
	}, "SELECT id, running, php FROM cmsjobs_workers ORDER BY heartbeat_at")
	if err != nil {
		return nil, fmt.Errorf("reading what workers run: %w", err)
	}
	return held, nil
}
