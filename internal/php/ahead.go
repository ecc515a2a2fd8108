package php

import (
	"sync"
	"time"
)

const (
	// aheadFor is how much work is claimed before it is asked for, and mostAhead
	// how many jobs a process that is.
	aheadFor  = 100 * time.Millisecond
	mostAhead = 200
	// heldAhead is how long jobs are kept that nobody asks for.
	heldAhead = time.Second
)

// claims are the jobs that are claimed and not handed out.
type claims struct {
	mu    sync.Mutex
	list  []Job
	moved time.Time // when a job came or went
	// looking says that a look at the queue is under way, stopping that the pool ends:
	// nothing is claimed or handed out any more.
	looking, stopping bool
}

// nextJob takes a job for a process that asks; nil where none is claimed.
func (p *Pool) nextJob() *Job {
	p.claims.mu.Lock()
	defer p.claims.mu.Unlock()
	c := &p.claims
	if len(c.list) == 0 || c.stopping {
		return nil
	}
	return p.first()
}

// nextToSend takes a job for a process that will soon ask; nil where another process may begin
// it sooner: where jobs are not short, or there are not enough of them for all. A job that
// killed a process is handed out on request.
func (p *Pool) nextToSend() *Job {
	average := time.Duration(p.average.Load())
	if average <= 0 || average > sendBelow || p.wanting.Load() > 0 {
		return nil
	}
	p.claims.mu.Lock()
	defer p.claims.mu.Unlock()
	c := &p.claims
	if c.stopping || len(c.list) < int(p.kept.Load()) || c.list[0].Fault != nil || c.list[0].Crashes > 0 ||
		len(c.list[0].Payload) > maxPayloadAhead {
		return nil
	}
	return p.first()
}

// first takes the first job; claims are locked, and there is one.
func (p *Pool) first() *Job {
	c := &p.claims
	j := &c.list[0]
	c.list, c.moved = c.list[1:], p.c.Now()
	if !c.looking && len(c.list) <= p.ahead()/2 {
		wake(p.asked)
	}
	return j
}

// putFirst puts a job back before all others. Where the pool ends it is released.
func (p *Pool) putFirst(j *Job) {
	if !p.claims.putFirst(j) {
		p.back <- *j
	}
}

func (c *claims) putFirst(j *Job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopping {
		c.list = append([]Job{*j}, c.list...)
	}
	return !c.stopping
}

// ahead is how many jobs are claimed before they are asked for. Long jobs are not
// claimed ahead at all, so that other hosts have them.
func (p *Pool) ahead() int {
	average := time.Duration(p.average.Load())
	if average <= 0 {
		return 0
	}
	return min(int(aheadFor/average), mostAhead) * p.c.Processes
}

// add puts in what a look has found.
func (c *claims) add(found []Job, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looking = false
	if len(found) > 0 {
		c.list, c.moved = append(c.list, found...), now
	}
}

// busy says whether a look is under way.
func (c *claims) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looking
}

// stale takes out everything, if for heldAhead nobody has asked for any of it.
func (c *claims) stale(now time.Time) []Job {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.moved) < heldAhead {
		return nil
	}
	return c.takeAll()
}

// stop takes out everything, and has nothing handed out any more.
func (c *claims) stop() []Job {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopping = true
	return c.takeAll()
}

func (c *claims) takeAll() []Job {
	list := c.list
	c.list = nil
	return list
}
