package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/answers"
	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/analytics"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/provider"
	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/feature"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/health"
	jobpages "github.com/cmsjobs/cmsjobs/internal/web/feature/jobs"
	mailpage "github.com/cmsjobs/cmsjobs/internal/web/feature/mail"
	"github.com/cmsjobs/cmsjobs/internal/web/saved"
)

// serves is how long an expensive answer serves: long enough for many who ask at
// once, short enough that nobody sees old figures after an action.
const serves = 10 * time.Second

// WebServer joins the HTTP API and the admin page to the other services.
// collector is nil where page views are not collected.
func (r *Services) WebServer(collector *analytics.Collector) (*web.Server, error) {
	c := r.Config.HTTP
	gate, err := r.gate()
	if err != nil {
		return nil, err
	}
	control, err := r.Control()
	if err != nil {
		return nil, err
	}
	cache := answers.New(r.Now, r.Log)
	ports := r.ports(cache)
	ports.Service = feature.Service{Mutator: r.History, Control: control, Ticker: webTicker{r},
		Breakers:     r.OpenBreakers,
		DefaultQueue: r.Config.Queue.Default, PHPQueues: r.Config.PHP.Served(), Silenced: r.Config.PHP.Silenced,
		NoPriorities: !r.HasPriorities(),
		Batches:      r.Batches(), Saved: saved.NewStore(r.OwnDB, r.Now), Restorable: r.History.Restorable,
		Ready: []health.Check{
			{Name: conditions.DatabaseDown, Do: r.DB.PingContext}}}
	ports.Refresh = func(ctx context.Context) error { return r.Types.Refresh(ctx, r.Registry) }
	if r.Config.Queue.Enabled {
		r.remote = r.remoteHub()
		ports.Remote = r.remote
	}
	r.showConditions(&ports.Service, cache)
	if !r.Config.Queue.Enabled {
		ports.Inline = r.Inline()
	}
	set := web.Config{
		Enqueuer: httpEnqueuer{r}, Registry: r.Registry, Ledger: r.History, History: r.History, Gate: gate,
		Settings: r.settings, Metrics: r.Metrics.Registry, Unavailable: database.Outage,
		Features:    feature.All(ports),
		APIDisabled: !c.API, EnqueueRule: c.EnqueueRule, ManageRule: c.ManageRule, AllowedTopics: c.Types,
		OperatorKinds: []string{webhook.Deliver.Name}, PublicMetrics: c.Metrics,
		TrustedProxies: c.Networks(), AllowedOrigins: c.Origins, MaskPaths: c.Mask, BodyLimit: int64(c.MaxBody),
		Rate:            c.Rate,
		ShortenVisitors: r.Config.Analytics.LogAddress == "shorten", Mount: r.mounts(collector), Version: r.Version,
		Now: r.Now, Log: r.Log,
		Base: r.Config.Base(),
	}
	if r.Shared != nil {
		set.Sites = r.Shared.Sites
	}
	return web.New(set)
}

// Inline runs jobs at once, where they are disabled, and keeps their runs.
func (r *Services) Inline() jobpages.InlineExecutor {
	return orderedExecutor{r, jobpages.NewInline(r.Registry, r.Now, r.recordAtOnce)}
}

// recordAtOnce writes the run of a job that had no row. The job is done, whether or not
// the database takes its run.
func (r *Services) recordAtOnce(ctx context.Context, n jobs.Spec, end jobs.Settlement) {
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	end.Error = redact.Text(end.Error)
	if err := r.Store.RecordAtOnce(ctx, n, end); err != nil {
		r.Log.Warn("the run of a job that was run at once could not be written", "event", "job.not_recorded",
			"type", n.Type, "job", n.UUID, "error", err)
	}
}

// recordTime bounds how long the run of such a job may take to be written.
const recordTime = 10 * time.Second

// orderedExecutor writes the orders of internal jobs before it runs them.
type orderedExecutor struct {
	r *Services
	jobpages.InlineExecutor
}

// Do implements the pages' InlineExecutor.
func (d orderedExecutor) Do(ctx context.Context, n jobs.Spec) (json.RawMessage, error) {
	given, err := d.r.Orders.Give(ctx, d.r.Registry, n)
	if err != nil {
		return nil, err
	}
	return d.InlineExecutor.Do(ctx, given[0])
}

