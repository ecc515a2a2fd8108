package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	jobpages "github.com/cmsjobs/cmsjobs/internal/web/feature/jobs"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/handlers/notify"
	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// CheckLimits finds what is wrong with the limits of conditions: their units
// are known to package conditions only.
func CheckLimits(l *config.Loaded) error {
	if _, err := conditions.Limits(l.Conditions.Limits); err != nil {
		return config.Faults{{Path: "conditions.limits", Problem: err.Error()}}
	}
	for _, name := range l.Conditions.Off {
		if !slices.Contains(conditions.Names(), name) {
			return config.Faults{
				{Path: "conditions.off", Problem: fmt.Sprintf("there is no condition %q; there are %s", name,
					strings.Join(conditions.Names(), ", "))}}
		}
	}
	return nil
}

// WatchConditions makes r a process that says that it lives and evaluates the
// conditions. parts is what it does: worker, scheduler, web.
func (r *Services) WatchConditions(parts []string) error {
	r.writes = conditions.NewWrites(r.Now)
	info := r.workerInfo(r.Config.Queue.WorkerID)
	process := &conditions.Process{ID: info.ID, Host: info.Host, PID: info.PID, Version: r.Version,
		Parts: strings.Join(parts, ",")}
	if slices.Contains(parts, "scheduler") {
		process.Scheduled = func() time.Time {
			if at := r.rang.Load(); at != nil {
				return *at
			}
			return time.Time{}
		}
	}
	var err error
	r.conditions, err = r.Evaluator(process)
	return err
}

// Evaluator joins the conditions to what they measure. Without a process it is
// a command's: it looks, and changes and tells nothing.
func (r *Services) Evaluator(process *conditions.Process) (*conditions.Evaluator, error) {
	c := r.Config.Conditions
	limits, err := conditions.Limits(c.Limits)
	if err != nil {
		return nil, UsageError{Err: err}
	}
	limits[conditions.NoBackup] = conditions.Limit{Unit: conditions.Duration, Value: int64(r.Config.Backup.Alert)}
	limits[conditions.VerificationOld] = conditions.Limit{
		Unit: conditions.Duration, Value: int64(r.Config.Backup.Unverified)}
	set := conditions.Config{
		DB: r.OwnDB, Queue: r.History, Server: r.History, Known: func(jobType string) bool {
			_, known := r.Registry.Lookup(jobType)
			return known
		},
		Notification: notify.Send.Name, Writes: r.writes, ReadOnly: database.SaysReadOnly, Full: database.SaysFull,
		Folders: r.writtenFolders(), Free: storage.FreeSpace, Circuits: r.circuits,
		Limits: limits, Off: c.Off, Every: c.Every, Process: process, Now: r.Now, Logger: r.Log,
	}
	set.Scheduling, set.Overdue = r.Config.Schedule.Enabled && r.Config.Queue.Enabled, r.overdue
	if r.Handlers.Backup != nil {
		set.Backups = r.backupCondition
	}
	if process != nil {
		set.Notify, set.Direct, set.Pinger = r.conditionChanged, r.conditionDirect, r.pinger()
	}
	return conditions.New(set)
}

// writtenFolders are the folders whose disks must not be full.
func (r *Services) writtenFolders() []string {
	c := r.Config
	folders := []string{c.Backup.Dir, c.Sitemap.Dir, c.Queue.ExportDir}
	if r.Site.Root != "" {
		folders = append(folders, r.Site.Public(), filepath.Join(r.Site.Public(), "storage"), r.Site.Storage())
	}
	if path, ok := c.Database.DSN.SQLiteFile(); ok {
		folders = append(folders, filepath.Dir(path))
	}
	folders = slices.DeleteFunc(folders, func(folder string) bool {
		info, err := os.Stat(folder)
		return folder == "" || err != nil || !info.IsDir()
	})
	slices.Sort(folders)
	return slices.Compact(folders)
}

func (r *Services) circuits(ctx context.Context) ([]conditions.Circuit, error) {
	list, err := r.OpenBreakers(ctx)
	var open []conditions.Circuit
	for _, b := range list {
		open = append(open, conditions.Circuit{Dependency: b.Name, LastError: b.Error})
	}
	return open, err
}

