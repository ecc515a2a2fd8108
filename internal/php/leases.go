package php

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// hold notes leases that must be renewed.
func (p *Pool) hold(list []Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range list {
		p.held[list[i].Lease.ID] = list[i].Lease
	}
}

// leaseOf is the lease of a row as it was last written.
func (p *Pool) leaseOf(id int64) jobs.Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held[id]
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
	list := slices.Collect(maps.Values(p.held))
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
			p.held[l.ID] = l
		}
	}
	p.note(p.journal.renewed(renewed))
	return nil
}

// callTimeout bounds one call of the Source.
const callTimeout = 30 * time.Second