// mounts are the routes that handlers serve without the API's authorization.
func (r *Services) mounts(collector *analytics.Collector) map[string]http.Handler {
	m := map[string]http.Handler{}
	if collector != nil {
		m["/collect"] = collector
		if key := r.Config.Analytics.ServerKey.Reveal(); key != "" {
			m["/collect/server"] = collector.Server(key)
		}
		m["/collect.js"] = http.HandlerFunc(analytics.ServeScript)
	}
	if h := r.Handlers.Mail; h != nil && r.Config.HTTP.API {
		log := func(err error) {
			r.Log.Warn("bounce report refused", "event", "mail.bounce_refused", "error", err)
		}
		m["/api/v1/mail/bounces"] = bounces(h, log)
		for _, service := range provider.Names() {
			m["/api/v1/mail/bounces/"+service] = serviceReports(h, service, log)
		}
	}
	return m
}

// gate lets people in: accounts of the configuration, then the CMS's own.
func (r *Services) gate() (*access.Authenticator, error) {
	c := r.Config.HTTP
	g := &access.Authenticator{Store: access.NewStore(r.OwnDB, r.Now), PermissionRoles: map[string]access.Role{}}
	users := c.Users
	if c.AdminPassword != "" {
		users = append(users, config.User{Name: c.AdminUser, Password: c.AdminPassword,
			Role: string(access.Administrator)})
	}
	for _, u := range users {
		hash, err := hashed(u.Password.Reveal())
		if err != nil {
			return nil, UsageError{Err: fmt.Errorf("the password of %s: %w", u.Name, err)}
		}
		g.Users = append(g.Users, access.User{Name: u.Name, PasswordHash: hash, Role: access.Role(u.Role)})
	}
	if c.CMSAccounts {
		g.CMS = cmsAccounts{r.Site}
	}
	for permission, role := range c.Permissions {
		g.PermissionRoles[permission] = access.Role(role)
	}
	return g, nil
}

// hashed takes a bcrypt hash as it is and hashes anything else.
func hashed(password string) (string, error) {
	if _, err := bcrypt.Cost([]byte(password)); err == nil {
		return password, nil
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	return string(hash), err
}

// cmsAccounts are the CMS's own administrators.
type cmsAccounts struct{ site *cms.Site }

func (a cmsAccounts) AccountByLogin(ctx context.Context, login string) (access.Account, error) {
	u, err := a.site.UserByLogin(ctx, login)
	if errors.Is(err, cms.ErrNoUser) {
		err = errors.Join(jobs.ErrNotFound, err)
	}
	return access.Account{ID: u.ID, Name: u.Name, PasswordHash: u.PasswordHash, SuperUser: u.SuperUser,
		Permissions:           u.Permissions,
		SessionsInvalidatedAt: u.SessionsInvalidatedAt}, err
}

// settings lists the configuration for people, secrets masked.
func (r *Services) settings() []web.Setting {
	var list []web.Setting
	for _, v := range r.Config.Values() {
		list = append(list, web.Setting{Name: v.Path, Value: v.Text, Origin: v.Origin})
	}
	return list
}

// webTicker does one round for POST /api/cron/tick, within the request's time.
type webTicker struct{ r *Services }

func (t webTicker) Tick(ctx context.Context) (ops.TickReport, error) {
	return t.r.Tick(ctx, 25*time.Second)
}

// ports are what the pages show besides the service itself. One whose handler is
// nil is not configured, and its page says so.
func (r *Services) ports(cache *answers.Cache) feature.Ports {
	p := feature.Ports{Usage: webUsage{r, cache}}
	if h := r.Handlers.Mail; h != nil {
		p.Mail = mailpage.Ports{Log: WebMail{h}, Suppressions: WebMail{h}, Templates: WebMail{h}}
	}
	if h := r.Handlers.Analytics; h != nil {
		p.Analytics = webAnalytics{h}
	}
	if h := r.Handlers.Webhook; h != nil {
		p.Webhooks = WebWebhooks{h}
	}
	if h := r.Handlers.Backup; h != nil {
		p.Backups = webBackups{h, httpEnqueuer{r}}
	}
	if r.Handlers.Media != nil {
		p.Media = webMedia{r, cache}
	}
	if h := r.Handlers.Sitemap; h != nil {
		p.Sitemap = webSitemap{h, r.History, hostsOf(r.Config.IndexNow.Endpoints)}
	}
	return p
}

// Listen opens the port of the configuration.
func Listen(c config.HTTP) (net.Listener, error) {
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w: another program has the port, or it is not ours to open; change "+
			"http.listen", c.Listen, err)
	}
	return l, nil
}
