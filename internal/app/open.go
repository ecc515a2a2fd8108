package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app/probe"
	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/encryption"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/announce"
	"github.com/cmsjobs/cmsjobs/internal/jobs/breaker"
	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/jobs/orders"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	jobpages "github.com/cmsjobs/cmsjobs/internal/web/feature/jobs"
)

// Open connects the services that every command with a database needs.
func (p *Process) Open(ctx context.Context, l *config.Loaded) (*Services, error) {
	r := &Services{Self: p.Self, Version: p.Version, Config: l, Log: p.LogOf(l), Now: p.Now,
		collector: p.Collector, processors: p.Processors, completedLog: p.completedLog(l)}
	for _, step := range []func(context.Context) error{r.OpenDatabases, r.migrate, r.openSite, r.openKinds,
		r.openStore} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

// Look opens the databases and the site only: nothing is changed, and our tables
// may be missing.
func (p *Process) Look(ctx context.Context, l *config.Loaded) (*Services, error) {
	r := &Services{Self: p.Self, Version: p.Version, Config: l, Log: p.LogOf(l), Now: p.Now, looking: true}
	for _, step := range []func(context.Context) error{r.OpenDatabases, r.openSite} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

// OpenWaiting is open for services that last: for database.start_wait it tries
// again while the database does not answer, as after a reboot.
func (p *Process) OpenWaiting(ctx context.Context, l *config.Loaded) (*Services, error) {
	end := p.Now().Add(l.Database.StartWait)
	for wait := startWaitLeast; ; wait = min(2*wait, startWaitMost) {
		r, err := p.Open(ctx, l)
		left := end.Sub(p.Now())
		if err == nil || !database.Away(err) || left <= 0 || ctx.Err() != nil {
			return r, err
		}
		if wait == startWaitLeast {
			p.LogOf(l).Warn("database unreachable; waiting for it", "event", "database.start_wait",
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

func (r *Services) Close() error {
	var err error
	if r.Handlers.Mail != nil {
		r.Handlers.Mail.Close()
	}
	for _, db := range []*sqlx.DB{r.DB, r.OwnDB} {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}
	return err
}

func (r *Services) openSite(context.Context) (err error) {
	c := r.Config.CMS
	r.Site = &cms.Site{DB: r.DB, Prefix: r.Config.Database.Prefix, Jobs: r.Config.Database.JobsTable,
		Root: c.Dir, Env: cms.Env{}}
	if c.Zone != "" {
		if r.Site.FallbackZone, err = time.LoadLocation(c.Zone); err != nil {
			return UsageError{Err: fmt.Errorf("the zone %q: %w", c.Zone, err)}
		}
	}
	if c.Dir != "" {
		if r.Site.Env, err = cms.ReadEnv(c.Dir); err != nil {
			return UsageError{Err: err}
		}
	}
	if c.URL != "" {
		r.Site.Env["FORCE_ROOT_URL"] = c.URL
	}
	return nil
}

func (r *Services) openKinds(context.Context) error {
	r.Registry = jobs.NewRegistry()
	keys, err := r.fieldKeys()
	if err != nil {
		return UsageError{Err: err}
	}
	r.Registry.SetKeys(keys)
	r.Breakers = breaker.New(r.OwnDB, breaker.Config{
		Logger: r.Log, Recovered: func(ctx context.Context, dependency string) error {
			return r.Store.RunWaiting(ctx, dependency) // the store is opened after the breakers
		}})
	r.Orders = &orders.Book{DB: r.OwnDB, Now: r.Now}
	return RegisterKinds(r.Registry, r)
}

// fieldKeys are the keys of encrypted fields: the configuration's, else those of the CMS;
// nil where there are none. With encryption off they only decrypt what is there.
func (r *Services) fieldKeys() (*encryption.Keys, error) {
	var texts []string
	for _, key := range r.fieldKeyTexts() {
		texts = append(texts, key.text)
	}
	keys, err := encryption.Of(texts...)
	if err == nil && keys != nil && !r.Config.Queue.Encrypt {
		keys = keys.ToDecrypt()
	}
	return keys, err
}

// FieldKey says where the key comes from with which fields are encrypted, "" where there
// is none.
func (r *Services) FieldKey() string {
	for _, key := range r.fieldKeyTexts() {
		if encryption.Usable(key.text) {
			return key.from
		}
	}
	return ""
}

// fieldKeyTexts are the possible keys, the first usable of which encrypts.
func (r *Services) fieldKeyTexts() (keys []struct{ from, text string }) {
	q, env := r.Config.Queue, r.Site.Env
	add := func(from string, texts ...string) {
		for _, text := range texts {
			keys = append(keys, struct{ from, text string }{from, text})
		}
	}
	add("queue.encryption_key", q.EncryptionKey.Reveal())
	add("the CMS's APP_KEY", env["APP_KEY"])
	for _, key := range q.PreviousKeys {
		add("queue.previous_keys", key.Reveal())
	}
	add("the CMS's APP_PREVIOUS_KEYS", strings.Split(env["APP_PREVIOUS_KEYS"], ",")...)
	return keys
}

// RegisterKinds joins every handler to its type, then lets the configuration
// change their policies. It must work without a database: types are listed
// without one.
func RegisterKinds(registry *jobs.Registry, r *Services) error {
	probe.Register(registry, r.Orders, slices.Contains(r.Config.Queue.InternalRows, probe.Kind.Name))
	for _, register := range handlers() {
		if err := register(registry, r); err != nil {
			return err
		}
	}
	l := r.Config
	for name, k := range l.Types {
		if err := registry.Override(name, func(p jobs.Policy) jobs.Policy { return override(p, k) }); err != nil {
			return UsageError{Err: fmt.Errorf("types.%s: %w", name, err)}
		}
	}
	if share := l.Queue.Jitter; share > 0 {
		for _, name := range registry.Types() {
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

func override(p jobs.Policy, k config.JobType) jobs.Policy {
	p.MaxAttempts = cmp.Or(k.MaxAttempts, p.MaxAttempts)
	p.Timeout = cmp.Or(k.Timeout, p.Timeout)
	p.Limit = cmp.Or(k.Limit, p.Limit)
	p.MaxAge = cmp.Or(k.MaxAge, p.MaxAge)
	if len(k.Rate) > 0 {
		p.Rates = k.Rates()
	}
	if len(k.Backoff) > 0 {
		p.Backoff = jobs.Steps(k.Backoff...)
	}
	return p
}

func (r *Services) openStore(ctx context.Context) error {
	zone, err := r.Site.Zone(ctx)
	if err != nil {
		r.Log.Warn("the CMS's time zone cannot be read; UTC is used", "event", "cms.zone_unknown", "error", err)
		zone = time.UTC
	}
	q, d := r.Config.Queue, r.Config.Database
	o := tables.Options{
		Prefix: d.Prefix, Table: d.JobsTable, Registry: r.Registry, DefaultQueue: q.Default, OwnQueues: []string{
			"cmsjobs"},
		Connection: d.Connection, RetryAfter: q.PHPRetryAfter, Zone: zone,
		Logger: r.Log, Wake: r.wakeWorkers, Clock: r.Now,
		RestartedAt: func(ctx context.Context) (time.Time, error) {
			return r.Site.QueueRestartedAt(ctx, r.Config.Cache.Prefix)
		},
	}
	if r.OwnDB != r.DB {
		o.OwnDB = r.OwnDB
	}
	r.tableOptions = o
	if r.tables, err = tables.Open(ctx, r.DB, o); err != nil {
		return DatabaseError{Err: err}
	}
	if r.Store, err = queue.New(ctx, r.tables); err != nil {
		return DatabaseError{Err: err}
	}
	r.History = history.New(r.tables)
	r.Types = &announce.Store{DB: r.OwnDB, Now: r.Now}
	if err := r.Types.Refresh(ctx, r.Registry); err != nil {
		return DatabaseError{Err: err}
	}
	jobpages.RegisterBulk(r.Registry, r.Orders, r.History)
	return nil
}

// WithoutDatabase are services without a database, to list types by.
func (p *Process) WithoutDatabase(l *config.Loaded) (*Services, error) {
	db, err := sqlx.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	return &Services{Config: l, Log: slog.New(slog.DiscardHandler), Now: p.Now, DB: db, OwnDB: db,
		Orders: &orders.Book{DB: db, Now: p.Now}, everything: true,
		Site: &cms.Site{DB: db, Root: ".", Env: cms.Env{}}}, nil
}
