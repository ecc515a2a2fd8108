package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// What people see of a job lies on three shelves: waiting and running jobs in
// jobs, dead ones in failed_jobs, finished and cancelled ones in cmsjobs_runs.
// Each is read by its primary key, so that a list costs the same at any depth
// and stays right while rows come and go.
type shelf struct {
	name string
	// read returns matching records beyond a key, in the order of keys.
	read func(ctx context.Context, f jobs.Filter, from position64, limit int) (page, error)
}

// position64 is where a shelf is read on from: above or below a key.
type position64 struct {
	key    int64
	oldest bool // upwards, oldest first; else downwards, newest first
}

// condition is the SQL of a position; "" at the beginning.
func (p position64) condition(column string) string {
	switch {
	case p.key == 0:
		return "1=1"
	case p.oldest:
		return fmt.Sprintf("%s > %d", column, p.key)
	}
	return fmt.Sprintf("%s < %d", column, p.key)
}

func (p position64) order(column string) string {
	if p.oldest {
		return " ORDER BY " + column
	}
	return " ORDER BY " + column + " DESC"
}

// found is one record and its key on its shelf.
type found struct {
	key  int64
	size int64 // bytes of the payload
	ours bool  // a claim would take it
	jobs.Record
}

// when places a record among those of other shelves.
func (f found) when() time.Time {
	if f.EndedAt.IsZero() {
		return f.EnqueuedAt
	}
	return f.EndedAt
}

// page is a part of a shelf. last is the key of the last row that was looked
// at, matching or not; end says that there are no more.
type page struct {
	items []found
	last  int64
	end   bool
}

// maxLooked bounds how many rows one call reads to find matching ones where
// SQL cannot say which match.
const maxLooked = 20_000

// sift reads rows in growing steps until limit of them match, the shelf ends,
// or maxLooked were looked at.
func sift(limit int, from position64, read func(position64, int) ([]found, error), matches func(found) bool) (page, error) {
	p := page{last: from.key}
	for looked, step := 0, min(limit, firstStep); looked < maxLooked; {
		rows, err := read(from, step)
		if err != nil {
			return page{}, err
		}
		for _, r := range rows {
			p.last = r.key
			if !matches(r) {
				continue
			}
			if p.items = append(p.items, r); len(p.items) == limit {
				return p, nil
			}
		}
		if len(rows) < step {
			p.end = true
			return p, nil
		}
		looked, from.key = looked+len(rows), p.last
		step = nextStep(step, rows)
	}
	return p, nil
}

// Rows are read in steps of so many that their payloads do not fill the memory:
// a megabyte each is allowed.
const (
	firstStep = 50
	fullStep  = 2000
	stepBytes = 4 << 20
)

// nextStep is twice the last one, as far as rows of the size that was seen
// stay within stepBytes.
func nextStep(step int, rows []found) int {
	size := int64(1)
	for _, r := range rows {
		size += min(r.size, oversize)
	}
	each := size/int64(max(len(rows), 1)) + 1
	return max(1, min(2*step, fullStep, int(stepBytes/each)))
}

// shelves are those on which jobs of the filter's states lie.
func (s *Store) shelves(f jobs.Filter) []shelf {
	wants := func(states ...jobs.State) bool {
		return len(f.States) == 0 || slices.ContainsFunc(f.States, func(x jobs.State) bool { return slices.Contains(states, x) })
	}
	var list []shelf
	if wants(jobs.StateQueued, jobs.StateProcessing) && f.Cause == "" {
		list = append(list, shelf{"w", s.readLive})
	}
	if wants(jobs.StateFailed) {
		list = append(list, shelf{"f", s.readFailedRows})
	}
	if wants(jobs.StateCompleted, jobs.StateCancelled) && f.Cause == "" {
		list = append(list, shelf{"r", s.readEnded})
	}
	return list
}

// defaultLimit and maxLimit bound a page.
const (
	defaultLimit = 50
	maxLimit     = 1000
	maxOffset    = 10_000
)

func pageLimit(p jobs.Page) int {
	if p.Limit <= 0 {
		return defaultLimit
	}
	return min(p.Limit, maxLimit)
}

