package php

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"
)

// Balancer moves processes to the queues whose jobs wait longest, between each pool's
// Config.Processes and Config.MaxProcesses.
type Balancer struct {
	Pools Pools
	// Most is how many processes all pools may have together, Memory how much memory,
	// in bytes; 0 is no limit. Memory is measured on Linux only.
	Most   int
	Memory int64
	// Every is the time between two decisions, in which a process should have started: 1 s.
	// A pool shrinks when a process had nothing to do for ten times as long.
	Every  time.Duration
	Logger *slog.Logger
}

const (
	// patience is how long jobs wait before a pool grows.
	patience = time.Second
	// idleRounds is for how many decisions a process must have had nothing to do.
	idleRounds = 10
	// usualProcess is how much memory a process is taken for while none is measured.
	usualProcess = 48 << 20
)

// standing is what is known of a pool when sizes are decided.
type standing struct {
	least, most, size int
	wait              time.Duration // of its oldest job; 0 while a process is free
	idle              bool          // a process had nothing to do for long
}

// Run balances until ctx ends.
func (b *Balancer) Run(ctx context.Context) {
	free := make([]time.Time, len(b.Pools)) // since when a process of each was free all the time
	every := cmp.Or(b.Every, time.Second)
	for wait(ctx, every) {
		list := make([]standing, len(b.Pools))
		for i, p := range b.Pools {
			list[i] = p.stand(ctx, &free[i], idleRounds*every)
		}
		sizes := decide(list, b.Most, b.fits())
		for i, p := range b.Pools {
			if sizes[i] == list[i].size {
				continue
			}
			free[i] = time.Time{}
			p.resize(sizes[i])
			b.Logger.Info("PHP processes of a queue changed", "event", "php.balanced", "queue", p.c.Queue, "from",
				list[i].size, "to", sizes[i], "wait", list[i].wait)
		}
	}
}

// stand looks at a pool.
func (p *Pool) stand(ctx context.Context, free *time.Time, idleFor time.Duration) standing {
	s := standing{least: p.c.Processes, most: max(p.c.MaxProcesses, p.c.Processes), size: int(p.size.Load())}
	if s.least == s.most {
		return s
	}
	now, wanting := p.c.Now(), p.wanting.Load()
	if wanting > 0 && p.drained.Load() {
		if free.IsZero() {
			*free = now
		}
		s.idle = now.Sub(*free) >= idleFor
		return s
	}
	*free = time.Time{}
	if p.busy.Load()+wanting < p.kept.Load() {
		return s // some are starting, or in maintenance mode
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var err error
	if s.wait, err = p.c.Source.Waits(call, p.c.Queue); err != nil && ctx.Err() == nil {
		p.c.Logger.Warn("not known how long PHP's jobs wait; the queue keeps its processes", "event",
			"php.balance_failed", "queue", p.c.Queue, "error", err)
	}
	return s
}

// fits is how many further processes there is memory for; negative where there are too
// many.
func (b *Balancer) fits() int {
	if b.Memory <= 0 {
		return 1 << 20
	}
	n, used := 0, int64(0)
	for _, p := range b.Pools {
		for _, x := range p.living() {
			if bytes := resident(x.cmd.Process.Pid); bytes > 0 {
				n, used = n+1, used+bytes
			}
		}
	}
	each := int64(usualProcess)
	if n > 0 {
		each = max(used/int64(n), 1)
	}
	left := b.Memory - used
	if left < 0 {
		return -1
	}
	return int(left / each)
}

// decide says how many processes each pool is to have. In all there are at most most (0
// is any number), and fits more than now.
func decide(list []standing, most, fits int) []int {
	sizes, sum := make([]int, len(list)), 0
	for i, s := range list {
		if sizes[i] = s.size; s.idle && s.size > s.least {
			sizes[i]--
		}
		sum += sizes[i]
	}
	space := fits
	if most > 0 {
		space = min(space, most-sum)
	}
	var needy []int
	for i, s := range list {
		if s.wait >= patience && s.size < s.most {
			needy = append(needy, i)
		}
	}
	slices.SortStableFunc(needy, func(a, b int) int { return cmp.Compare(list[b].wait, list[a].wait) })
	for _, i := range needy {
		more := min(max(list[i].size/2, 1), list[i].most-list[i].size, max(space, 0))
		sizes[i] += more
		space -= more
	}
	longest := time.Duration(0)
	if len(needy) > 0 {
		longest = list[needy[0]].wait
	}
	// Somebody else's process ends now; the needy one gets its own in the next round.
	if space < 0 || len(needy) > 0 && sizes[needy[0]] == list[needy[0]].size {
		if i := giver(list, sizes, longest, space < 0); i >= 0 {
			sizes[i]--
		}
	}
	return sizes
}

// giver is the pool whose jobs wait shortest of those that have a process more than they
// must have; -1 is none. Unless it must be, it is one whose jobs wait less than half as
// long as the longest: or processes would go to and fro.
func giver(list []standing, sizes []int, longest time.Duration, must bool) int {
	best := -1
	for i, s := range list {
		if sizes[i] > s.least && sizes[i] == s.size && (must || s.wait < longest/2) &&
			(best < 0 || s.wait < list[best].wait) {
			best = i
		}
	}
	return best
}
