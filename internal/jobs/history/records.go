package history

import (
	"context"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// recordSource is a table in which jobs lie: waiting and running ones in jobs,
// failed ones in failed_jobs, completed and cancelled ones in cmsjobs_runs. Each
// is read by its primary key, so that a list costs the same at any depth and
// stays right while rows come and go.
type recordSource struct {
	name string
	// read returns matching records beyond a key, in the order of keys.
	read func(ctx context.Context, f jobs.Filter, from keysetCursor, limit int) (page, error)
}

// record is one job and its key in its record source.
type record struct {
	key       int64
	ended     int64 // see keysetCursor
	size      int64 // bytes of the payload
	claimable bool  // a claim would take it
	jobs.Record
}

// position is where a list goes on behind the record.
func (f record) position() keysetCursor { return keysetCursor{key: f.key, ended: f.ended} }

// when places a record among those of other sources.
func (f record) when() time.Time {
	if f.EndedAt.IsZero() {
		return f.EnqueuedAt
	}
	return f.EndedAt
}

// page is a part of a record source. last is the position of the last row that was
// read, matching or not; end says that there are no more.
type page struct {
	items []record
	last  keysetCursor
	end   bool
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

// countable says that SQL alone can count the filter's jobs.
func countable(f jobs.Filter) bool {
	return len(f.Types) == 0 && len(f.ExceptKinds) == 0 && len(f.UUIDs) == 0 && f.Text == "" &&
		f.Cause == "" && len(f.Workers) == 0 && len(f.Tags) == 0
}

// matches is the part of a filter that SQL does not decide.
func (s *Store) matches(f jobs.Filter) func(record) bool {
	return func(r record) bool {
		if len(f.Types) > 0 && !slices.Contains(f.Types, r.Type) && !slices.ContainsFunc(f.Types, func(k string) bool {
			return s.canonical(k) == r.Type
		}) {
			return false
		}
		if slices.Contains(f.ExceptKinds, r.Type) {
			return false
		}
		if len(f.Workers) > 0 && !ranOn(r.Worker, f.Workers) || len(f.Tags) > 0 && !tagged(r.Record, f.Tags) {
			return false
		}
		return len(f.UUIDs) == 0 || slices.Contains(f.UUIDs, r.UUID)
	}
}

// canonical resolves an alias of a type.
func (s *Store) canonical(kind string) string {
	if e, known := s.tables.Options.Registry.Lookup(kind); known {
		return e.Type
	}
	return kind
}

func each[A, B any](list []A, of func(A) B) []B {
	out := make([]B, len(list))
	for i, a := range list {
		out[i] = of(a)
	}
	return out
}

func unix(seconds int64) time.Time {
	if seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}
