package app

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app/activity"
	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/handlers/analytics"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media"
	"github.com/cmsjobs/cmsjobs/internal/handlers/notify"
	"github.com/cmsjobs/cmsjobs/internal/handlers/publish"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/announce"
	"github.com/cmsjobs/cmsjobs/internal/jobs/breaker"
	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/jobs/orders"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/memory"
	"github.com/cmsjobs/cmsjobs/internal/php"
	"github.com/cmsjobs/cmsjobs/internal/processors"
	"github.com/cmsjobs/cmsjobs/internal/remote"
	"github.com/cmsjobs/cmsjobs/internal/trace"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/health"
)

// Services are the parts of the service, joined. Commands open them, use what
// they need and close them.
type Services struct {
	Self         string // the program's own file
	Version      string
	Config       *config.Loaded
	Log          *slog.Logger
	Now          func() time.Time
	collector    *memory.Collector // the process's
	processors   *processors.Share
	DB           *sqlx.DB // the CMS's tables
	looking      bool     // nothing is changed, not even a SQLite file's journal
	OwnDB        *sqlx.DB // cmsjobs_* tables: usually the same
	Site         *cms.Site
	Registry     *jobs.Registry
	Store        *queue.Store
	History      *history.Store
	tableOptions tables.Options // that tables was opened with
	tables       *tables.Tables // below both: for the parts of this package that read rows themselves
	WakeDir      string
	Orders       *orders.Book    // what internal jobs are to do
	Types        *announce.Store // what the workers of other programs run
	remote       *remote.Hub     // nil: no program can register here
	Breakers     *breaker.Breakers
	// Off are job types that cannot run here, each with the reason.
	Off map[string]string
	// everything makes types known that cannot run here: to list them.
	everything bool
	// completedLog logs completed jobs; nil where log does.
	completedLog func([]jobs.Settlement)
	Metrics      *health.Metrics
	tracer       *trace.Tracer // nil: nobody collects traces
	Activity     *activity.Log // nil: a command, whose actions its caller knows
	Handlers     handlerSet
	// Shared is what the sites of this process have together; nil: it has one.
	Shared *Shared
	// conditions is nil for commands; writes is what this process wrote lately.
	conditions *conditions.Evaluator
	writes     *conditions.Writes
	pools      php.Pools                 // of PHP processes; nil: none
	poolsInfo  jobs.WorkerInfo           // the worker that they belong to
	rang       atomic.Pointer[time.Time] // the scheduler's last ring
}

// Shared is what the sites of one process have together: the slots of its jobs, its
// port, and what the service manager hears.
type Shared struct {
	// Turn waits for a slot of the process (jobs.Config.Turn).
	Turn func(context.Context) (done func(), err error)
	// Slots are those of the process: no site's worker can use more.
	Slots int
	// Serve answers the requests for the site until ctx ends.
	Serve func(ctx context.Context, server *web.Server) error
	// Sites lists the sites that a request has a session of.
	Sites func(*http.Request) []web.SiteLink
}

// handlerSet are the handlers that commands and pages call besides their jobs.
// One that cannot work here is nil.
type handlerSet struct {
	Sitemap   *sitemap.Handler
	Media     *media.Handler
	Mail      *mail.Handler
	Webhook   *webhook.Handler
	Analytics *analytics.Handler
	Backup    *backup.Handler
	publish   *publish.Handler
	purge     bool // caches in front of the site hear of changes
	compares  bool // what changed on the site can be found out
	notify    *notify.Handler
}
