package history

import (
	"context"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Throughput counts ended runs in the latest steps of equal length, oldest first.
// The last step has only begun; it is now by the database's clock, whatever the
// process' clock says. Steps without runs are listed with zeros. Steps of half hours
// or a multiple reach back further than the history: to 400 days.
func (s *Store) Throughput(ctx context.Context, steps int, step time.Duration) ([]jobs.Throughput, error) {
	if steps > 10_000 {
		return nil, fmt.Errorf("%d steps are too many: take longer ones", steps)
	}
	first, err := s.firstStep(ctx, steps, step)
	if err != nil || steps < 1 {
		return nil, err
	}
	width := step.Milliseconds()
	sums := make([]sums, steps)
	add := func(f flow) {
		if i := f.at - first; i >= 0 && i < int64(steps) {
			sums[i].add(f)
		}
	}
	from, end := first*width, (first+int64(steps))*width
	if width%flowWidth == 0 {
		until, err := s.bringFlows(ctx)
		if err == nil && until > from {
			err = s.eachCounted(ctx, width, from, until, add)
		}
		if err != nil {
			return nil, err
		}
		from = max(from, until)
	}
	if err := s.eachFlow(ctx, width, from, end, add); err != nil {
		return nil, err
	}
	flows := make([]jobs.Throughput, steps)
	for i, x := range sums {
		flows[i] = x.flow(tables.UnixMilli((first + int64(i)) * width))
	}
	return flows, nil
}

// firstStep is the number of the first of the latest steps of equal length. The last
// one has begun, by the database's clock.
func (s *Store) firstStep(ctx context.Context, steps int, step time.Duration) (int64, error) {
	if step < time.Second {
		return 0, fmt.Errorf("a step of %s is too short: at least 1s", step)
	}
	now, err := s.Now(ctx)
	if err != nil {
		return 0, fmt.Errorf("asking the database for the time: %w", err)
	}
	return now.UnixMilli()/step.Milliseconds() + 1 - int64(steps), nil
}

// sums are what ended in one step; ended, duration and wait make the averages.
type sums struct{ completed, attempts, failed, ended, duration, wait int64 }

func (x *sums) add(f flow) {
	switch {
	case f.outcome == jobs.Completed.String():
		x.completed += f.ended
	case jobs.FailedAttempt(f.outcome):
		x.attempts += f.ended
	}
	if f.outcome == jobs.Failed.String() {
		x.failed += f.ended
	}
	if f.outcome != jobs.Cancelled.String() { // most were cancelled while they waited, and took no time
		x.ended, x.duration, x.wait = x.ended+f.ended, x.duration+f.duration, x.wait+f.wait
	}
}

func (x sums) flow(at time.Time) jobs.Throughput {
	n := max(x.ended, 1)
	return jobs.Throughput{At: at, Completed: x.completed, FailedAttempts: x.attempts, Failed: x.failed,
		Duration: time.Duration(x.duration/n) * time.Millisecond, Wait: time.Duration(x.wait/n) * time.Millisecond}
}
