package php

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// resize sets how many processes the pool keeps from now on. Those that are too many
// end when they ask for a job: none is taken from its job.
func (p *Pool) resize(n int) {
	p.size.Store(int64(n))
	select {
	case p.resized <- struct{}{}:
	default:
	}
}

// supervise keeps as many processes as resize says, until ctx ends and the last is gone.
func (p *Pool) supervise(ctx context.Context) {
	var keepers sync.WaitGroup
	defer keepers.Wait()
	for {
		for ; p.kept.Load() < p.size.Load() && ctx.Err() == nil; p.kept.Add(1) {
			keepers.Go(func() { p.keep(ctx) })
		}
		var retire chan<- struct{}
		if p.kept.Load() > p.size.Load() {
			retire = p.retire
		}
		select {
		case <-ctx.Done():
			return
		case <-p.resized:
		case retire <- struct{}{}:
			p.kept.Add(-1)
		}
	}
}

// keep keeps one process running until ctx ends or the process is retired.
func (p *Pool) keep(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		began := p.c.Now()
		x, err := p.start(ctx.Done())
		if err == nil {
			err = x.live()
			if x.retired {
				return
			}
			if x.ran > 0 || x.leaves {
				failures = 0
			}
		}
		if ctx.Err() != nil {
			return
		}
		if err == nil && (x.ran > 0 || x.leaves || p.c.Now().Sub(began) > time.Second) {
			failures = 0
			continue
		}
		failures++
		pause := min(100*time.Millisecond<<min(failures-1, 10), 10*time.Second)
		p.c.Logger.Warn("PHP process ended; another one is started", "event", "php.process_ended", "queue", p.c.Queue,
			"in", pause, "error", err)
		if p.rest(ctx, pause) {
			return
		}
	}
}

// rest waits for d; true when nobody wants another process.
func (p *Pool) rest(ctx context.Context, d time.Duration) (retired bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-p.retire:
		return true
	}
	return false
}

// born and dead note the processes that there are; living lists them.
func (p *Pool) born(x *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alive[x] = struct{}{}
}

func (p *Pool) dead(x *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.alive, x)
}

func (p *Pool) living() []*process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.alive))
}
