package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/breaker"
	"github.com/cmsjobs/cmsjobs/internal/jobs/orders"
	"github.com/cmsjobs/cmsjobs/internal/jobs/sqlstore"
	"github.com/cmsjobs/cmsjobs/internal/jobs/wake"
	"github.com/cmsjobs/cmsjobs/internal/trace"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// services are the parts of the service, joined. Commands open them, use what
// they need and close them.
type services struct {
	self     string // the program's own file
	version  string
	config   *config.Loaded
	log      *slog.Logger
	now      func() time.Time
	db       *sqlx.DB // the CMS's tables
	ownDB    *sqlx.DB // cmsjobs_* tables: usually the same
	site     *cms.Site
	registry *jobs.Registry
	store    *sqlstore.Store
	wakeDir  string
	orders   *orders.Book // what internal jobs are to do
	breakers *breaker.Breakers
	// completedLog logs completed jobs; nil where log does.
	completedLog func([]jobs.Settlement)
	metrics      *web.Metrics
	tracer       *trace.Tracer // nil: nobody collects traces
	activity     *activity     // nil: a command, whose deeds its caller knows
	handlers     handlerSet
	// conditions is nil for commands; writes is what this process wrote lately.
	conditions *conditions.Evaluator
	writes     *conditions.Writes
	rang       atomic.Pointer[time.Time] // the scheduler's last ring
	garbage    gcPressure
}

// open joins the rooms that every command with a database needs.
func (p *process) open(ctx context.Context, l *config.Loaded) (*services, error) {
	r := &services{self: p.self, version: p.version, config: l, log: p.logger(l.Log), now: p.now, completedLog: p.completedLog(l.Log)}
	for _, step := range []func(context.Context) error{r.openDatabases, r.migrate, r.openSite, r.openKinds, r.openStore} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	return r, nil
}

// openWaiting is open for services that last: for database.start_wait it tries
// again while the database does not answer, as after a reboot.
func (p *process) openWaiting(ctx context.Context, l *config.Loaded) (*services, error) {
	end := p.now().Add(l.Database.StartWait)
	for wait := startWaitLeast; ; wait = min(2*wait, startWaitMost) {
		r, err := p.open(ctx, l)
		left := end.Sub(p.now())
		if err == nil || !sqlstore.Away(err) || left <= 0 || ctx.Err() != nil {
			return r, err
		}
		if wait == startWaitLeast {
			log := p.logger(l.Log)
			log.Warn("the database does not answer; waiting for it", "event", "database.start_wait",
				"at_most", l.Database.StartWait, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-time.After(min(wait, left)):
		}
	}
}

// The waits between two tries to reach the database at a start.
const startWaitLeast, startWaitMost = 250 * time.Millisecond, 4 * time.Second

func (r *services) close() error {
	var err error
	if r.handlers.mail != nil {
		r.handlers.mail.Close()
	}
	for _, db := range []*sqlx.DB{r.db, r.ownDB} {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}
	return err
}

func (r *services) openSite(context.Context) (err error) {
	c := r.config.CMS
	r.site = &cms.Site{DB: r.db, Prefix: r.config.Database.Prefix, Root: c.Dir, Env: cms.Env{}}
	if c.Zone != "" {
		if r.site.FallbackZone, err = time.LoadLocation(c.Zone); err != nil {
			return usageError{fmt.Errorf("the zone %q: %w", c.Zone, err)}
		}
	}
	if c.Dir != "" {
		if r.site.Env, err = cms.ReadEnv(c.Dir); err != nil {
			return usageError{err}
		}
	}
	if c.URL != "" {
		r.site.Env["FORCE_ROOT_URL"] = c.URL
	}
	return nil
}

func (r *services) openKinds(context.Context) error {
	r.registry = jobs.NewRegistry()
	r.breakers = breaker.New(r.ownDB, breaker.Config{Logger: r.log, Recovered: func(ctx context.Context, dependency string) error {
		return r.store.RunWaiting(ctx, dependency) // the store is opened after the breakers
	}})
	r.orders = &orders.Book{DB: r.ownDB, Now: r.now}
	return registerKinds(r.registry, r)
}

// registerKinds joins every handler to its kind, then lets the configuration
// change their policies. It must work without a database: kinds are listed
// without one.
func registerKinds(registry *jobs.Registry, r *services) error {
	registerProbe(registry, r.orders, slices.Contains(r.config.Queue.InternalRows, probe.Name))
	for _, register := range handlers() {
		if err := register(registry, r); err != nil {
			return err
		}
	}
	l := r.config
	for name, k := range l.Kinds {
		if err := registry.Override(name, func(p jobs.Policy) jobs.Policy { return override(p, k) }); err != nil {
			return usageError{fmt.Errorf("kinds.%s: %w", name, err)}
		}
	}
	if share := l.Queue.Jitter; share > 0 {
		for _, name := range registry.Kinds() {
			spread := func(p jobs.Policy) jobs.Policy {
				p.Backoff = p.Backoff.WithJitter(share, rand.Float64)
				return p
			}
			if err := registry.Override(name, spread); err != nil {
				return err
			}
		}
	}
	return nil
}

func override(p jobs.Policy, k config.Kind) jobs.Policy {
	p.MaxAttempts = cmp.Or(k.MaxAttempts, p.MaxAttempts)
	p.Timeout = cmp.Or(k.Timeout, p.Timeout)
	p.Limit = cmp.Or(k.Limit, p.Limit)
	p.MaxAge = cmp.Or(k.MaxAge, p.MaxAge)
	if len(k.Backoff) > 0 {
		p.Backoff = jobs.Steps(k.Backoff...)
	}
	return p
}

func (r *services) openStore(ctx context.Context) error {
	zone, err := r.site.Zone(ctx)
	if err != nil {
		r.log.Warn("the CMS's time zone cannot be read; UTC is used", "event", "cms.zone_unknown", "error", err)
		zone = time.UTC
	}
	q, d := r.config.Queue, r.config.Database
	o := sqlstore.Options{
		Prefix: d.Prefix, Registry: r.registry, DefaultQueue: q.Default, OwnQueues: []string{"cmsjobs"},
		Connection: d.Connection, Mode: sqlstore.Mode(d.Claim), RetryAfter: q.PHPRetryAfter, Zone: zone,
		Logger: r.log, Wake: func(string) { wake.Call(r.wakeDir, wake.Jobs) }, Clock: r.now,
		RestartedAt: func(ctx context.Context) (time.Time, error) {
			return r.site.QueueRestartedAt(ctx, r.config.Cache.Prefix)
		},
	}
	if r.ownDB != r.db {
		o.OwnDB = r.ownDB
	}
	if r.store, err = sqlstore.Open(ctx, r.db, o); err != nil {
		return databaseError{err}
	}
	web.RegisterBulk(r.registry, r.orders, r.store)
	return nil
}
