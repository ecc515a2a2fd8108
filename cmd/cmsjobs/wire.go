package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/breaker"
	"github.com/cmsjobs/cmsjobs/internal/jobs/sqlstore"
	"github.com/cmsjobs/cmsjobs/internal/jobs/wake"
	"github.com/cmsjobs/cmsjobs/internal/trace"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/migrations"
)

// rooms are the parts of the service, joined. Commands open them, use what
// they need and close them.
type rooms struct {
	self     string // the program's own file
	config   *config.Loaded
	log      *slog.Logger
	now      func() time.Time
	db       *sqlx.DB // the CMS's tables
	ownDB    *sqlx.DB // cmsjobs_* tables: usually the same
	site     *cms.Site
	registry *jobs.Registry
	store    *sqlstore.Store
	wakeDir  string
	breakers *breaker.Breakers
	metrics  *web.Metrics
	tracer   *trace.Tracer // nil: nobody collects traces
	activity *activity     // nil: a command, whose deeds its caller knows
	handlers handlerSet
	garbage  sparing
}

// open joins the rooms that every command with a database needs.
func (a *app) open(ctx context.Context, l *config.Loaded) (*rooms, error) {
	r := &rooms{self: a.self, config: l, log: a.logger(l.Log), now: a.now}
	for _, step := range []func(context.Context) error{r.openDatabases, r.migrate, r.openSite, r.openKinds, r.openStore} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	return r, nil
}

// openLoaded is load and open.
func (a *app) openLoaded(ctx context.Context, more ...config.Flag) (*rooms, error) {
	l, err := a.load(more...)
	if err != nil {
		return nil, err
	}
	return a.open(ctx, l)
}

func (r *rooms) close() error {
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

// --- Databases ---

func (r *rooms) openDatabases(ctx context.Context) (err error) {
	d := r.config.Database
	if d.DSN == "" {
		return usagef("no database is configured: name the CMS's folder (--cms /var/www/site), or set database.dsn (--dsn, CMSJOBS_DATABASE_DSN).\nTo look around without one: cmsjobs demo")
	}
	if r.db, err = openDatabase(ctx, d.DSN, d.MaxOpen); err != nil {
		return err
	}
	r.ownDB = r.db
	if d.OwnDSN != "" {
		r.ownDB, err = openDatabase(ctx, d.OwnDSN, d.MaxOpen)
	}
	r.wakeDir = wake.Dir(identity(d.DSN))
	return err
}

func openDatabase(ctx context.Context, dsn config.DSN, limit int) (*sqlx.DB, error) {
	if err := sqliteFileThere(dsn); err != nil {
		return nil, databaseError{err}
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	db, err := sqlstore.Connect(ctx, sqlstore.ConnectOptions{DSN: dsn.Reveal(), MaxConnections: limit})
	if err != nil {
		return nil, databaseError{err}
	}
	return db, nil
}

// sqliteFileThere refuses a path without a file: SQLite would make an empty
// database and everything would look lost.
func sqliteFileThere(dsn config.DSN) error {
	if driver, err := dsn.Driver(); err != nil || driver != "sqlite" {
		return err
	}
	if _, err := os.Stat(sqlitePath(dsn)); err != nil {
		return fmt.Errorf("there is no SQLite database: %w", err)
	}
	return nil
}

// sqlitePath is the file that a DSN for SQLite names.
func sqlitePath(dsn config.DSN) string {
	_, path, _ := strings.Cut(dsn.Reveal(), ":")
	path, _, _ = strings.Cut(strings.TrimPrefix(path, "//"), "?")
	return path
}

// identity names a database for wake-ups: where it is, without a password and
// options, so that all processes of a host that use it meet.
func identity(dsn config.DSN) string {
	driver, err := dsn.Driver()
	if err != nil {
		return "unknown"
	}
	if driver == "sqlite" {
		path, err := filepath.Abs(sqlitePath(dsn))
		if err != nil {
			path = sqlitePath(dsn)
		}
		return driver + " " + path
	}
	text, _, _ := strings.Cut(dsn.Reveal(), "?")
	return driver + " " + text[strings.LastIndex(text, "@")+1:]
}

// migrate makes our own tables where the configuration lets us.
func (r *rooms) migrate(ctx context.Context) error {
	if !r.config.Database.Migrate {
		return nil
	}
	if err := r.makeTables(ctx); err != nil {
		return databaseError{fmt.Errorf("%w\nWithout the right to make tables: set database.own_dsn to a database of our own, or database.migrate to false and run \"cmsjobs migrate up\" as its owner", err)}
	}
	return nil
}

// makeTables makes what is missing of our tables. Processes that start at the
// same moment on a fresh database get into each other's way (a table "already
// exists" before the other noted that it made it): the later one looks again.
func (r *rooms) makeTables(ctx context.Context) error {
	for try := 1; ; try++ {
		err := migrations.Up(ctx, r.ownDB.DB, r.ownDB.DriverName())
		if err == nil || try == 8 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Duration(try)*100*time.Millisecond + rand.N(100*time.Millisecond)):
		}
	}
}

// --- The CMS ---

