package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Policy says what happens to ticks that nobody took in time.
type Policy string

// The policies of missed ticks.
const (
	Skip   Policy = "skip"   // none is made up for
	Latest Policy = "latest" // the newest is, the older are not
	All    Policy = "all"    // all are, up to Entry.Limit, the newest ones
)

// Entry is one line of the timetable.
type Entry struct {
	Name string
	Cron string
	// Job is what each tick enqueues: type, data, queue.
	Job jobs.Spec
	// Paused entries have no ticks.
	Paused bool
	// Policy of missed ticks; "" is Latest. CatchUp is how old a tick may be to
	// be made up for; 0 is the scheduler's. Limit bounds All.
	Policy  Policy
	CatchUp time.Duration
	Limit   int
	// Window, where it is set, is when the entry may run: outside of it a tick
	// is skipped with a word.
	Window Window
	// SkipIfRan names a kind of which a job that was done within the last day makes
	// this entry redundant: it is a fallback.
	SkipIfRan string
	// since is when people last changed the entry, begun when it was first seen
	// with this cron expression: no moment before them is one of its ticks.
	since, begun time.Time
}

// Ticker is the judge: the database that all instances share.
type Ticker interface {
	// Now is the database's clock.
	Now(ctx context.Context) (time.Time, error)
	// LastTicks are the newest ticks by entry of those taken since then, those
	// by hand left out.
	LastTicks(ctx context.Context, since time.Time) (map[string]time.Time, error)
	// FirstSeen says since when each entry has its cron expression: entries are
	// cron expressions by name. What it has not seen before, or not for a while in
	// which others were seen, begins now.
	FirstSeen(ctx context.Context, entries map[string]string) (map[string]time.Time, error)
	// TakeTick writes a tick and enqueues its job in one transaction; job is nil
	// for a tick that is only written down. won is false when the tick was taken
	// before: then nothing is written.
	TakeTick(ctx context.Context, t jobs.TickRecord, job *jobs.Spec) (r jobs.Receipt, won bool, err error)
}

// Edits are what people change of the timetable, in the same database.
type Edits interface {
	// Changes are by entry.
	Changes(ctx context.Context) (map[string]jobs.ScheduleEdit, error)
	// SaveChange keeps a change; a nil one takes the entry back to the timetable.
	SaveChange(ctx context.Context, entry string, c *jobs.ScheduleEdit) error
}

// History lists ticks; the store implements it.
type History interface {
	Ticks(ctx context.Context, entry string, p jobs.Page) (jobs.List[jobs.TickRecord], error)
}

// Config is what a scheduler needs.
type Config struct {
	Entries []Entry
	Ticker  Ticker
	Edits   Edits
	History History
	// Zone is asked at each ring: the CMS's setting may change.
	Zone func(context.Context) (*time.Location, error)
	// HasRunSince says whether a job of a type was done since a moment; nil is never.
	HasRunSince func(ctx context.Context, jobType string, since time.Time) (bool, error)
	Logger      *slog.Logger
	// CatchUp is how old a tick may be to be made up for: 1 h.
	CatchUp time.Duration
	// Every is the time between two rings: 10 s.
	Every time.Duration
	// Newest are the newest ticks of entries, however old; Overdue needs it.
	Newest func(ctx context.Context, entries []string) (map[string]time.Time, error)
	// Rang is called after each ring of Run that went well.
	Rang func()
	// Missed receives of each tick that nobody will make up for, Taken of each
	// that enqueued its job; by the instance that wrote it down. Both may be nil.
	Missed func(ctx context.Context, entry string, tick time.Time)
	Taken  func(entry string, at time.Time)
}

// Scheduler enqueues the jobs of a timetable.
type Scheduler struct {
	c    Config
	seen seen
}

