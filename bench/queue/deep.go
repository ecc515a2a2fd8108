package main

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// scene is what stands in the queue before the jobs that are claimed.
type scene struct {
	name    string
	n       int
	payload string // SQL of the payload
	delay   int    // seconds
	open    bool   // beside a transaction that stays open, as a backup's does
}

const (
	ourPayload = `{"job":"bench.noop","type":"bench.noop","data":{}}`
	phpPayload = `{"displayName":"App\\\\Jobs\\\\Mail","job":"Illuminate\\\\Queue\\\\CallQueuedHandler@call","data":{}}`
)

var scenes = []scene{
	{"1,000 waiting", 1000, ourPayload, 0, false},
	{"100,000 waiting", 100_000, ourPayload, 0, false},
	{"100,000 waiting, a long transaction open", 100_000, ourPayload, 0, true},
	{"1,000,000 waiting", 1_000_000, ourPayload, 0, false},
	{"5,000,000 waiting", 5_000_000, ourPayload, 0, false},
	{"1,000,000 delayed before", 1_000_000, ourPayload, 86400, false},
	{"200,000 of PHP's before", 200_000, phpPayload, 0, false},
}

// claims times single claims in a scene. The first one, which has to find its
// way, stands apart.
func (o *ours) claims(ctx context.Context, s scene, n int) (first time.Duration, rest []time.Duration, err error) {
	if err := o.stage(ctx, s); err != nil {
		return 0, nil, err
	}
	if s.open {
		n *= 10 // its trace are the rows that cannot be purged
	}
	if err := o.fill(ctx, n+1, asItIs); err != nil {
		return 0, nil, err
	}
	if s.open {
		end, err := o.snapshot(ctx)
		if err != nil {
			return 0, nil, err
		}
		defer end()
	}
	fresh, err := o.reopened(ctx)
	if err != nil {
		return 0, nil, err
	}
	for i := range n {
		begun := time.Now()
		got, err := fresh.Claim(ctx, jobs.ClaimRequest{Worker: "bench", Queues: []string{"default"}, Limit: 1,
			Lease: time.Minute})
		took := time.Since(begun)
		if err != nil {
			return 0, nil, fmt.Errorf("claim %d: %w", i+1, err)
		}
		if len(got) != 1 && i > 0 {
			return 0, nil, fmt.Errorf("claim %d took %d jobs", i+1, len(got))
		}
		if len(got) == 1 {
			if _, err := fresh.Settle(ctx, []jobs.Settlement{
				{Claimed: got[0], Outcome: jobs.Completed, Worker: "bench"}}); err != nil {
				return 0, nil, err
			}
		}
		if i == 0 {
			first = took
		} else {
			rest = append(rest, took)
		}
	}
	slices.Sort(rest)
	return first, rest, nil
}

// snapshot opens a transaction that sees the table as it is now, until end.
func (o *ours) snapshot(ctx context.Context) (end func(), err error) {
	t, err := o.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		return nil, err
	}
	var n int
	err = t.QueryRowContext(ctx, "SELECT COUNT(*) FROM jobs").Scan(&n)
	return func() { _ = t.Rollback() }, err // it only read
}

// stage makes a scene, on top of the one that stands if it is of the same sort,
// by statements that each end well within the connection's time-out.
func (o *ours) stage(ctx context.Context, s scene) error {
	if o.standing.payload != s.payload || o.standing.delay != s.delay || o.standing.n > s.n {
		if err := o.empty(ctx); err != nil {
			return err
		}
		o.standing = scene{}
	}
	for left := s.n - o.standing.n; left > 0; left -= 50_000 {
		_, err := o.db.ExecContext(ctx, fmt.Sprintf(`INSERT INTO jobs (queue, payload, attempts, available_at,
			created_at)
			SELECT 'default', '%s', 0, UNIX_TIMESTAMP() + %d, UNIX_TIMESTAMP() FROM %s`, s.payload, s.delay,
			jobstest.Numbers(min(left, 50_000))))
		if err != nil {
			return err
		}
	}
	o.standing = s
	return nil
}

// at is the value below which this share of sorted times lies, in ms.
func at(times []time.Duration, part float64) float64 {
	return float64(times[int(part*float64(len(times)-1))].Microseconds()) / 1000
}