func (r *rooms) openSite(context.Context) (err error) {
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

// --- Kinds of work ---

func (r *rooms) openKinds(context.Context) error {
	r.registry = jobs.NewRegistry()
	r.breakers = breaker.New(r.ownDB, breaker.Config{})
	return registerKinds(r.registry, r)
}

// registerKinds joins every handler to its kind, then lets the configuration
// change their policies. It must work without a database: kinds are listed
// without one.
func registerKinds(registry *jobs.Registry, r *rooms) error {
	registerProbe(registry)
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

// --- The store ---

func (r *rooms) openStore(ctx context.Context) error {
	zone, err := r.site.Zone(ctx)
	if err != nil {
		r.log.Warn("the CMS's time zone cannot be read; UTC is used", "error", err)
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
	web.RegisterBulk(r.registry, r.store, r.store)
	return nil
}

// Enqueue puts jobs on their kinds' queues; the configuration may move a kind.
// It makes rooms a jobs.Enqueuer that handlers may hold before the store is
// open.
func (r *rooms) Enqueue(ctx context.Context, list ...jobs.New) ([]jobs.Receipt, error) {
	receipts, err := r.put(ctx, list)
	if err == nil && r.activity != nil {
		r.activity.enqueued(ctx, list, receipts)
	}
	return receipts, err
}

// asked is Enqueue for people and programs over HTTP, whose deed is in the
// trail.
type asked struct{ r *rooms }

// Enqueue implements jobs.Enqueuer.
func (a asked) Enqueue(ctx context.Context, list ...jobs.New) ([]jobs.Receipt, error) {
	return a.r.put(ctx, list)
}

func (r *rooms) put(ctx context.Context, list []jobs.New) ([]jobs.Receipt, error) {
	placed := slices.Clone(list)
	for i, n := range placed {
		if entry, known := r.registry.Lookup(n.Kind); known && n.Queue == "" {
			placed[i].Queue = cmp.Or(r.config.Kinds[entry.Kind].Queue, entry.Queue)
		}
		if r.metrics != nil {
			r.metrics.Enqueued(placed[i].Queue, n.Kind)
		}
	}
	return r.enqueueTraced(ctx, placed)
}

// enqueue is Enqueue of one job.
func (r *rooms) enqueue(ctx context.Context, n jobs.New) (jobs.Receipt, error) {
	receipts, err := r.Enqueue(ctx, n)
	if err != nil {
		return jobs.Receipt{}, err
	}
	return receipts[0], nil
}

// --- The worker ---

// workerOptions are a worker's words on the command line.
type workerOptions struct {
	once, stopWhenEmpty bool
	ended               func(jobs.Settlement)
}

// worker builds a worker; close ends what listens for its wake-ups.
func (r *rooms) worker(o workerOptions) (w *jobs.Worker, closeIt func(), err error) {
	q := r.config.Queue
	c := jobs.Config{
		Source: r.store, Roster: r.store, Registry: r.registry, Logger: r.log, Now: r.now, Random: rand.Float64,
		Info: workerInfo(q.WorkerID), Queues: r.queues(), Slots: q.Concurrency, Prefetch: q.Prefetch, Lease: q.Lease,
		PollMin: q.PollFirst, PollMax: q.Poll, Grace: q.Grace, MaxJobs: q.MaxJobs, MaxTime: q.MaxTime,
		Once: o.once, StopWhenEmpty: o.stopWhenEmpty, MemoryLimit: int64(q.Memory), Memory: residentMemory,
		DatabaseTrouble: sqlstore.Outage,
		RefreshEvery:    q.Refresh, Ended: o.ended,
	}
	closeIt = func() {}
	ears, err := wake.Listen(r.wakeDir)
	if err != nil {
		r.log.Info("no wake-ups on this host; jobs start at the next poll", "error", err)
	} else {
		c.Wake, c.Summon = ears.Jobs(), ears.Orders()
		closeIt = func() {
			if err := ears.Close(); err != nil {
				r.log.Debug("closing the wake-up socket", "error", err)
			}
		}
	}
	if w, err = jobs.NewWorker(c); err != nil {
		closeIt()
		return nil, nil, err
	}
	return w, closeIt, nil
}

// queues are those of the configuration, and those that the configuration
// moved kinds to.
func (r *rooms) queues() []string {
	names := slices.Clone(r.config.Queue.Queues)
	for _, kind := range r.registry.Kinds() {
		entry, _ := r.registry.Lookup(kind)
		if q := cmp.Or(r.config.Kinds[kind].Queue, entry.Queue); q != "" && !slices.Contains(names, q) && !r.chosenQueues() {
			names = append(names, q)
		}
	}
	return names
}

// chosenQueues says that the command line named the queues: then it means them.
func (r *rooms) chosenQueues() bool {
	return slices.ContainsFunc(r.config.Values(), func(v config.Value) bool {
		return v.Path == "queue.queues" && strings.HasPrefix(v.Origin, "flag")
	})
}

// workerInfo names this process: host:pid:random, as a host may run several
// workers and a pid comes again (checklist C28).
func workerInfo(prefix string) jobs.WorkerInfo {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return jobs.WorkerInfo{ID: fmt.Sprintf("%s:%d:%06x", cmp.Or(prefix, host), os.Getpid(), rand.Uint32N(1<<24)), Host: host, PID: os.Getpid(), Version: version}
}