// New checks the timetable.
func New(c Config) (*Scheduler, error) {
	if c.Ticker == nil || c.Edits == nil || c.Zone == nil {
		return nil, errors.New("a scheduler needs a ticker, edits and a zone")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.CatchUp <= 0 {
		c.CatchUp = time.Hour
	}
	if c.Every <= 0 {
		c.Every = 10 * time.Second
	}
	names := map[string]bool{}
	for _, e := range c.Entries {
		switch _, err := ParseCalendar(e.Cron); {
		case err != nil:
			return nil, fmt.Errorf("schedule entry %s: %w", e.Name, err)
		case e.Name == "" || len(e.Name) > 100 || names[e.Name]:
			return nil, fmt.Errorf("schedule entry %q: names must be there, unique and at most 100 characters long",
				e.Name)
		case e.Job.Check() != nil:
			return nil, fmt.Errorf("schedule entry %s: %w", e.Name, e.Job.Check())
		}
		names[e.Name] = true
	}
	return &Scheduler{c: c}, nil
}

// Report says what a ring did.
type Report struct {
	Enqueued, Missed, Skipped int
}

// Tick does one round: it enqueues what is due. It may be called by anybody at
// any time; the database sees to it that nothing is enqueued twice. An entry
// that fails is reported at the end and does not stop the others.
func (s *Scheduler) Tick(ctx context.Context) (Report, error) {
	var r Report
	now, err := s.c.Ticker.Now(ctx)
	if err != nil {
		return r, fmt.Errorf("asking the database for the time: %w", err)
	}
	zone, err := s.c.Zone(ctx)
	if err != nil {
		return r, fmt.Errorf("finding the schedule's zone: %w", err)
	}
	last, err := s.c.Ticker.LastTicks(ctx, now.Add(-s.longestCatchUp()))
	if err != nil {
		return r, err
	}
	entries, err := s.entries(ctx)
	if err != nil {
		return r, err
	}
	if err := s.begin(ctx, entries, now); err != nil {
		return r, err
	}
	var faults []error
	for _, e := range entries {
		if e.Paused {
			continue
		}
		if err := s.tickEntry(ctx, e, now, zone, last, &r); err != nil {
			faults = append(faults, fmt.Errorf("schedule entry %s: %w", e.Name, err))
		}
	}
	return r, errors.Join(faults...)
}

// longestCatchUp is how far back a tick matters to any entry.
func (s *Scheduler) longestCatchUp() time.Duration {
	longest := max(s.c.CatchUp, late)
	for _, e := range s.c.Entries {
		longest = max(longest, e.CatchUp)
	}
	return longest + time.Hour
}

// entries is the timetable with what people changed of it. A change that can
// no longer be read leaves the entry as the timetable has it.
func (s *Scheduler) entries(ctx context.Context) ([]Entry, error) {
	changes, err := s.c.Edits.Changes(ctx)
	if err != nil {
		return nil, err
	}
	entries := slices.Clone(s.c.Entries)
	for i := range entries {
		entries[i] = entries[i].changed(changes[entries[i].Name])
	}
	return entries, nil
}

func (e Entry) changed(c jobs.ScheduleEdit) Entry {
	if c.Cron != nil {
		if _, err := ParseCalendar(*c.Cron); err == nil {
			e.Cron = *c.Cron
		}
	}
	if c.Paused != nil {
		e.Paused = *c.Paused
	}
	if len(c.Data) > 0 {
		e.Job.Data = c.Data
	}
	e.since = c.ChangedAt
	return e
}

// late is how old a tick may be and still be on time: instances ring only now
// and then, and each may be away for a restart.
const late = 2 * time.Minute

// tickEntry takes the ticks of one entry that are due.
func (s *Scheduler) tickEntry(ctx context.Context, e Entry, now time.Time, zone *time.Location,
	last map[string]time.Time, r *Report) error {
	calendar, err := ParseCalendar(e.Cron)
	if err != nil {
		return err
	}
	catchUp := e.CatchUp
	if catchUp <= 0 {
		catchUp = s.c.CatchUp
	}
	if e.Policy == Skip {
		catchUp = min(catchUp, late)
	}
	after := now.Add(-max(catchUp, late))
	for _, moment := range []time.Time{last[e.Name], e.since, e.begun} {
		if moment.After(after) {
			after = moment
		}
	}
	due := calendar.Between(after, now, zone)
	if len(due) == 0 {
		return nil
	}
	run := due[len(due)-e.atOnce(len(due)):]
	if err := s.recordMissed(ctx, e, due[:len(due)-len(run)], now, r); err != nil {
		return err
	}
	for _, tick := range run {
		if err := s.take(ctx, e, tick, now, zone, r); err != nil {
			return err
		}
	}
	return nil
}

// atOnce is how many of n due ticks are taken.
func (e Entry) atOnce(n int) int {
	if e.Policy != All {
		return min(n, 1)
	}
	if e.Limit > 0 {
		return min(n, e.Limit)
	}
	return n
}

// missesShown bounds how many missed ticks are written down at once.
const missesShown = 20

// recordMissed writes down ticks that nobody will make up for.
func (s *Scheduler) recordMissed(ctx context.Context, e Entry, ticks []time.Time, now time.Time, r *Report) error {
	if len(ticks) > missesShown {
		ticks = ticks[len(ticks)-missesShown:]
	}
	for _, tick := range ticks {
		record := jobs.TickRecord{Entry: e.Name, Tick: tick, At: now, Outcome: "missed",
			Note: "nobody was there to take it; a newer one was taken instead"}
		_, won, err := s.c.Ticker.TakeTick(ctx, record, nil)
		if err != nil {
			return err
		}
		if won {
			r.Missed++
			s.c.Logger.Warn("schedule tick missed", "event", "schedule.missed",
				"entry", e.Name, "tick", tick)
			if s.c.Missed != nil {
				s.c.Missed(ctx, e.Name, tick)
			}
		}
	}
	return nil
}

// take enqueues the job of a tick, or writes down why not.
func (s *Scheduler) take(ctx context.Context, e Entry, tick, now time.Time, zone *time.Location, r *Report) error {
	record := jobs.TickRecord{Entry: e.Name, Tick: tick, At: now, Outcome: "enqueued"}
	job := &e.Job
	alreadyDone, err := s.alreadyDone(ctx, e, tick)
	if err != nil {
		return err
	}
	switch {
	case !e.Window.Has(now.In(zone)):
		record.Outcome, record.Note, job = "skipped", "it may run only between "+e.Window.String(), nil
	case alreadyDone:
		record.Outcome, record.Note, job = "skipped", e.SkipIfRan+
			" was done within the last day and causes it by itself", nil
	}
	receipt, won, err := s.c.Ticker.TakeTick(ctx, record, job)
	if err != nil || !won {
		return err
	}
	if job == nil {
		r.Skipped++
		return nil
	}
	r.Enqueued++
	if s.c.Taken != nil {
		s.c.Taken(e.Name, now)
	}
	s.c.Logger.Info("scheduled job enqueued", "event", "schedule.enqueued",
		"entry", e.Name, "tick", tick, "type", e.Job.Type, "uuid", receipt.UUID)
	return nil
}

// fallbackWindow is a day and the length of a run: yesterday's run of the same hour counts.
const fallbackWindow = 25 * time.Hour

// alreadyDone says that the job that an entry stands in for was done.
func (s *Scheduler) alreadyDone(ctx context.Context, e Entry, tick time.Time) (bool, error) {
	if e.SkipIfRan == "" || s.c.HasRunSince == nil {
		return false, nil
	}
	return s.c.HasRunSince(ctx, e.SkipIfRan, tick.Add(-fallbackWindow))
}
