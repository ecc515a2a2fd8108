package php

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// claimer claims jobs, some ahead, and wakes the processes that wait for one.
type claimer struct {
	*Pool
	next    time.Time // no look at the queue before it
	trouble time.Duration
	// woken says that Wake received while a look was under way, which may have come
	// before the row.
	woken bool
	found chan looked
}

// looked is what one look at the queue gave.
type looked struct {
	jobs []Job
	err  error
}

// claim runs until stop is closed; after ctx has ended it only releases.
func (p *Pool) claim(ctx context.Context, stop <-chan struct{}) {
	c := &claimer{Pool: p, found: make(chan looked, 1)}
	for done := ctx.Done(); ; {
		ready, rest := c.lookIfWanted(ctx, p.c.Now())
		pause := time.NewTimer(rest)
		select {
		case ready <- struct{}{}:
		case l := <-c.found:
			c.take(l)
		case j := <-p.back:
			c.release([]Job{j})
		case <-p.c.Wake:
			c.next, c.woken = time.Time{}, c.claims.busy()
		case <-p.asked:
		case <-pause.C:
			c.release(c.claims.stale(p.c.Now()))
		case <-done:
			done = nil
			c.release(c.claims.stop())
		case <-stop:
			pause.Stop()
			c.finish()
			return
		}
		pause.Stop()
	}
}

// lookIfWanted starts a look at the queue, one at a time. It says whom to wake, nobody
// where there is no job, and how long the claimer may rest if nothing happens.
func (c *claimer) lookIfWanted(ctx context.Context, now time.Time) (ready chan<- struct{}, rest time.Duration) {
	c.claims.mu.Lock()
	defer c.claims.mu.Unlock()
	s := &c.claims
	if n := c.want(len(s.list)); n > 0 && !s.stopping && !s.looking && !now.Before(c.next) {
		s.looking = true
		go func() { c.found <- c.look(ctx, n) }()
	}
	if len(s.list) == 0 || s.stopping {
		return nil, max(c.next.Sub(now), c.c.Poll)
	}
	return c.ready, max(heldAhead-now.Sub(s.moved), time.Millisecond)
}

// finish waits for a look that is under way, and releases what it found.
func (c *claimer) finish() {
	if c.claims.busy() {
		c.take(<-c.found)
	}
	c.release(c.claims.stop())
}

// want is how many jobs should be claimed now, where there are some. With nobody at
// work there is nobody to claim ahead for.
func (c *claimer) want(there int) int {
	wanting := int(c.wanting.Load())
	if wanting == 0 && c.busy.Load() == 0 {
		return 0
	}
	ahead := c.ahead()
	if there > ahead/2 {
		return 0
	}
	return wanting + ahead - there
}

// look claims up to n jobs.
func (p *Pool) look(ctx context.Context, n int) looked {
	// A claim goes on when the pool stops, so that its answer is known.
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	var before []jobs.Lease
	list, err := p.c.Source.Claim(call, Request{Queue: p.c.Queue, Limit: n, Lease: p.c.Lease,
		Before: func(leases []jobs.Lease) {
			before = append(before, leases...)
			p.note(p.journal.add(leases))
		}})
	if err == nil {
		p.drained.Store(len(list) < n)
	}
	p.hold(list)
	for _, l := range before {
		if !slices.ContainsFunc(list, func(j Job) bool { return j.Lease.ID == l.ID }) {
			p.note(p.journal.close(l.ID)) // another was faster
		}
	}
	return looked{list, err}
}

// take keeps what a look found, and sets the time of the next.
func (c *claimer) take(l looked) {
	now := c.c.Now()
	c.claims.add(l.jobs, now)
	switch {
	case l.err != nil && !errors.Is(l.err, jobs.ErrUnseen):
		c.trouble = min(max(2*c.trouble, c.c.Poll), 2*time.Second)
		c.next = now.Add(c.trouble)
		c.c.Logger.Warn("PHP's jobs not claimed", "event", "php.claim_failed", "queue", c.c.Queue, "error", l.err)
	case len(l.jobs) == 0 && l.err == nil:
		c.trouble, c.next = 0, now.Add(c.c.Poll)
		if c.woken {
			c.next = time.Time{}
		}
	default:
		c.trouble, c.next = 0, time.Time{}
	}
	c.woken = false
}

// release releases jobs uncounted. What cannot be released runs again when
// its lease ends.
func (c *claimer) release(list []Job) {
	if len(list) == 0 {
		return
	}
	c.leases.Lock()
	defer c.leases.Unlock()
	for i := range list {
		id := list[i].Lease.ID
		list[i].Lease = c.leaseOf(id)
		c.drop(id)
	}
	call, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	if err := c.c.Source.Release(call, list); err != nil {
		c.c.Logger.Warn("PHP's jobs not released; they run when their leases end", "event", "php.release_failed",
			"queue", c.c.Queue, "jobs", len(list), "error", err)
	}
	for i := range list {
		c.note(c.journal.close(list[i].Lease.ID))
	}
}
