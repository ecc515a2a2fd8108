package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/schedule"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// The sample site has worked for 30 days: runs of every type, the ticks of the timetable,
// failures of three causes, and how it grew. It is written by the queue's and the
// history's own stores, whose clock stands in the past meanwhile.

// pastDays is how long the demo's past is.
const pastDays = 30

// pastWorkers are who did it.
var pastWorkers = []string{"web1:812:1", "web1:812:1", "web2:640:1"}

// past writes what was, run by run in the order of their ends.
type past struct {
	site   Site
	r      *app.Services
	at     time.Time // what the database's clock shows
	now    time.Time
	random *rand.Rand
	tables *tables.Tables
	queue  *queue.Store
	number int64 // of the last job
}

// pastRun is a run that ended at a moment. A failed one is enqueued, claimed and settled,
// so that it is among the failed jobs.
type pastRun struct {
	entry      string // of the timetable, and its tick; "" where somebody else enqueued it
	tick       time.Time
	spec       jobs.Spec
	uuid       string // of a job that has several runs; "" is a new one
	attempt    int    // 0 is the first
	ended      time.Time
	took, wait time.Duration
	outcome    jobs.Outcome
	fault      string
	result     any
}

// addPast writes the past of a site that has none.
func addPast(ctx context.Context, r *app.Services, site Site, now time.Time) error {
	p := &past{site: site, r: r, now: now, at: now, random: rand.New(rand.NewPCG(seed, 30))}
	var err error
	if p.tables, err = tables.Open(ctx, r.DB, tables.Options{Registry: r.Registry, KeepData: 64 << 10,
		DatabaseClock: func() time.Time { return p.at }}); err != nil {
		return err
	}
	if p.queue, err = queue.New(ctx, p.tables); err != nil {
		return err
	}
	runs, err := p.scheduled(ctx)
	if err != nil {
		return err
	}
	runs = append(runs, p.ofEditors()...)
	runs = append(runs, p.faults()...)
	runs = slices.DeleteFunc(runs, func(x pastRun) bool { return !x.ended.Before(now.Add(-time.Minute)) })
	slices.SortStableFunc(runs, func(a, b pastRun) int { return a.ended.Compare(b.ended) })
	if err := p.write(ctx, runs); err != nil {
		return err
	}
	return p.sizes(ctx)
}

// scheduled are the runs of the timetable.
func (p *past) scheduled(ctx context.Context) ([]pastRun, error) {
	s, err := p.r.Scheduler()
	if err != nil {
		return nil, err
	}
	entries, err := s.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	zone, err := p.r.ScheduleZone(ctx)
	if err != nil {
		return nil, err
	}
	var runs []pastRun
	for _, e := range entries {
		c, err := schedule.ParseCalendar(e.Cron)
		if err != nil || e.Paused {
			continue
		}
		since := p.now.AddDate(0, 0, -pastDays)
		if next := c.Next(p.now, zone, 2); next[1].Sub(next[0]) < time.Hour {
			since = p.now.Add(-12 * time.Hour) // of every five minutes there are enough
		}
		for _, tick := range c.Between(since, p.now, zone) {
			x := p.usual(e.Type, tick)
			x.entry, x.tick = e.Name, tick
			x.spec.Type, x.spec.Data = e.Type, e.Data
			x.ended = tick.Add(p.about(4*time.Second) + x.took)
			runs = append(runs, x)
		}
	}
	return runs, nil
}

