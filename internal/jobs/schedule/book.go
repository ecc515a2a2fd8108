package schedule

import (
	"context"
	"errors"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// shown is how many ticks to come a list shows.
const shown = 5

// Schedules lists the entries in the timetable's order.
func (s *Scheduler) Schedules(ctx context.Context) ([]jobs.ScheduleRecord, error) {
	zone, err := s.currentZone(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.book.SettleTicks(ctx); err != nil {
		return nil, err
	}
	now, states, err := s.ticker.ReadSchedule(ctx, s.names())
	if err != nil {
		return nil, err
	}
	records := make([]jobs.ScheduleRecord, 0, len(s.lines))
	for _, given := range s.lines {
		state := states[given.Name]
		l, err := given.with(state)
		if err != nil {
			return nil, err
		}
		r := jobs.ScheduleRecord{Name: l.Name, Kind: l.Kind, Queue: l.Queue, Cron: l.Cron, Zone: zone.String(), Data: l.Data,
			Paused: l.Off || state.Paused, CatchUp: string(l.CatchUp), Changed: state.Cron != "" || len(state.Data) > 0, Last: state.Last}
		for at := now; !r.Paused && len(r.Next) < shown; {
			at = l.spec.Next(at, zone)
			r.Next = append(r.Next, at)
		}
		records = append(records, r)
	}
	return records, nil
}

// RunSchedule enqueues the entry's job now, apart from its ticks.
func (s *Scheduler) RunSchedule(ctx context.Context, name string) (jobs.Receipt, error) {
	l, err := s.find(name)
	if err != nil {
		return jobs.Receipt{}, err
	}
	_, states, err := s.ticker.ReadSchedule(ctx, []string{name})
	if err != nil {
		return jobs.Receipt{}, err
	}
	if l, err = l.with(states[name]); err != nil {
		return jobs.Receipt{}, err
	}
	return s.book.RunTick(ctx, name, l.job())
}

// ChangeSchedule changes an entry for all instances. What was due before the
// change is not caught up.
func (s *Scheduler) ChangeSchedule(ctx context.Context, name string, c jobs.ScheduleChange) error {
	l, err := s.find(name)
	if err != nil {
		return err
	}
	now, states, err := s.ticker.ReadSchedule(ctx, []string{name})
	if err != nil {
		return err
	}
	state := states[name]
	if c.Reset {
		state.Cron, state.Data, state.Paused = "", nil, false
	}
	if c.Cron != nil {
		state.Cron = *c.Cron
	}
	if len(c.Data) > 0 {
		state.Data = c.Data
	}
	if c.Paused != nil {
		if !*c.Paused && l.Off {
			return errors.New("the entry is switched off in the configuration: switch it on there")
		}
		state.Paused = *c.Paused
	}
	changed, err := l.with(state)
	if err != nil {
		return err
	}
	if err := changed.job().Check(); err != nil {
		return err
	}
	state.Since = now
	return s.book.ChangeEntry(ctx, state)
}

// Pause keeps an entry from being enqueued until Continue.
func (s *Scheduler) Pause(ctx context.Context, name string) error {
	paused := true
	return s.ChangeSchedule(ctx, name, jobs.ScheduleChange{Paused: &paused})
}

// Continue ends Pause. What was due meanwhile is not caught up.
func (s *Scheduler) Continue(ctx context.Context, name string) error {
	paused := false
	return s.ChangeSchedule(ctx, name, jobs.ScheduleChange{Paused: &paused})
}

// Ticks lists what became of an entry's ticks, newest first; "" lists all
// entries'.
func (s *Scheduler) Ticks(ctx context.Context, name string, p jobs.Page) (jobs.List[jobs.TickRecord], error) {
	if name != "" {
		if _, err := s.find(name); err != nil {
			return jobs.List[jobs.TickRecord]{}, err
		}
	}
	return s.book.Ticks(ctx, name, p)
}

// NextTicks lists the coming ticks of a cron expression, for forms and the
// command line.
func NextTicks(expression string, from time.Time, zone *time.Location, n int) ([]time.Time, error) {
	spec, err := ParseSpec(expression)
	if err != nil {
		return nil, err
	}
	ticks := make([]time.Time, 0, n)
	for range n {
		from = spec.Next(from, zone)
		ticks = append(ticks, from)
	}
	return ticks, nil
}
