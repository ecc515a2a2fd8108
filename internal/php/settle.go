package php

import (
	"context"
	"time"
)

const (
	// maxBatch is how many ends are written at once.
	maxBatch = 500
	// settleEvery is the least time between two writes: where jobs end all the time,
	// those of this time are written together.
	settleEvery = 10 * time.Millisecond
)

// settle writes ends, the first at once, until the channel is closed.
func (p *Pool) settle(ctx context.Context) {
	var written time.Time
	for first := range p.ends {
		if rest := settleEvery - p.c.Now().Sub(written); rest > 0 {
			time.Sleep(rest) // bounded
		}
		batch := []ending{first}
	gather:
		for len(batch) < maxBatch {
			select {
			case more, open := <-p.ends:
				if !open {
					break gather
				}
				batch = append(batch, more)
			default:
				break gather
			}
		}
		p.write(ctx, batch)
		written = p.c.Now()
	}
}

// write settles a batch again and again while the database is away: settling the
// same again is harmless. When the pool stops it tries for Config.Grace more.
func (p *Pool) write(ctx context.Context, batch []ending) {
	pause := 50 * time.Millisecond
	var stopped time.Time
	for {
		results, ends, err := p.try(ctx, batch)
		if err == nil {
			p.account(batch, ends, results)
			return
		}
		p.c.Logger.Warn("outcomes of PHP's jobs not written; trying again", "event", "php.settle_failed",
			"queue", p.c.Queue, "jobs", len(batch), "error", err)
		if ctx.Err() != nil {
			if stopped.IsZero() {
				stopped = p.c.Now()
			} else if p.c.Now().Sub(stopped) > p.c.Grace {
				return // the jobs run again when their leases end
			}
		}
		wait(context.Background(), pause)
		pause = min(2*pause, 2*time.Second)
	}
}

// try writes a batch once, under the leases as they are now.
func (p *Pool) try(ctx context.Context, batch []ending) ([]error, []End, error) {
	p.leases.Lock()
	defer p.leases.Unlock()
	ends := make([]End, len(batch))
	for i, e := range batch {
		ends[i] = e.End
		ends[i].Job.Lease = p.leaseOf(e.Job.Lease.ID)
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	results, err := p.c.Source.Settle(call, ends)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range batch {
		p.drop(e.Job.Lease.ID)
	}
	return results, ends, nil
}

// account logs and counts what was written, and lets the processes forget it.
func (p *Pool) account(batch []ending, ends []End, results []error) {
	for i := range batch {
		e := &ends[i]
		batch[i].written(e.Job.Lease.ID)
		if results[i] != nil {
			p.c.Logger.Warn("outcome of a PHP job not written: its lease is lost, another worker has the job or a "+
				"person removed it", "event", "job.lease_lost", "type", e.Job.Job.Type, "id", e.Job.Job.ID,
				"uuid", e.Job.Job.UUID, "error", results[i])
			continue
		}
		p.c.Ended(*e)
	}
}
