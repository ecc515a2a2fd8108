package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/handlers/analytics"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/handlers/cache"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/schedule"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// Scheduler joins the timetable, the configuration and the store.
func (r *Services) Scheduler() (*schedule.Scheduler, error) {
	entries, err := r.entries()
	if err != nil {
		return nil, UsageError{Err: err}
	}
	jobTypes := map[string]string{}
	for _, e := range entries {
		jobTypes[e.Name] = e.Job.Type
	}
	s, err := schedule.New(schedule.Config{Entries: entries, Ticker: r.Store, Edits: r.Store, History: r.Store,
		Zone: r.ScheduleZone, HasRunSince: r.ran, Logger: r.Log, CatchUp: r.Config.Schedule.CatchUp,
		Newest: r.History.NewestTicks, Rang: func() { now := r.Now(); r.rang.Store(&now) },
		Missed: r.tickMissed, Taken: func(entry string, _ time.Time) { r.ticked(entry, jobTypes[entry]) }})
	if err != nil {
		return nil, UsageError{Err: err}
	}
	return s, nil
}

// CheckTypes says what is wrong with the settings of types and with the timetable,
// which only the types themselves know. It needs no database.
func (p *Process) CheckTypes(l *config.Loaded) error {
	r, err := p.WithoutDatabase(l)
	if err != nil {
		return err
	}
	r.Registry = jobs.NewRegistry()
	if err := RegisterKinds(r.Registry, r); err != nil {
		return errors.Join(err, r.Close())
	}
	_, err = r.entries()
	if err != nil {
		err = UsageError{Err: err}
	}
	return errors.Join(err, r.Close())
}

// ran says whether a job of a type was done since a moment.
func (r *Services) ran(ctx context.Context, jobType string, since time.Time) (bool, error) {
	list, err := r.History.Jobs(ctx, jobs.Filter{Types: []string{jobType}, Statuses: []jobs.Status{
		jobs.StatusCompleted}, Since: since}, jobs.Page{Limit: 1})
	return len(list.Items) > 0, err
}

// ScheduleZone is the CMS's own, else the configuration's, else UTC.
func (r *Services) ScheduleZone(ctx context.Context) (*time.Location, error) {
	name := r.Config.Schedule.Zone
	if name == "" {
		return r.Site.Zone(ctx)
	}
	settings, err := r.Site.Settings(ctx)
	if err != nil {
		return nil, err
	}
	if settings.String("time_zone", "") != "" {
		return r.Site.Zone(ctx)
	}
	return time.LoadLocation(name)
}

