package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Ticker is the judge: the store that decides which instance has a tick.
type Ticker interface {
	// ReadSchedule returns the database's clock and the states of the entries,
	// by name. It notes since when it knows those it sees for the first time.
	ReadSchedule(ctx context.Context, names []string) (time.Time, map[string]jobs.ScheduleState, error)
	// TakeTick records the tick and enqueues the job, both or neither; false
	// says that the tick was taken already.
	TakeTick(ctx context.Context, t jobs.TickRecord, n jobs.New) (bool, error)
	// MissTicks records ticks that have no job.
	MissTicks(ctx context.Context, ticks []jobs.TickRecord) error
	// CompletedSince says whether a job of a kind was completed since then.
	CompletedSince(ctx context.Context, kind string, since time.Time) (bool, error)
}

// Book is what people read and change of the schedule.
type Book interface {
	RunTick(ctx context.Context, entry string, n jobs.New) (jobs.Receipt, error)
	ChangeEntry(ctx context.Context, s jobs.ScheduleState) error
	// Ticks lists newest first; entry "" means all. SettleTicks notes how their
	// jobs ended.
	Ticks(ctx context.Context, entry string, p jobs.Page) (jobs.List[jobs.TickRecord], error)
	SettleTicks(ctx context.Context) error
}

// Config is what a scheduler needs. Ticker and Book are one store.
type Config struct {
	Entries []Entry
	Ticker  Ticker
	Book    Book
	// Zone is the site's; it is asked once a minute. nil is UTC.
	Zone func(context.Context) (*time.Location, error)
	// Every is how often an instance looks: 10 s.
	Every time.Duration
	// Clock rings; nil is the real one. It decides nothing.
	Clock  clockwork.Clock
	Logger *slog.Logger
}

// Scheduler turns the clock into jobs. It is safe for concurrent use.
type Scheduler struct {
	lines  []line
	ticker Ticker
	book   Book
	zoneOf func(context.Context) (*time.Location, error)
	every  time.Duration
	clock  clockwork.Clock
	logger *slog.Logger

	mu     sync.Mutex
	zone   *time.Location
	zoneAt time.Time
}

