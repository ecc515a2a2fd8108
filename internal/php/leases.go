package php

import (
	"context"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// holding is a lease that must be renewed, and since when it is held.
type holding struct {
	jobs.Lease
	since time.Time
}

// hold notes leases that must be renewed.
func (p *Pool) hold(list []Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.c.Now()
	for i := range list {
		p.held[list[i].Lease.ID] = holding{list[i].Lease, now}
	}
}

// leaseOf is the lease of a row as it was last written.
func (p *Pool) leaseOf(id int64) jobs.Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held[id].Lease
}

// drop forgets leases that are settled or released.
func (p *Pool) drop(ids ...int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		delete(p.held, id)
	}
}

// renew keeps the leases of everything that is held here.
func (p *Pool) renew(ctx context.Context) {
	ticker := time.NewTicker(p.c.Lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := p.renewOnce(ctx); err != nil && ctx.Err() == nil {
			p.c.Logger.Warn("leases of PHP's jobs not renewed", "event", "php.renew_failed", "queue", p.c.Queue,
				"error", err)
		}
	}
}

func (p *Pool) renewOnce(ctx context.Context) error {
	p.leases.Lock()
	defer p.leases.Unlock()
	p.mu.Lock()
	list := p.toRenew()
	p.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	renewed, err := p.c.Source.Renew(call, list, p.c.Lease)
	if err != nil {
		return fmt.Errorf("renewing %d leases: %w", len(list), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, l := range renewed {
		if l.ID == 0 {
			p.c.Logger.Warn("lease of a PHP job lost: another worker has it, or a person removed it",
				"event", "php.lease_lost", "queue", p.c.Queue, "id", list[i].ID)
			continue // its end will be refused
		}
		if _, still := p.held[l.ID]; still {
			p.held[l.ID] = holding{l, time.Time{}}
		}
	}
	p.note(p.journal.renewed(renewed))
	return nil
}

// toRenew are the leases that must be renewed now. Those of the last third are not, if
// their jobs are not handed out: they soon are, or are released. A pool that is killed
// between a renewal and its record in the journal costs such a job an attempt.
func (p *Pool) toRenew() (list []jobs.Lease) {
	young := p.c.Now().Add(-p.c.Lease / 3)
	for id, h := range p.held {
		if h.since.Before(young) || !p.journal.has(id) {
			list = append(list, h.Lease)
		}
	}
	return list
}

// callTimeout bounds one call of the Source.
const callTimeout = 30 * time.Second