// Jobs lists jobs, newest first, wherever they lie. Total is −1 where it
// would have to be counted row by row; Count does that.
func (s *Store) Jobs(ctx context.Context, f jobs.Filter, p jobs.Page) (jobs.List[jobs.Record], error) {
	limit, skip := pageLimit(p), 0
	if p.Cursor == "" {
		skip = min(max(p.Offset, 0), maxOffset)
	}
	at, err := parseCursor(p.Cursor)
	if err != nil {
		return jobs.List[jobs.Record]{}, err
	}
	var records []jobs.Record
	for len(records) < skip+limit {
		merged, more, err := s.merge(ctx, f, at, min(skip+limit-len(records), maxLimit))
		if err != nil {
			return jobs.List[jobs.Record]{}, err
		}
		records = append(records, merged...)
		if !more {
			at = nil
			break
		}
		if len(merged) == 0 {
			break // a long stretch without matches: the cursor goes on from here
		}
	}
	list := jobs.List[jobs.Record]{Items: records[min(skip, len(records)):], Total: -1, Next: at.String()}
	if err := s.addLive(ctx, list.Items); err != nil {
		return list, err
	}
	if countable(f) {
		list.Total, err = s.Count(ctx, f)
	}
	return list, err
}

// merge takes up to limit records from all shelves, newest first, and moves
// the cursor behind them. more is false when all shelves are at their end.
func (s *Store) merge(ctx context.Context, f jobs.Filter, at cursor, limit int) (records []jobs.Record, more bool, err error) {
	shelves := s.shelves(f)
	pages := make([]page, len(shelves))
	for i, sh := range shelves {
		if at[sh.name] == atEnd {
			pages[i].end = true
			continue
		}
		if pages[i], err = sh.read(ctx, f, position64{key: at[sh.name]}, limit); err != nil {
			return nil, false, err
		}
	}
	for len(records) < limit {
		newest := -1
		for i, p := range pages {
			if len(p.items) > 0 && (newest < 0 || p.items[0].when().After(pages[newest].items[0].when())) {
				newest = i
			}
		}
		if newest < 0 {
			break
		}
		p := &pages[newest]
		at[shelves[newest].name] = p.items[0].key
		records = append(records, p.items[0].Record)
		if p.items = p.items[1:]; len(p.items) == 0 && !p.end {
			break // what comes next on this shelf may be newer than the others'
		}
	}
	for i, p := range pages {
		switch {
		case len(p.items) > 0:
			more = true
		case p.end:
			at[shelves[i].name] = atEnd
		default:
			at[shelves[i].name], more = p.last, true
		}
	}
	return records, more, nil
}

// cursor is a position on each shelf by name.
type cursor map[string]int64

const atEnd = -1

func (c cursor) String() string {
	var parts []string
	for _, name := range []string{"w", "f", "r"} {
		if key, there := c[name]; there {
			parts = append(parts, name+strconv.FormatInt(key, 36))
		}
	}
	return strings.Join(parts, ".")
}

func parseCursor(text string) (cursor, error) {
	c := cursor{}
	if text == "" {
		return c, nil
	}
	for _, part := range strings.Split(text, ".") {
		if len(part) < 2 || !strings.Contains("wfr", part[:1]) {
			return nil, fmt.Errorf("%w: %q is no cursor of a list: take the one that the list gave", jobs.ErrInvalid, text)
		}
		key, err := strconv.ParseInt(part[1:], 36, 64)
		if err != nil || key < atEnd {
			return nil, fmt.Errorf("%w: %q is no cursor of a list: take the one that the list gave", jobs.ErrInvalid, text)
		}
		c[part[:1]] = key
	}
	return c, nil
}

// countable says that SQL alone can count the filter's jobs.
func countable(f jobs.Filter) bool {
	return len(f.Kinds) == 0 && len(f.UUIDs) == 0 && f.Text == "" && f.Cause == ""
}