// New checks the entries. The error names all that are wrong.
func New(c Config) (*Scheduler, error) {
	s := &Scheduler{ticker: c.Ticker, book: c.Book, zoneOf: c.Zone, every: c.Every, clock: c.Clock, logger: c.Logger}
	if s.every <= 0 {
		s.every = 10 * time.Second
	}
	if s.clock == nil {
		s.clock = clockwork.NewRealClock()
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.zoneOf == nil {
		s.zoneOf = func(context.Context) (*time.Location, error) { return time.UTC, nil }
	}
	var wrong []error
	seen := map[string]bool{}
	for _, e := range c.Entries {
		l, err := e.check()
		if err == nil && seen[e.Name] {
			err = fmt.Errorf("schedule entry %q is there twice", e.Name)
		}
		seen[e.Name] = true
		wrong = append(wrong, err)
		s.lines = append(s.lines, l)
	}
	return s, errors.Join(wrong...)
}

// Run rings until the context ends. Errors of a ring are logged: the next one
// makes up for it.
func (s *Scheduler) Run(ctx context.Context) error {
	clock, err := gocron.NewScheduler(gocron.WithClock(s.clock), gocron.WithLocation(time.UTC), gocron.WithStopTimeout(10*time.Second))
	if err != nil {
		return fmt.Errorf("starting the clock: %w", err)
	}
	ring := func() {
		if _, err := s.Tick(ctx); err != nil && ctx.Err() == nil {
			s.logger.ErrorContext(ctx, "the schedule could not be looked at; the next ring tries again", "error", err)
		}
	}
	if _, err := clock.NewJob(gocron.DurationJob(s.every), gocron.NewTask(ring),
		gocron.WithSingletonMode(gocron.LimitModeReschedule), gocron.WithStartAt(gocron.WithStartImmediately())); err != nil {
		return fmt.Errorf("setting the clock: %w", err)
	}
	clock.Start()
	<-ctx.Done()
	if err := clock.Shutdown(); err != nil {
		return fmt.Errorf("stopping the clock: %w", err)
	}
	return nil
}

// Tick looks once, as a ring does, and says how many jobs it enqueued. An
// external trigger may call it where no process runs for long. What fails for
// one entry keeps no other from its turn.
func (s *Scheduler) Tick(ctx context.Context) (int, error) {
	zone, err := s.currentZone(ctx)
	if err != nil {
		return 0, err
	}
	now, states, err := s.ticker.ReadSchedule(ctx, s.names())
	if err != nil {
		return 0, fmt.Errorf("reading the schedule: %w", err)
	}
	enqueued := 0
	var failed []error
	for _, l := range s.lines {
		l, err := l.with(states[l.Name])
		if err != nil {
			failed = append(failed, err)
			continue
		}
		n, err := s.ring(ctx, l, states[l.Name], now, zone)
		enqueued += n
		if err != nil {
			failed = append(failed, fmt.Errorf("schedule entry %q: %w", l.Name, err))
		}
	}
	return enqueued, errors.Join(failed...)
}

func (s *Scheduler) ring(ctx context.Context, l line, state jobs.ScheduleState, now time.Time, zone *time.Location) (enqueued int, err error) {
	if l.Off || state.Paused {
		return 0, nil
	}
	p := l.due(later(state.Since, state.LastTick), now, zone)
	for _, tick := range p.run {
		if l.After != "" {
			ran, err := s.ticker.CompletedSince(ctx, l.After, tick.Add(-time.Minute))
			if err != nil {
				return enqueued, err
			}
			if ran {
				p.missed = append(p.missed, jobs.TickRecord{Entry: l.Name, Tick: tick, Outcome: "skipped", Note: l.After + " ran and was followed by its own"})
				continue
			}
		}
		won, err := s.ticker.TakeTick(ctx, jobs.TickRecord{Entry: l.Name, Tick: tick, Outcome: "enqueued"}, l.job())
		if err != nil {
			return enqueued, err
		}
		if won {
			enqueued++
			s.logger.InfoContext(ctx, "a tick was enqueued", "entry", l.Name, "kind", l.Kind, "tick", tick, "late", now.Sub(tick))
		}
	}
	if len(p.missed) > 0 {
		return enqueued, s.ticker.MissTicks(ctx, p.missed)
	}
	return enqueued, nil
}

// with is the entry as a person changed it.
func (l line) with(state jobs.ScheduleState) (line, error) {
	if state.Cron != "" {
		l.Cron = state.Cron
	}
	if len(state.Data) > 0 {
		l.Data = state.Data
	}
	if state.Cron == "" {
		return l, nil
	}
	return l.check()
}

func (s *Scheduler) names() []string {
	names := make([]string, len(s.lines))
	for i, l := range s.lines {
		names[i] = l.Name
	}
	return names
}

func (s *Scheduler) find(name string) (line, error) {
	i := slices.IndexFunc(s.lines, func(l line) bool { return l.Name == name })
	if i < 0 {
		return line{}, fmt.Errorf("the schedule has no entry %q; it has %v", name, s.names())
	}
	return s.lines[i], nil
}

// currentZone asks for the zone at most once a minute. While the answer fails,
// the last one holds.
func (s *Scheduler) currentZone(ctx context.Context) (*time.Location, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if age := now.Sub(s.zoneAt); s.zone != nil && age >= 0 && age < time.Minute {
		return s.zone, nil
	}
	zone, err := s.zoneOf(ctx)
	switch {
	case err == nil:
		s.zone, s.zoneAt = zone, now
	case s.zone == nil:
		return nil, fmt.Errorf("reading the site's zone: %w", err)
	default:
		s.logger.WarnContext(ctx, "the site's zone could not be read; the last one holds", "error", err)
	}
	return s.zone, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