// entries are the timetable as the configuration has it. Entries of types that
// cannot run here are left out: nobody would do their jobs.
func (r *Services) entries() ([]schedule.Entry, error) {
	own := maps.Clone(r.Config.Schedule.Entries)
	var entries []schedule.Entry
	list := timetable()
	if r.Config.PHP.Schedule {
		list = append(list, phpScheduleEntry())
	}
	for _, e := range list {
		e.Paused = e.Name == backupDigest && !r.Config.Backup.Digest
		changed, err := r.configured(e, own[e.Name])
		if err != nil {
			return nil, fmt.Errorf("schedule.entries.%s: %w", e.Name, err)
		}
		delete(own, e.Name)
		if _, known := r.Registry.Lookup(changed.Job.Type); known {
			entries = append(entries, changed)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		e, err := r.configured(schedule.Entry{Name: name}, own[name])
		if err != nil {
			return nil, fmt.Errorf("schedule.entries.%s: %w", name, err)
		}
		if e.Job.Type == "" {
			return nil,
				fmt.Errorf("schedule.entries.%s: it names no type, and the timetable has no such entry: it has "+
					"%s", name, strings.Join(entryNames(), ", "))
		}
		known, there := r.Registry.Lookup(e.Job.Type)
		if !there {
			return nil, fmt.Errorf("schedule.entries.%s: %w", name, ops.UnknownType(r.Registry, e.Job.Type))
		}
		if known.Maker != jobs.Anyone && !slices.Contains(r.Config.Queue.InternalRows, known.Type) {
			return nil, fmt.Errorf("schedule.entries.%s: jobs of %s are made by the service itself and cannot be "+
				"scheduled", name, known.Type)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// EntryNames are the names of the timetable's entries, in its order.
func (r *Services) EntryNames() ([]string, error) {
	entries, err := r.entries()
	return ops.Each(entries, func(e schedule.Entry) string { return e.Name }), err
}

// configured is an entry with what the configuration says of it.
func (r *Services) configured(e schedule.Entry, c config.ScheduleEntry) (schedule.Entry, error) {
	e.Cron = cmp.Or(c.Cron, e.Cron)
	e.Job.Type = cmp.Or(c.Type, e.Job.Type)
	e.Job.Queue = cmp.Or(c.Queue, e.Job.Queue)
	if known, ok := r.Registry.Lookup(e.Job.Type); ok && e.Job.Queue == "" {
		e.Job.Queue = cmp.Or(r.Config.Types[known.Type].Queue, known.Queue)
	}
	if c.Payload != nil {
		data, err := json.Marshal(c.Payload)
		if err != nil {
			return e, fmt.Errorf("its payload cannot be written as JSON: %w", err)
		}
		e.Job.Data = data
		if known, ok := r.Registry.Lookup(e.Job.Type); ok {
			if err := known.CheckNew(data); err != nil {
				return e, err
			}
		}
	}
	if c.Enabled != nil {
		e.Paused = !*c.Enabled
	}
	if c.Policy != "" {
		e.Policy = map[string]schedule.Policy{"skip": schedule.Skip, "once": schedule.Latest,
			"all": schedule.All}[c.Policy]
	}
	e.CatchUp = cmp.Or(c.CatchUp, e.CatchUp)
	e.Limit = cmp.Or(c.Limit, e.Limit)
	var err error
	if c.Window != "" {
		e.Window, err = schedule.ParseWindow(c.Window)
	}
	return e, err
}

// Tick does one round of what the service does by itself, for hosts without
// long-running processes: it enqueues what is due and works until nothing is.
func (r *Services) Tick(ctx context.Context, atMost time.Duration) (ops.TickReport, error) {
	var report ops.TickReport
	s, err := r.Scheduler()
	if err != nil {
		return report, err
	}
	if r.Config.Schedule.Enabled {
		done, err := s.Tick(ctx)
		if err != nil {
			return report, err
		}
		report = ops.TickReport{Enqueued: done.Enqueued, Missed: done.Missed, Skipped: done.Skipped}
	}
	o, told := r.telling(ctx, WorkerOptions{StopWhenEmpty: true, MaxTime: atMost, Ended: func(end jobs.Settlement) {
		report.Ran++
		if end.Outcome == jobs.Failed || end.Outcome == jobs.Retried {
			report.Failed++
		}
	}})
	defer told()
	w, closeIt, err := r.Worker(o)
	if err != nil {
		return report, err
	}
	defer closeIt()
	err = w.Run(ctx) // it fills the report
	return report, err
}

// entryNames are the entries that come with the service.
func entryNames() (names []string) {
	for _, e := range timetable() {
		names = append(names, e.Name)
	}
	return names
}

// backupDigest is the entry that backup.digest turns off.
const backupDigest = "backup.digest"

// timetable is what the clock enqueues in the CMS's zone. The
// configuration changes an entry by its name or adds one; the admin page and
// "cmsjobs schedule" pause and change them for all instances.
func timetable() []schedule.Entry {
	return []schedule.Entry{
		{Name: "sitemap.generate", Cron: "0 2 * * *", Job: sitemap.Generate.New(sitemap.GeneratePayload{Force: false})},
		// After each new sitemap it is enqueued anyway; this is for days without one.
		{Name: "sitemap.indexnow", Cron: "0 2 * * *", Job: sitemap.IndexNow.New(sitemap.IndexNowPayload{}),
			SkipIfRan: "sitemap.generate"},
		{Name: "backup.generate", Cron: "0 3 * * *", Job: backup.Generate.New(backup.GeneratePayload{}),
			CatchUp: 3 * time.Hour},
		{Name: "backup.monitor", Cron: "30 9 * * *", Job: backup.Monitor.New(backup.MonitorPayload{})},
		{Name: backupDigest, Cron: "0 9 * * 1", Job: backup.Monitor.New(backup.MonitorPayload{Digest: true})},
		{Name: "logs.cleanup", Cron: "0 4 * * *", Job: cache.LogsCleanup.New(cache.LogsPayload{})},
		{Name: "analytics.process", Cron: "0 * * * *", Job: analytics.Process.New(analytics.ProcessPayload{})},
		// where analytics.weekly is on
		{Name: "analytics.weekly", Cron: "0 7 * * 1", Job: analytics.Weekly.New(analytics.WeeklyPayload{}),
			CatchUp: 12 * time.Hour},
		{Name: "cache.clearExpired", Cron: "*/5 * * * *", Job: cache.ClearExpired.New(cache.ExpiredPayload{}),
			Policy: schedule.Skip},
		{Name: "queue.clean", Cron: "*/5 * * * *", Job: cache.QueueClean.New(cache.CleanPayload{}),
			Policy: schedule.Skip},
		// Where a mailbox for bounces is configured.
		{Name: "mail.bounces", Cron: "*/10 * * * *", Job: mail.ReadBounces.New(struct{}{}), Policy: schedule.Skip},
	}
}