// Count counts what Jobs would list. Where SQL cannot say which rows match, it
// reads them in steps.
func (s *Store) Count(ctx context.Context, f jobs.Filter) (int64, error) {
	var total int64
	for _, sh := range s.shelves(f) {
		n, err := s.countShelf(ctx, sh, f)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

func (s *Store) countShelf(ctx context.Context, sh shelf, f jobs.Filter) (n int64, err error) {
	if countable(f) {
		table, where, args := s.live(f)
		q := s.db
		switch sh.name {
		case "f":
			table, where, args = s.failedWhere(f)
		case "r":
			if len(f.Queues) == 0 && f.Since.IsZero() && f.Until.IsZero() {
				return s.tallied(ctx, f)
			}
			table, where, args = s.endedWhere(f)
			q = s.ownDB
		}
		_, err = s.one(ctx, q, []any{&n}, "SELECT COUNT(*) FROM "+table+" WHERE "+where, args...)
		if err != nil {
			err = fmt.Errorf("counting %s: %w", table, err)
		}
		return n, err
	}
	for from := (position64{}); ; {
		p, err := sh.read(ctx, f, from, maxLimit)
		if err != nil {
			return n, err
		}
		n += int64(len(p.items))
		if p.end {
			return n, nil
		}
		from.key = p.last
	}
}

// Job finds a job by its UUID, or by its row's number in jobs, then in
// failed_jobs, then in the history.
func (s *Store) Job(ctx context.Context, id string) (jobs.Record, error) {
	look := s.byUUID
	number, err := strconv.ParseInt(id, 10, 64)
	if err == nil {
		look = func(ctx context.Context, _ string) ([]found, error) { return s.byNumber(ctx, number) }
	}
	rows, err := look(ctx, id)
	if err != nil {
		return jobs.Record{}, err
	}
	if len(rows) == 0 {
		return jobs.Record{}, fmt.Errorf("no job has the id %.80q: %w", id, jobs.ErrNotFound)
	}
	records := []jobs.Record{rows[0].Record}
	err = s.addLive(ctx, records)
	return records[0], err
}

func (s *Store) byNumber(ctx context.Context, id int64) ([]found, error) {
	for _, read := range []func() ([]found, error){
		func() ([]found, error) { return s.queryLive(ctx, s.db, fmt.Sprintf("id = %d", id), nil, "", 1) },
		func() ([]found, error) { return s.queryFailed(ctx, s.db, fmt.Sprintf("id = %d", id), nil, "", 1) },
		func() ([]found, error) {
			return s.queryEnded(ctx, fmt.Sprintf("job_id = %d AND outcome IN ('completed','cancelled')", id), nil, " ORDER BY id DESC", 1)
		},
	} {
		if rows, err := read(); err != nil || len(rows) > 0 {
			return rows, err
		}
	}
	return nil, nil
}

func (s *Store) byUUID(ctx context.Context, uuid string) ([]found, error) {
	if uuid == "" || len(uuid) > 191 {
		return nil, nil
	}
	f := jobs.Filter{UUIDs: []string{uuid}}
	for _, sh := range []shelf{{"w", s.readLive}, {"f", s.readFailedRows}, {"r", s.readEnded}} {
		p, err := sh.read(ctx, f, position64{}, 1)
		if err != nil || len(p.items) > 0 {
			return p.items, err
		}
	}
	// Rows without a UUID have one that is derived from the row.
	p, err := sift(1, position64{}, func(from position64, step int) ([]found, error) {
		return s.queryLive(ctx, s.db, from.condition("id")+" AND "+s.t.shape().payload+` NOT LIKE '%"uuid"%'`, nil, from.order("id"), step)
	}, func(r found) bool { return r.UUID == uuid })
	return p.items, err
}

// matches is the part of a filter that SQL does not decide.
func (s *Store) matches(f jobs.Filter) func(found) bool {
	return func(r found) bool {
		if len(f.Kinds) > 0 && !slices.Contains(f.Kinds, r.Kind) && !slices.ContainsFunc(f.Kinds, func(k string) bool { return s.canonical(k) == r.Kind }) {
			return false
		}
		return len(f.UUIDs) == 0 || slices.Contains(f.UUIDs, r.UUID)
	}
}

// canonical resolves an alias of a kind.
func (s *Store) canonical(kind string) string {
	if e, known := s.o.Registry.Lookup(kind); known {
		return e.Kind
	}
	return kind
}

// like is a condition that a text stands in one of the columns, ignoring case.
func (s *Store) like(text string, columns ...string) (string, []any) {
	word := "LIKE"
	if s.d.name == "postgres" {
		word = "ILIKE"
	}
	pattern := "%" + strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(text) + "%"
	var parts []string
	var args []any
	for _, c := range columns {
		parts = append(parts, fmt.Sprintf("%s %s ? ESCAPE '!'", c, word))
		args = append(args, pattern)
	}
	return "(" + strings.Join(parts, " OR ") + ")", args
}

// conditions collects what must all hold.
type conditions struct {
	parts []string
	args  []any
}

func (c *conditions) add(part string, args ...any) {
	c.parts, c.args = append(c.parts, part), append(c.args, args...)
}

func (c *conditions) in(column string, words []string) {
	if len(words) > 0 {
		part, args := inWords(column, words)
		c.add(part, args...)
	}
}

func (c conditions) String() string { return cmp.Or(strings.Join(c.parts, " AND "), "1=1") }
