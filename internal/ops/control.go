package ops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/redact"
)

// Queues pauses and continues queues for all workers.
type Queues interface {
	Pause(ctx context.Context, queue, by string) error
	// Continue says whether the queue was paused.
	Continue(ctx context.Context, queue string) (was bool, err error)
}

// Workers lists workers, tells them to stop and how many slots to have.
type Workers interface {
	Workers(ctx context.Context) ([]jobs.WorkerRecord, error)
	// Stop makes one worker finish what it runs and exit; known is false when
	// there is none with this id.
	Stop(ctx context.Context, id string) (known bool, err error)
	// Restart makes all of them do so; their supervisor starts them again.
	Restart(ctx context.Context) error
	// Scale gives one worker so many slots, or each of them where id is "", those that
	// start later too; 0 takes that back.
	Scale(ctx context.Context, id string, slots int) (known bool, err error)
	// OrderedSlots is how many slots each worker was given; 0 is none.
	OrderedSlots(ctx context.Context) (int, error)
}

// Schedules shows and changes schedule entries.
type Schedules interface {
	Schedules(ctx context.Context) ([]jobs.ScheduleRecord, error)
	// RunSchedule enqueues the entry's job now, besides its ticks.
	RunSchedule(ctx context.Context, name string) (jobs.Receipt, error)
	// ChangeSchedule refuses a cron line that cannot be read.
	ChangeSchedule(ctx context.Context, name string, change jobs.ScheduleChange) error
	Ticks(ctx context.Context, name string, p jobs.Page) (jobs.List[jobs.TickRecord], error)
}

// Control pauses queues, stops workers and changes the schedule. Who may do it is
// asked before.
type Control struct {
	Queues    Queues
	Workers   Workers
	Schedules Schedules
	// Known lists the queues that a job, worker, type or setting has.
	Known func(context.Context) ([]string, error)
}

// Pause lets no worker take jobs from queues. by is who asked. A name that nothing
// knows is refused before any is paused, unless force is set: most are mistyped,
// and a pause of them would stop nothing.
func (c Control) Pause(ctx context.Context, queues []string, by string, force bool) error {
	if err := c.mayPause(ctx, queues, force); err != nil {
		return err
	}
	for _, queue := range queues {
		if err := c.Queues.Pause(ctx, queue, by); err != nil {
			return fmt.Errorf("pausing the queue %s: %w", queue, err)
		}
	}
	return nil
}

func (c Control) mayPause(ctx context.Context, queues []string, force bool) error {
	known, err := c.Known(ctx)
	if err != nil {
		return fmt.Errorf("listing queues: %w", err)
	}
	for _, queue := range queues {
		switch {
		case slices.Contains(known, queue):
		case force:
			if err := cmp.Or(checkQueue("name", queue), notTooMany("name", known, queue)); err != nil {
				return err
			}
			known = append(known, queue)
		default:
			return notFound("name", "No job, worker or setting knows the queue %q; known are %s. To pause it "+
				"nevertheless, force it.",
				redact.Clip(queue, 80), strings.Join(known, ", "))
		}
	}
	return nil
}

// Continue ends the pause of a queue. was is false where it was not paused.
func (c Control) Continue(ctx context.Context, queue string) (was bool, err error) {
	if was, err = c.Queues.Continue(ctx, queue); err != nil {
		return false, fmt.Errorf("continuing the queue %s: %w", queue, err)
	}
	return was, nil
}

// StopWorker makes one worker finish what it runs and exit.
func (c Control) StopWorker(ctx context.Context, id string) error {
	known, err := c.Workers.Stop(ctx, id)
	if err == nil && !known {
		err = jobs.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("stopping the worker %s: %w", id, err)
	}
	return nil
}

// RestartWorkers makes all workers finish what they run and exit. It says how
// many live ones there are.
func (c Control) RestartWorkers(ctx context.Context) (alive int64, err error) {
	list, err := c.Workers.Workers(ctx)
	if err == nil {
		err = c.Workers.Restart(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("restarting workers: %w", err)
	}
	for _, w := range list {
		if w.Alive {
			alive++
		}
	}
	return alive, nil
}

// Scale gives a worker so many slots: more begin at once, and fewer interrupt no job. It
// has them for as long as it lives, and 0 takes the order back. Where id is "" it is
// each worker, those that start later too, in place of the orders before. It says how
// many live workers follow.
func (c Control) Scale(ctx context.Context, id string, slots int) (workers int64, err error) {
	if slots < 0 || slots > jobs.MaxSlots {
		return 0, invalid("slots", "A worker has from 1 to %d slots, not %d.", jobs.MaxSlots, slots)
	}
	list, err := c.Workers.Workers(ctx)
	if err != nil {
		return 0, fmt.Errorf("listing workers: %w", err)
	}
	if workers, err = followers(list, id, slots); err != nil {
		return 0, err
	}
	known := id == "" || workers > 0
	if known {
		known, err = c.Workers.Scale(ctx, id, slots)
	}
	if err == nil && !known {
		err = jobs.ErrNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("changing the slots of %s: %w", cmp.Or(id, "all workers"), err)
	}
	return workers, nil
}

// followers counts the live workers that so many slots concern: all that run types, or
// the one with the id, which may refuse them.
func followers(list []jobs.WorkerRecord, id string, slots int) (n int64, err error) {
	for _, w := range list {
		switch {
		case id == "" && w.Alive && w.RunsTypes():
			n++
		case id == "" || w.ID != id:
		case !w.RunsTypes():
			return 0, conflict("This worker only runs jobs of PHP: its processes are set in php.queues.")
		case slots > w.MaxSlots:
			return 0, invalid("slots", "This worker takes at most %d slots, not %d.", w.MaxSlots, slots)
		default:
			n = 1
		}
	}
	return n, nil
}

// Schedule finds an entry by its name.
func (c Control) Schedule(ctx context.Context, name string) (jobs.ScheduleRecord, error) {
	list, err := c.Schedules.Schedules(ctx)
	if err != nil {
		return jobs.ScheduleRecord{}, fmt.Errorf("listing the schedule: %w", err)
	}
	for _, r := range list {
		if r.Name == name {
			return r, nil
		}
	}
	return jobs.ScheduleRecord{}, fmt.Errorf("the schedule entry %q: %w", name, jobs.ErrNotFound)
}

// RunSchedule enqueues an entry's job now.
func (c Control) RunSchedule(ctx context.Context, name string) (jobs.Receipt, error) {
	receipt, err := c.Schedules.RunSchedule(ctx, name)
	if err != nil {
		return receipt, fmt.Errorf("running the schedule entry %s: %w", name, err)
	}
	return receipt, nil
}

// ChangeSchedule changes an entry and returns it as it is then.
func (c Control) ChangeSchedule(ctx context.Context, name string, change jobs.ScheduleChange) (jobs.ScheduleRecord,
	error) {
	if err := c.Schedules.ChangeSchedule(ctx, name, change); err != nil {
		return jobs.ScheduleRecord{}, fmt.Errorf("changing the schedule entry %s: %w", name, err)
	}
	return c.Schedule(ctx, name)
}

// OnlyPauses says that a change lets an entry's ticks pass and does nothing
// else: it makes no job run.
func OnlyPauses(c jobs.ScheduleChange) bool {
	return c.Paused != nil && *c.Paused && c.Cron == nil && c.Data == nil && !c.Reset
}
