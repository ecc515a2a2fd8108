package phprows

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/php"
)

// Store are PHP's rows of the jobs table. It is safe for concurrent use.
type Store struct {
	*tables.Tables
	connection string // of failed_jobs
	worker     string
	renewals   *tables.Renewals

	mu      sync.Mutex       // never held while the database is asked
	cursors map[string]*look // by queue
	inDoubt map[int64]doubt  // claims whose answer was lost, by row
}

var _ php.Source = (*Store)(nil)

// New is the store on tables that are open. connection is what failed_jobs names,
// worker is who claims.
func New(t *tables.Tables, connection, worker string) (*Store, error) {
	if t.Layout.Name() != tables.Stock {
		return nil, errors.New("PHP's jobs are in Laravel's own jobs table only: this table has the extended layout")
	}
	return &Store{Tables: t, connection: connection, worker: worker,
		renewals: tables.NewRenewals(t), cursors: map[string]*look{}, inDoubt: map[int64]doubt{}}, nil
}

func (s *Store) log() *slog.Logger { return s.Options.Logger }

// row is a row of PHP's as it was read.
type row struct {
	tables.Candidate
	envelope
	whole bool
}

// doubt is a row of a claim whose COMMIT was not answered: it may be claimed with
// nobody to run it. A stock row does not say by whom, so it is looked at when a
// living holder has renewed its lease or given up.
type doubt struct {
	lease jobs.Lease
	at    time.Time // of Options.Clock
}

// job is the row for the pool.
func (s *Store) job(r *row, queue, token string, until int64) php.Job {
	j := php.Job{Backoff: r.backoff()}
	j.Lease = s.leaseOn(r, token, until)
	j.Payload = r.Payload
	j.Rescued = r.Rescued
	j.Job = s.described(r, queue, j.Lease.Attempt)
	_, j.NoTimeout = r.timeout()
	return j
}

// leaseOn is the lease that a claim of the row writes. attempts stops at what its
// column holds.
func (s *Store) leaseOn(r *row, token string, until int64) jobs.Lease {
	attempt := r.Attempts + 1
	if full := s.Layout.Table().AttemptsLimit; full > 0 {
		attempt = min(attempt, full)
	}
	return jobs.Lease{ID: r.ID, Token: token, Attempt: attempt, ReservedAt: until}
}

// described is the row as the history has it.
func (s *Store) described(r *row, queue string, attempt int) jobs.Job {
	id := r.UUID
	if id == "" || len(id) > 191 || id != tables.ValidText(id) {
		id = tables.DerivedUUID(s.Layout.Table().Plain, r.ID, r.Created)
	}
	name := r.DisplayName
	if name == "" {
		name = r.envelope.Job
	}
	limit, _ := r.timeout()
	return jobs.Job{ID: r.ID, UUID: id, Type: tables.CutWord(name), Queue: queue, Attempt: attempt, Timeout: limit,
		RunAt: time.Unix(r.Due, 0).UTC(), EnqueuedAt: time.Unix(r.Created, 0).UTC()}
}
