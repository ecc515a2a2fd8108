package schedule

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// nextShown is how many coming ticks people see.
const nextShown = 5

// Schedules lists the timetable for people, in its order.
func (s *Scheduler) Schedules(ctx context.Context) ([]jobs.ScheduleRecord, error) {
	now, err := s.c.Ticker.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the database for the time: %w", err)
	}
	zone, err := s.c.Zone(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding the schedule's zone: %w", err)
	}
	changes, err := s.c.Edits.Changes(ctx)
	if err != nil {
		return nil, err
	}
	var list []jobs.ScheduleRecord
	for _, entry := range s.c.Entries {
		e := entry.changed(changes[entry.Name])
		r := jobs.ScheduleRecord{Name: e.Name, Type: e.Job.Type, Queue: e.Job.Queue, Cron: e.Cron, Zone: zone.String(),
			Data:   e.Job.Data,
			Paused: e.Paused, CatchUp: string(e.policy())}
		_, r.Changed = changes[e.Name]
		if calendar, err := ParseCalendar(e.Cron); err == nil && !e.Paused {
			r.Next = calendar.Next(now, zone, nextShown)
			r.Soon = calendar.Between(now, now.Add(jobs.SoonLength), zone)
		}
		if s.c.History != nil {
			ticks, err := s.c.History.Ticks(ctx, e.Name, jobs.Page{Limit: 1})
			if err != nil {
				return nil, err
			}
			if len(ticks.Items) > 0 {
				r.Last = &ticks.Items[0]
			}
		}
		list = append(list, r)
	}
	return list, nil
}

func (e Entry) policy() Policy {
	if e.Policy == "" {
		return Latest
	}
	return e.Policy
}

// find returns an entry as it stands.
func (s *Scheduler) find(ctx context.Context, name string) (Entry, error) {
	entries, err := s.entries(ctx)
	if err != nil {
		return Entry{}, err
	}
	for _, e := range entries {
		if e.Name == name {
			return e, nil
		}
	}
	return Entry{}, fmt.Errorf("there is no schedule entry %q: %w", name, jobs.ErrNotFound)
}

// RunSchedule enqueues an entry's job now, apart from its ticks.
func (s *Scheduler) RunSchedule(ctx context.Context, name string) (jobs.Receipt, error) {
	e, err := s.find(ctx, name)
	if err != nil {
		return jobs.Receipt{}, err
	}
	now, err := s.c.Ticker.Now(ctx)
	if err != nil {
		return jobs.Receipt{}, fmt.Errorf("asking the database for the time: %w", err)
	}
	record := jobs.TickRecord{Entry: name, Tick: now, At: now, Outcome: "manual", Note: "run by hand"}
	receipt, won, err := s.c.Ticker.TakeTick(ctx, record, &e.Job)
	if err == nil && !won {
		err = phrase.Errorf("%s was run by somebody else at this moment: %w", name, jobs.ErrConflict)
	}
	return receipt, err
}

// ChangeSchedule changes an entry for all instances; what is wrong with the
// change wraps jobs.ErrInvalid.
func (s *Scheduler) ChangeSchedule(ctx context.Context, name string, change jobs.ScheduleChange) error {
	if _, err := s.find(ctx, name); err != nil {
		return err
	}
	if change.Reset {
		return s.c.Edits.SaveChange(ctx, name, nil)
	}
	changes, err := s.c.Edits.Changes(ctx)
	if err != nil {
		return err
	}
	c := changes[name]
	if change.Cron != nil {
		if _, err := ParseCalendar(*change.Cron); err != nil {
			return jobs.Invalid(err)
		}
		c.Cron = change.Cron
	}
	if change.Paused != nil {
		c.Paused = change.Paused
	}
	if len(change.Data) > 0 {
		var object map[string]any
		if err := json.Unmarshal(change.Data, &object); err != nil {
			return jobs.Invalid(phrase.Errorf("the payload of %s must be a JSON object: %w", name, err))
		}
		c.Data = change.Data
	}
	return s.c.Edits.SaveChange(ctx, name, &c)
}

// Ticks lists an entry's ticks, newest first; "" lists those of all.
func (s *Scheduler) Ticks(ctx context.Context, name string, p jobs.Page) (jobs.List[jobs.TickRecord], error) {
	if s.c.History == nil {
		return jobs.List[jobs.TickRecord]{}, nil
	}
	return s.c.History.Ticks(ctx, name, p)
}
