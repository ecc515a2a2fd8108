package feature

import (
	"context"

	queue "github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/analytics"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/audit"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/backups"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/batches"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/health"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/mail"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/manual"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/media"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/overview"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/queues"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/remote"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/schedules"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/search"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/settings"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/tokens"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/usage"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/webhooks"
)

// Ports are what the features show; a nil one is not configured, and its pages
// say so.
type Ports struct {
	Service
	Backups   backups.Port
	Mail      mail.Ports
	Media     media.Port
	Sitemap   sitemap.Port
	Analytics analytics.Port
	Usage     usage.Port
	Webhooks  webhooks.Port
}

// Service are the ports of the pages about jobs and what runs them.
type Service struct {
	Mutator ops.Mutator // needed
	ops.Control
	Ticker schedules.Ticker
	// Breakers, Inline, Refresh and DefaultQueue are those of [jobs.Ports].
	Breakers     func(context.Context) ([]explain.Breaker, error)
	Inline       jobs.InlineExecutor
	Refresh      func(context.Context) error
	DefaultQueue string
	// PHPQueues are the queues whose jobs of PHP are run here.
	PHPQueues []string
	// Silenced are classes of PHP's whose completed jobs are not listed.
	Silenced []string
	// NoPriorities says that the jobs table has no column for a priority.
	NoPriorities bool
	// Restorable is that of [jobs.Ports].
	Restorable func(queue.Record) bool
	// Saved keeps people's filters of lists.
	Saved jobs.SavedFilters
	// Batches are those of PHP's jobs.
	Batches ops.Batches
	// Remote has the workers of other programs.
	Remote remote.Port
	// Ready, Conditions, ConditionNames and Figures are those of [health.Ports].
	Ready          []health.Check
	Conditions     func(context.Context) []web.Condition
	ConditionNames []string
	Figures        func(context.Context) (health.StoredFigures, error)
}

// All are the features in the order of the menu.
func All(p Ports) []web.Feature {
	if p.Conditions == nil {
		p.Conditions = func(context.Context) []web.Condition { return nil }
	}
	probes := health.Ports{Ready: p.Ready, Workers: p.Workers, Conditions: p.Conditions,
		ConditionNames: p.ConditionNames, Figures: p.Figures}
	return []web.Feature{
		overview.Feature(overview.Ports{Workers: p.Workers, Schedules: p.Schedules, Conditions: p.Conditions,
			Failing: probes.Failing, Disabled: p.Inline != nil, CronWords: schedules.Words}),
		jobs.Feature(jobs.Ports{Mutator: p.Mutator, Workers: p.Workers, Breakers: p.Breakers, Inline: p.Inline,
			Refresh: p.Refresh, DefaultQueue: p.DefaultQueue, PHPQueues: p.PHPQueues, Silenced: p.Silenced,
			NoPriorities: p.NoPriorities,
			Queues:       p.Known, Saved: p.Saved, Restorable: p.Restorable}),
		batches.Feature(p.Batches),
		queues.Feature(p.Control),
		remote.Feature(p.Remote),
		schedules.Feature(p.Control, p.Ticker),
		backups.Feature(p.Backups),
		mail.Feature(p.Mail),
		media.Feature(p.Media),
		sitemap.Feature(p.Sitemap),
		analytics.Feature(p.Analytics),
		usage.Feature(p.Usage),
		webhooks.Feature(p.Webhooks),
		settings.Feature(),
		tokens.Feature(),
		audit.Feature(),
		search.Feature(),
		manual.Feature(),
		health.Feature(probes),
	}
}
