package schedule

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"
)

// askSeenEvery is how often the database is asked, and told that the entries
// are still there; Ticker.FirstSeen must bear a longer silence.
const askSeenEvery = 5 * time.Minute

// seen is what was last asked about the beginnings of entries.
type seen struct {
	mu    sync.Mutex
	crons map[string]string // by entry
	begun map[string]time.Time
	asked time.Time // by the database's clock
}

// begin tells each entry since when it is as it is. An entry has no ticks
// before: a daily newsletter that is added at ten for nine goes out tomorrow.
func (s *Scheduler) begin(ctx context.Context, entries []Entry, now time.Time) error {
	crons := make(map[string]string, len(entries))
	for _, e := range entries {
		crons[e.Name] = e.Cron
	}
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	if age := now.Sub(s.seen.asked); !maps.Equal(crons, s.seen.crons) || age < 0 || age >= askSeenEvery {
		begun, err := s.c.Ticker.FirstSeen(ctx, crons)
		if err != nil {
			return fmt.Errorf("asking since when the schedule is as it is: %w", err)
		}
		s.seen.crons, s.seen.begun, s.seen.asked = crons, begun, now
	}
	for i := range entries {
		entries[i].begun = s.seen.begun[entries[i].Name]
	}
	return nil
}
