package schedule

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"
)

// Run rings until ctx ends: once at once, so that a restart makes up for what
// it missed, then every Config.Every. gocron is the clock; it keeps no state.
func (s *Scheduler) Run(ctx context.Context) error {
	clock, err := gocron.NewScheduler(gocron.WithStopTimeout(10 * time.Second))
	if err != nil {
		return fmt.Errorf("starting the clock: %w", err)
	}
	// One ring at a time: a slow database must not pile them up.
	_, err = clock.NewJob(gocron.DurationJob(s.c.Every), gocron.NewTask(func() { s.ringLogged(ctx) }),
		gocron.WithSingletonMode(gocron.LimitModeReschedule), gocron.WithStartAt(gocron.WithStartImmediately()))
	if err != nil {
		return fmt.Errorf("setting the clock: %w", err)
	}
	clock.Start()
	s.c.Logger.Info("scheduler started", "event", "scheduler.started", "entries", len(s.c.Entries))
	<-ctx.Done()
	return clock.Shutdown()
}

// ringTimeout bounds one ring.
const ringTimeout = 30 * time.Second

func (s *Scheduler) ringLogged(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, ringTimeout)
	defer cancel()
	if _, err := s.Tick(call); err != nil && ctx.Err() == nil {
		s.c.Logger.Error("schedule tick failed; the next one catches up", "event", "scheduler.failed",
			"error", err)
	} else if err == nil && s.c.Rang != nil {
		s.c.Rang()
	}
}