func (r *Services) overdue(ctx context.Context, late time.Duration) ([]conditions.OverdueEntry, error) {
	s, err := r.Scheduler()
	if err != nil {
		return nil, err
	}
	list, err := s.Overdue(ctx, late)
	var overdue []conditions.OverdueEntry
	for _, x := range list {
		overdue = append(overdue, conditions.OverdueEntry{Entry: x.Entry, Tick: x.Tick})
	}
	return overdue, err
}

// backupCondition leaves out what the configuration does not want: backups by
// the schedule, and their verification.
func (r *Services) backupCondition(ctx context.Context) (conditions.Backups, error) {
	b, err := r.Handlers.Backup.Condition(ctx)
	return conditions.Backups{LastComplete: b.LastComplete, LastVerification: b.LastVerification,
		Verifications: r.Config.Backup.Verify != "off", Unfinished: b.Unfinished, TempDatabases: b.TempDB,
		Log: b.Log}, err
}

// conditionNotice is what people receive about a change.
func (r *Services) conditionNotice(c conditions.Change) notify.Payload {
	p := notify.Payload{Topic: "condition:" + c.Name, Title: c.Title, Level: notify.Warning, URL: r.pageURL(c.Page),
		Message: fmt.Sprintf("%s\nSince: %s UTC\nWhat to do: %s.", c.Detail, c.Since.UTC().Format(time.DateTime),
			strings.ReplaceAll(c.Fix, "`", ""))}
	if c.Severity == conditions.Failing {
		p.Level = notify.Error
	}
	if !c.Began {
		p.Title = "Over: " + c.Title
		p.Message = fmt.Sprintf("It lasted %s, until %s UTC.", display.Span(c.At.Sub(c.Since)),
			c.At.UTC().Format(time.DateTime))
	}
	return p
}

// conditionChanged tells administrators and subscribers of a change.
func (r *Services) conditionChanged(ctx context.Context, c conditions.Change) error {
	if !r.Config.Conditions.Notify {
		return nil
	}
	event, notice := webhook.ConditionEnded, r.conditionNotice(c)
	if c.Began {
		event = webhook.ConditionBegan
	}
	next, err := r.deliveries(ctx, event, map[string]any{"condition": c.Name, "severity": c.Severity, "title": c.Title,
		"detail": c.Detail,
		"since":  c.Since.UTC().Format(time.RFC3339), "at": c.At.UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	if !r.Config.Notify.Silent() {
		next = append(next, notify.Condition(notice, c.Told))
	}
	// a job would wait for the worker that is missing
	if c.Unattended && !r.Config.Notify.Silent() && r.Handlers.notify != nil {
		next = next[:len(next)-1]
		err = r.Handlers.notify.Direct(ctx, notice)
		_, inline := jobpages.NewInline(r.Registry, r.Now, r.recordAtOnce).Do(ctx, notify.Condition(notice, true))
		err = errors.Join(err, inline)
	}
	if len(next) == 0 {
		return err
	}
	_, enqueued := r.Enqueue(ctx, next...)
	return errors.Join(err, enqueued)
}

// conditionDirect tells chats while the database takes no job.
func (r *Services) conditionDirect(ctx context.Context, c conditions.Change) error {
	if !r.Config.Conditions.Notify || r.Handlers.notify == nil {
		return nil
	}
	return r.Handlers.notify.Direct(ctx, r.conditionNotice(c))
}

// pinger calls outside monitors; nil where none is configured.
func (r *Services) pinger() *conditions.Pinger {
	p := &conditions.Pinger{URL: r.Config.Conditions.PingURL.Reveal(), Every: r.Config.Conditions.PingEvery,
		Entries: map[string]string{}, Successes: r.History.LastSuccesses}
	for name, e := range r.Config.Schedule.Entries {
		if e.Ping != "" {
			p.Entries[name] = e.Ping.Reveal()
		}
	}
	if p.URL == "" && len(p.Entries) == 0 {
		return nil
	}
	w := r.Config.Webhook
	p.Client = outbound.New(outbound.Options{Timeout: 10 * time.Second, AllowPrivate: w.Networks(),
		AllowHTTP: w.AllowHTTP, SameHostRedirects: true, UserAgent: "cmsjobs/" + r.Version})
	return p
}

// ConditionsBeside evaluates while run runs, where conditions are watched.
func (r *Services) ConditionsBeside(ctx context.Context, run func() error) error {
	if r.conditions == nil {
		return run()
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- r.conditions.Run(ctx) }()
	err := run()
	cancel()
	return cmp.Or(err, <-done)
}
