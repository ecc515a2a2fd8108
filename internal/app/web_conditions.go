package app

import (
	"context"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/answers"
	"github.com/cmsjobs/cmsjobs/internal/web/feature"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/health"

	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/jobs/breaker"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// showConditions gives probes, pages and metrics the conditions of this
// process, and the figures that the database keeps.
func (r *Services) showConditions(p *feature.Service, cache *answers.Cache) {
	p.Figures = func(ctx context.Context) (health.StoredFigures, error) {
		return answers.Fresh(ctx, cache, "figures", serves, r.storedFigures)
	}
	p.ConditionNames = conditions.Names()
	if e := r.conditions; e != nil {
		p.Conditions = func(ctx context.Context) []web.Condition { return conditionViews(e.Latest(ctx)) }
	}
}

func conditionViews(statuses []conditions.State) []web.Condition {
	list := make([]web.Condition, len(statuses))
	for i, s := range statuses {
		list[i] = web.Condition{Name: s.Name, Severity: string(s.Severity), Active: s.Active, Title: s.Title,
			Since: s.Since, Limit: s.Limit.String(),
			Fix: strings.ReplaceAll(s.Fix, "`", ""), Page: s.Page, Elsewhere: !s.Here}
		if s.Active {
			list[i].Detail = s.Detail
		}
		if s.Err != nil {
			list[i].Error = s.Err.Error()
		}
	}
	return list
}

// schedulerAlive is how old the last ring of a live scheduler can be.
const schedulerAlive = 90 * time.Second

func (r *Services) storedFigures(ctx context.Context) (health.StoredFigures, error) {
	var f health.StoredFigures
	workers, err := r.History.Workers(ctx)
	if err != nil {
		return f, err
	}
	for _, w := range workers {
		if w.Alive && w.RunsTypes() {
			f.Workers++
		}
	}
	if f.Schedulers, err = r.LiveSchedulers(ctx); err != nil {
		return f, err
	}
	list, err := r.Breakers.List(ctx)
	if err != nil {
		return f, err
	}
	f.Circuits = map[string]bool{}
	for _, b := range list {
		f.Circuits[b.Dependency] = b.State != breaker.Closed
	}
	s, err := r.Scheduler()
	if err != nil {
		return f, err
	}
	if f.Successes, err = r.History.LastSuccesses(ctx, s.Names()); err != nil || r.Handlers.Backup == nil {
		return f, err
	}
	b, err := r.Handlers.Backup.Condition(ctx)
	f.Backups, f.BackedUp, f.Verified, f.BackupBytes, f.VerificationFailed = true, b.LastComplete, b.LastVerification,
		b.LastBytes, b.VerificationFailed
	return f, err
}

// LiveSchedulers counts processes whose scheduler went through the timetable
// lately.
func (r *Services) LiveSchedulers(ctx context.Context) (int, error) {
	e := r.conditions
	if e == nil {
		var err error
		if e, err = r.Evaluator(nil); err != nil {
			return 0, err
		}
	}
	list, err := e.Processes(ctx, schedulerAlive+r.Config.Conditions.Every)
	live := 0
	for _, p := range list {
		if !p.ScheduledAt.IsZero() && p.SeenAt.Sub(p.ScheduledAt) < schedulerAlive {
			live++
		}
	}
	return live, err
}
