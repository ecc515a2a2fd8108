package php

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

const (
	// aheadFor is how much work is claimed before it is asked for, and mostAhead
	// how many jobs a process that is.
	aheadFor  = 100 * time.Millisecond
	mostAhead = 200
	// heldAhead is how long jobs are kept that nobody asks for.
	heldAhead = time.Second
)

// claimer hands out jobs and claims them, some ahead.
type claimer struct {
	*Pool
	ahead   []Job
	moved   time.Time // when a job came or went
	next    time.Time // no look at the queue before it
	trouble time.Duration
	looking bool
	// woken says that Wake received while a look was under way, which may have come
	// before the row.
	woken bool
	// stopping says that the pool ends: nothing is claimed or handed out any more.
	stopping bool
	found    chan looked
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
		now := p.c.Now()
		c.lookIfWanted(ctx, now)
		out, first := c.offer()
		pause := time.NewTimer(c.pause(now))
		select {
		case out <- first:
			c.ahead, c.moved = c.ahead[1:], now
		case l := <-c.found:
			c.take(l)
		case j := <-p.back:
			c.release([]Job{j})
		case <-p.c.Wake:
			c.next, c.woken = time.Time{}, c.looking
		case <-p.asked:
		case <-pause.C:
			if len(c.ahead) > 0 && p.c.Now().Sub(c.moved) >= heldAhead {
				c.giveBack()
			}
		case <-done:
			done, c.stopping = nil, true
			c.giveBack()
		case <-stop:
			pause.Stop()
			c.finish()
			return
		}
		pause.Stop()
	}
}

// lookIfWanted starts a look at the queue, one at a time.
func (c *claimer) lookIfWanted(ctx context.Context, now time.Time) {
	if c.stopping || c.looking || now.Before(c.next) {
		return
	}
	if n := c.want(); n > 0 {
		c.looking = true
		go func() { c.found <- c.look(ctx, n) }()
	}
}

// offer is the job that the next process that asks gets; nil where there is none.
func (c *claimer) offer() (chan<- *Job, *Job) {
	if len(c.ahead) == 0 || c.stopping {
		return nil, nil
	}
	return c.jobs, &c.ahead[0]
}

// finish waits for a look that is under way, and releases what it found.
func (c *claimer) finish() {
	if c.looking {
		c.take(<-c.found)
	}
	c.giveBack()
}

// want is how many jobs should be claimed now. With nobody at work there is
// nobody to claim ahead for; long jobs are not claimed ahead at all, so that
// other hosts have them.
func (c *claimer) want() int {
	wanting, ahead := int(c.wanting.Load()), 0
	if wanting == 0 && c.busy.Load() == 0 {
		return 0
	}
	if average := time.Duration(c.average.Load()); average > 0 {
		ahead = min(int(aheadFor/average), mostAhead) * c.c.Processes
	}
	if len(c.ahead) > ahead/2 {
		return 0
	}
	return wanting + ahead - len(c.ahead)
}

// pause is how long the claimer may rest if nothing happens.
func (c *claimer) pause(now time.Time) time.Duration {
	if len(c.ahead) > 0 {
		return heldAhead
	}
	return max(c.next.Sub(now), c.c.Poll)
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
	c.looking = false
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
	if len(l.jobs) > 0 {
		c.ahead, c.moved = append(c.ahead, l.jobs...), now
	}
}

func (c *claimer) giveBack() {
	c.release(c.ahead)
	c.ahead = nil
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
