package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
)

// limit is one process of ours beside the bare loop that ends and reserves as many jobs
// in a transaction.
type limit struct {
	server string
	contest
	loop, ours figures
}

// contest names what is compared.
type contest struct {
	name   string
	rows   int // of the loop, a transaction
	how    setup
	queues string
}

// shipped is a worker as its settings are when nobody changes them.
const shipped = "default as shipped"

// contests are what is compared on each server. The jobs are plain INSERTs in the second
// of two queues, as those of a CMS.
func (o *options) contests() []contest {
	return []contest{
		{"1 slot, nothing ahead", 1, setup{1, 0}, o.queues},
		{shipped, min(o.prefetch, 200), setup{1, o.prefetch}, o.queues},
		{"100 slots, 2,000 ahead", 200, setup{100, 2000}, "default"},
	}
}

// besideLoop measures the loop and ours in turns; the medians count.
func (o *options) besideLoop(ctx context.Context, r *results, s *site) error {
	if o.rounds < 1 {
		return nil
	}
	for _, c := range o.contests() {
		jobs := o.jobs
		if c.rows == 1 {
			jobs /= 2
		} else if c.rows > 100 {
			jobs *= 3
		}
		var loops, ours []figures
		for range o.rounds {
			l, err := s.work(ctx, 1, jobs, func() (*exec.Cmd, error) {
				return child(ctx, "-child", s.dsn, "-loop", strconv.Itoa(c.rows), "-server", s.server.Name)
			})
			if err != nil {
				return fmt.Errorf("the bare loop, %d rows: %w", c.rows, err)
			}
			f, err := s.work(ctx, 1, jobs, func() (*exec.Cmd, error) {
				return child(ctx, "-child", s.dsn, "-slots", strconv.Itoa(c.how.slots), "-prefetch",
					strconv.Itoa(c.how.prefetch), "-queues", c.queues)
			})
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			say("%s: bare loop of %d rows %s; %s %s", s.server.Name, c.rows, l.short(), c.name, f.short())
			loops, ours = append(loops, l), append(ours, f)
		}
		r.limits = append(r.limits, limit{s.server.Name, c, median(loops), median(ours)})
	}
	return nil
}

// loopsName is the series of many bare loops.
const loopsName = "bare loops"

// loopRows is how many rows each of many bare loops ends in a transaction.
const loopRows = 64

// manyLoops measures n bare loops, each with separate rows: what so many processes cost the
// machine and the server, where none of them has to do with another.
func (o *options) manyLoops(ctx context.Context, r *results, s *site, n int) error {
	started := 0
	f, err := s.work(ctx, n, o.count(n), func() (*exec.Cmd, error) {
		started++
		return child(ctx, "-child", s.dsn, "-loop", strconv.Itoa(loopRows), "-server", s.server.Name, "-share",
			fmt.Sprintf("%d/%d", started-1, n))
	})
	if err != nil {
		return fmt.Errorf("%d bare loops: %w", n, err)
	}
	say("%s: %d bare loops: %s", s.server.Name, n, f.short())
	r.add(s.server.Name, loopsName, n, f)
	return nil
}

// median is the measurement with the middle rate.
func median(all []figures) figures {
	slices.SortFunc(all, func(a, b figures) int { return int(a.rate - b.rate) })
	return all[len(all)/2]
}
