package schedule

import (
	"context"
	"fmt"
	"time"
)

// Late is an entry whose tick was due and was not taken.
type Late struct {
	Entry string
	Tick  time.Time // the oldest that was due
}

// Overdue lists the entries of which a tick was due longer ago than grace, and
// neither taken nor written down as missed or skipped. An entry that never had
// a tick is none: nobody knows since when it should.
func (s *Scheduler) Overdue(ctx context.Context, grace time.Duration) ([]Late, error) {
	if s.c.Newest == nil {
		return nil, nil
	}
	now, err := s.c.Ticker.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the database for the time: %w", err)
	}
	zone, err := s.c.Zone(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding the schedule's zone: %w", err)
	}
	entries, err := s.entries(ctx)
	if err != nil {
		return nil, err
	}
	newest, err := s.c.Newest(ctx, s.Names())
	if err != nil {
		return nil, err
	}
	var late []Late
	for _, e := range entries {
		last := newest[e.Name]
		calendar, err := ParseCalendar(e.Cron)
		if e.Paused || last.IsZero() || err != nil {
			continue
		}
		if e.since.After(last) {
			last = e.since
		}
		due := calendar.Next(last, zone, 1)
		if len(due) > 0 && now.Sub(due[0]) > grace {
			late = append(late, Late{e.Name, due[0]})
		}
	}
	return late, nil
}

// Names are the entries of the timetable, in its order.
func (s *Scheduler) Names() []string {
	names := make([]string, len(s.c.Entries))
	for i, e := range s.c.Entries {
		names[i] = e.Name
	}
	return names
}