// write writes runs with their ticks. Between two of them its clock goes on.
func (p *past) write(ctx context.Context, runs []pastRun) error {
	for len(runs) > 0 {
		n := slices.IndexFunc(runs, func(x pastRun) bool { return x.outcome == jobs.Failed })
		if n < 0 {
			n = len(runs)
		}
		if err := p.tables.InTx(ctx, "writing the demo's past", func(t tables.Transaction) error {
			for _, x := range runs[:n] {
				if err := p.writeRun(ctx, t, x); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		if runs = runs[n:]; len(runs) > 0 {
			if err := p.fail(ctx, runs[0]); err != nil {
				return err
			}
			runs = runs[1:]
		}
	}
	return nil
}

// writeRun writes a line of the history, and the tick that caused it.
func (p *past) writeRun(ctx context.Context, t tables.Transaction, x pastRun) error {
	p.at = x.ended
	p.number++
	name := cmp.Or(x.uuid, uuid.NewString())
	var result json.RawMessage
	if x.result != nil {
		var err error
		if result, err = json.Marshal(x.result); err != nil {
			return err
		}
	}
	began := x.ended.Add(-x.took)
	run := tables.Run{Job: jobs.Job{ID: p.number, UUID: name, Type: x.spec.Type, Queue: p.queueOf(x.spec),
		Attempt: max(1, x.attempt), EnqueuedAt: began.Add(-x.wait)}, Outcome: x.outcome.String(), Worker: p.worker(),
		Lease:    name[:8],
		Duration: x.took, Wait: x.wait, Error: x.fault, Result: result, Data: x.spec.Data}
	if err := p.tables.InsertRuns(ctx, t.Own, []tables.Run{run}); err != nil || x.entry == "" {
		return err
	}
	return p.tick(ctx, t, x, name)
}

// tick writes what the timetable did.
func (p *past) tick(ctx context.Context, t tables.Transaction, x pastRun, name string) error {
	_, err := p.tables.Exec(ctx, t.Own, "INSERT INTO cmsjobs_ticks (entry, tick, at, uuid, outcome, note) VALUES "+
		"(?, ?, ?, ?, 'enqueued', '')", x.entry, x.tick.UnixMilli(), x.ended.Add(-x.took-x.wait).UnixMilli(), name)
	return err
}

// fail has a job fail for good.
func (p *past) fail(ctx context.Context, x pastRun) error {
	p.at = x.ended.Add(-x.took - x.wait)
	x.spec.MaxAttempts, x.spec.Queue = 1, p.queueOf(x.spec)
	given, err := p.r.Orders.Give(ctx, p.r.Registry, x.spec) // what the service makes can be retried, too
	if err != nil {
		return fmt.Errorf("ordering a job of the demo's past: %w", err)
	}
	receipts, err := p.queue.Enqueue(ctx, given...)
	if err != nil {
		return fmt.Errorf("enqueuing a job of the demo's past: %w", err)
	}
	p.at, p.number = x.ended, max(p.number, receipts[0].ID)
	claimed, err := p.queue.Claim(ctx, jobs.ClaimRequest{Worker: p.worker(), Queues: []string{x.spec.Queue},
		Limit: 1, Lease: time.Minute})
	if err != nil {
		return fmt.Errorf("claiming a job of the demo's past: %w", err)
	}
	if len(claimed) != 1 {
		return fmt.Errorf("claiming a job of the demo's past: the queue %s has %d", x.spec.Queue, len(claimed))
	}
	results, err := p.queue.Settle(ctx, []jobs.Settlement{{Claimed: claimed[0], Outcome: jobs.Failed, Error: x.fault,
		Worker: p.worker(), Started: x.ended.Add(-x.took), Duration: x.took, Wait: x.wait}})
	if err != nil {
		return err
	}
	if results[0] != nil || x.entry == "" {
		return results[0]
	}
	return p.tables.InTx(ctx, "writing the demo's past", func(t tables.Transaction) error {
		return p.tick(ctx, t, x, receipts[0].UUID)
	})
}

// queueOf is the queue of a job.
func (p *past) queueOf(s jobs.Spec) string {
	entry, _ := p.r.Registry.Lookup(s.Type)
	return cmp.Or(s.Queue, entry.Queue, p.r.Config.Queue.Default)
}

func (p *past) worker() string { return pastWorkers[p.random.IntN(len(pastWorkers))] }

// about is a length around d, with now and then a long one.
func (p *past) about(d time.Duration) time.Duration {
	factor := 0.6 + 0.8*p.random.Float64()
	if p.random.IntN(25) == 0 {
		factor *= 3
	}
	return time.Duration(factor * float64(d)).Truncate(time.Millisecond)
}

// sizes has the site grow to what it is today.
func (p *past) sizes(ctx context.Context) error {
	kept := history.New(p.tables)
	for day := pastDays; day > 0; day-- {
		p.at = p.now.AddDate(0, 0, -day)
		grown := int64(pastDays-day) << 10
		sizes := map[string]int64{"media": 640<<10 + 24*grown, "table": 900<<10 + 11*grown,
			"backup": 1100<<10 + 20*grown, "logs": 180<<10 + 7*(grown%(7<<10)), "cache": 60<<10 + 3*(grown%(5<<10))}
		if err := kept.KeepSizes(ctx, sizes); err != nil {
			return err
		}
	}
	return nil
}
