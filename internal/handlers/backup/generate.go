package backup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/lock"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/repository"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// GeneratePayload is the data of backup.generate. Where neither part is named,
// both are wanted.
type GeneratePayload struct {
	IncludeFiles    *bool `json:"includeFiles,omitempty" default:"true" example:"true"`
	IncludeDatabase *bool `json:"includeDatabase,omitempty" default:"true" example:"true"`
	// Storage names destinations, separated by commas; "" means all.
	Storage string `json:"storage,omitempty" example:"local" synonyms:"destination"`
	// Tables limits the database part to some tables.
	Tables []string `json:"tables,omitempty"`
	// Full puts the files into the archive instead of the repository.
	Full bool `json:"full,omitempty"`
	// Name is for people.
	Name string `json:"name,omitempty"`
}

// Validate implements jobs.Validator.
func (p *GeneratePayload) Validate() error {
	if len(p.Name) > 250 {
		return phrase.Errorf("the name of a backup has 250 bytes at most")
	}
	if r := p.request(); !r.Files && !r.Database {
		return phrase.Errorf("a backup needs files or the database")
	}
	return nil
}

func (p *GeneratePayload) request() Request {
	r := Request{Name: p.Name, Tables: p.Tables, Full: p.Full}
	r.Files = p.IncludeFiles == nil || *p.IncludeFiles
	r.Database = p.IncludeDatabase == nil || *p.IncludeDatabase
	for name := range strings.SplitSeq(p.Storage, ",") {
		if name = strings.TrimSpace(name); name != "" {
			r.Destinations = append(r.Destinations, name)
		}
	}
	return r
}

// generate runs a job. A backup that is not complete fails the job, so that it is
// tried once more; its report stays as the job's result.
func (h *Handler) generate(ctx context.Context, j jobs.Job, p GeneratePayload) error {
	request := p.request()
	request.By = j.UUID
	if err := h.source(ctx, &request); err != nil {
		return err
	}
	if err := h.allow(ctx, request); err != nil {
		return err
	}
	report, err := h.Create(ctx, request, func(s catalog.Step) { jobs.Report(ctx, s.Done, s.Total, s.Note) })
	for _, w := range report.Warnings {
		jobs.Logf(ctx, "%s", w)
	}
	for _, o := range report.Outcomes {
		h.record(ctx, o)
		if o.Error != "" {
			jobs.Logf(ctx, "destination %s: %s", o.Destination, o.Error)
		}
	}
	if resultErr := jobs.SetResult(ctx, report); resultErr != nil {
		return errors.Join(err, resultErr)
	}
	if repository.IsBusy(err) || errors.Is(err, lock.ErrBusy) {
		return jobs.RetryAfter(err, busyDelay)
	}
	return err
}

// source finds out who asked. A backup that nobody scheduled must keep its
// distance from the last such one: anyone who can enqueue could otherwise fill
// the destinations. One that failed without leaving an archive does not count.
func (h *Handler) source(ctx context.Context, r *Request) error {
	r.Source = SourceJob
	var own int // backups of this job: a row may bear the UUID of another
	err := h.c.DB.GetContext(ctx, &own, h.c.DB.Rebind("SELECT COUNT(*) FROM cmsjobs_backups WHERE asked_by = ?"), r.By)
	if err != nil {
		return fmt.Errorf("counting the attempts of this backup: %w", err)
	}
	retry := own < Generate.Policy.MaxAttempts
	if h.c.Scheduled != nil && retry {
		scheduled, err := h.c.Scheduled(ctx, r.By)
		if err != nil {
			return fmt.Errorf("asking whether the schedule wants this backup: %w", err)
		}
		if scheduled {
			r.Source = SourceSchedule
			return nil
		}
	}
	except := ""
	if retry {
		except = r.By
	}
	return h.tooSoon(ctx, except)
}

// tooSoon refuses a backup within the minimum interval after the last one that
// was not scheduled, except those of one job. What began in the future counts
// for nothing: a clock was wrong, and it would refuse all until that time.
func (h *Handler) tooSoon(ctx context.Context, except string) error {
	if h.c.Options.MinInterval <= 0 { // not even behind a host whose clock is fast
		return nil
	}
	var newest sql.NullInt64
	now := h.c.Now()
	err := h.c.DB.GetContext(ctx, &newest, h.c.DB.Rebind(`SELECT MAX(started_at) FROM cmsjobs_backups b WHERE source =
		? AND asked_by <> ? AND started_at <= ?
		AND (status <> 'failed' OR EXISTS (SELECT 1 FROM cmsjobs_backup_verifications p WHERE p.backup_id = b.id))`),
		SourceJob, except, now.UnixMilli())
	if err != nil {
		return fmt.Errorf("looking for the last backup that was not scheduled: %w", err)
	}
	last := time.UnixMilli(newest.Int64)
	next := last.Add(h.c.Options.MinInterval)
	if newest.Valid && now.Before(next) {
		return jobs.Permanent(fmt.Errorf("%w: the last one that was not scheduled began at %s UTC, and the next may "+
			"begin at "+
			"%s UTC (backup.min_interval). An operator can make one now: cmsjobs backup create",
			ErrTooSoon, last.UTC().Format(time.DateTime), next.UTC().Format(time.DateTime)))
	}
	return nil
}

// busyDelay is after what time a job asks again for the exclusive lock.
const busyDelay = time.Minute

// ErrTooSoon says that a backup that nobody scheduled follows another too soon.
var ErrTooSoon = errors.New("a backup was made shortly before")

// dependency is a destination's name to the breaker.
func dependency(destination string) string { return "backup:" + destination }

// allow asks the breaker. One destination that is up is enough to go on.
func (h *Handler) allow(ctx context.Context, r Request) error {
	if h.c.Breaker == nil {
		return nil
	}
	var refused error
	for _, name := range h.chosen(r) {
		err := h.c.Breaker.Allow(ctx, dependency(name))
		if err == nil {
			return nil
		}
		refused = err
	}
	return refused
}

func (h *Handler) record(ctx context.Context, o catalog.Outcome) {
	if h.c.Breaker == nil || ctx.Err() != nil {
		return
	}
	var err error
	if o.Error != "" {
		err = fmt.Errorf("%s", o.Error)
	}
	if err := h.c.Breaker.Record(ctx, dependency(o.Destination), err); err != nil {
		h.c.Logger.WarnContext(ctx, "circuit breaker not updated", "event", "circuit.record_failed",
			"dependency", dependency(o.Destination), "error", err)
	}
}

// Generate is the type backup.generate: 2 attempts, an hour apart, one at a
// time in the fleet.
var Generate = jobs.Kind[GeneratePayload]{
	Name: "backup.generate",
	Policy: jobs.Policy{
		MaxAttempts: 2,
		Timeout:     4 * time.Hour,
		Backoff:     jobs.Fixed(3600 * time.Second),
		Limit:       1,
	},
}
