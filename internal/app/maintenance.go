package app

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/analytics"
	"github.com/cmsjobs/cmsjobs/internal/handlers/cache"
	"github.com/cmsjobs/cmsjobs/internal/handlers/links"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail"
	"github.com/cmsjobs/cmsjobs/internal/handlers/notify"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

const day = 24 * time.Hour

// cacheHandler joins the cleaning types: caches, logs, the queue's own tables.
func cacheHandler(registry *jobs.Registry, r *Services) error {
	c, l := r.Config.Cache, r.Config.Logs
	o := cache.Options{Store: c.Driver, Prefix: c.Prefix, RedisIsOurs: c.Redis.Own, LogDays: int(l.Keep / day),
		RotateAbove: int64(l.MaxSize),
		Sessions:    l.Sessions > 0, EmailLogDays: int(l.Mails / day), RevisionDays: int(l.Revision / day),
		MemberActivityDays: int(l.Members / day)}
	set := cache.Config{Site: r.Site, Options: o, CleanQueue: func(ctx context.Context, dryRun bool) (any, error) {
		return r.CleanQueue(ctx, dryRun)
	}, Now: r.Now, Logger: r.Log}
	if c.Redis.Address != "" {
		set.Redis = &redis.Options{Addr: c.Redis.Address, Username: c.Redis.Username,
			Password: c.Redis.Password.Reveal(), DB: c.Redis.DB}
	}
	if l.MaxSize == 0 {
		set.Options.RotateAbove = -1
	}
	cache.New(set).Register(registry)
	jobs.Results[cleaned](registry, cache.QueueClean)
	return nil
}

// linksHandler joins the check of the site's own links.
func linksHandler(registry *jobs.Registry, r *Services) error {
	site := cmp.Or(r.Config.CMS.URL, r.Site.URL())
	if site == "" && r.everything { // only the type is wanted, to be described
		site = "https://example.com"
	}
	if site == "" {
		r.Log.Debug("no check of links here: the site's address is not known (cms.url)", "event", "links.off")
		return nil
	}
	set := links.Config{Site: site, Hosts: r.Config.Purge.Hosts, Found: r.linksBroken, Now: r.Now,
		Client: outbound.New(outbound.Options{Timeout: 30 * time.Second, AllowPrivate: everywhere(), AllowHTTP: true,
			SameHostRedirects: true, MaxBody: maxPage, UserAgent: "cmsjobs/" + r.Version + " (links.check)"})}
	if h := r.Handlers.Sitemap; h != nil {
		set.Addresses = h.Addresses
	}
	h, err := links.New(set)
	if err != nil {
		return err
	}
	h.Register(registry)
	return nil
}

// linksBroken notifies people of the first broken links; the job's result has more.
func (r *Services) linksBroken(ctx context.Context, job jobs.Job, found links.Result) {
	const named = 10
	var text strings.Builder
	for _, b := range found.Broken[:min(len(found.Broken), named)] {
		fmt.Fprintf(&text, "%s (%s)", b.URL, cmp.Or(b.Error, fmt.Sprint(b.Status)))
		if len(b.On) > 0 {
			fmt.Fprintf(&text, " on %s", b.On[0])
		}
		text.WriteByte('\n')
	}
	if more := found.Found - named; more > 0 {
		fmt.Fprintf(&text, "… and %d more\n", more)
	}
	jobs.FollowUp(ctx, notify.LinksBroken(text.String(), r.jobURL(job.UUID)))
}

// cachePrefix is what the keys of the CMS's database cache begin with.
func (r *Services) cachePrefix() (string, error) {
	if prefix := r.Config.Cache.Prefix; prefix != "" {
		return prefix, nil
	}
	store, err := r.Site.CacheStore("database")
	if err != nil {
		return "", err
	}
	return store.Prefixes[0], nil
}

// notifyHandler joins the ways in which administrators are notified.
func notifyHandler(registry *jobs.Registry, r *Services) error {
	c := r.Config.Notify
	n := notify.Config{DB: r.OwnDB, Interval: c.Every, Site: SiteName(r.Site), CMS: r.Site, Now: r.Now, Logger: r.Log,
		Client: outbound.New(outbound.Options{Timeout: 15 * time.Second, AllowPrivate: r.Config.Webhook.Networks(),
			UserAgent: "cmsjobs/" + r.Version})}
	if c.CMS {
		n.Channels = append(n.Channels, notify.Channel{Type: notify.TypeCMS})
	}
	if c.Mail {
		n.Mail = func(to []string, template string, data map[string]any) jobs.Spec {
			return mail.Send.New(mail.SendPayload{To: to, Template: template, Data: data})
		}
		n.Administrators = r.administrators
		n.Channels = append(n.Channels, notify.Channel{Type: notify.TypeMail, To: r.Config.Mail.Admin})
	}
	for _, channel := range c.Channels {
		n.Channels = append(n.Channels, notify.Channel{Name: channel.Name, Type: channel.Type,
			URL: channel.URL.Reveal(), Chat: channel.ChatID, MinLevel: channel.Level})
	}
	h, err := notify.New(n)
	if err != nil {
		return UsageError{Err: err}
	}
	h.Register(registry)
	r.Handlers.notify = h
	return nil
}

// administrators are the addresses of the CMS's setting admin_email.
func (r *Services) administrators(ctx context.Context) ([]string, error) {
	settings, err := r.Site.Settings(ctx)
	if err != nil {
		return nil, err
	}
	return settings.List("admin_email"), nil
}

func SiteName(s *cms.Site) string {
	if u, err := url.Parse(s.URL()); err == nil && u.Host != "" {
		return u.Host
	}
	return cmp.Or(s.Env["APP_NAME"], "the site")
}

// analyticsHandler joins the counting of visits.
func analyticsHandler(registry *jobs.Registry, r *Services) error {
	c := r.Config.Analytics
	a := analytics.Config{Site: r.Site, DB: r.OwnDB, Now: r.Now, Logger: r.Log, Hosts: c.Hosts,
		RespectDoNotTrack: c.HonourDNT, KeepRaw: c.KeepRaw,
		Buffer: c.Buffer, PerAddress: float64(c.Rate) / 60, TrustedProxies: r.Config.HTTP.Networks(),
		CountPostViews: !c.Collect && c.Table == ""}
	for _, g := range c.Goals {
		a.Goals = append(a.Goals, analytics.Goal(g))
	}
	if c.Table != "" {
		column := func(name string) string { return c.Columns[name] }
		a.Mapped = &analytics.Mapping{Table: c.Table, At: column("at"), Visitor: column("visitor"),
			Address: column("address"), Agent: column("agent"),
			Path: column("path"), Referrer: column("referrer"), Country: column("country"),
			Campaign: column("campaign"), Site: column("site")}
	}
	if c.MMDB != "" {
		countries, err := analytics.OpenCountries(c.MMDB)
		if err != nil { // mail and backups go on without it
			r.Log.Error("views are counted without countries", "event", "analytics.no_countries", "error", err)
			a.NoCountries = err
		} else {
			a.Countries = countries
		}
	}
	if c.Weekly {
		to := c.WeeklyTo
		if len(to) == 0 {
			to = r.Config.Mail.Admin
		}
		a.WeeklyMail = func(data map[string]any) jobs.Spec {
			return mail.Send.New(mail.SendPayload{To: to, Template: "weekly-analytics", Data: data})
		}
	}
	h, err := analytics.New(a)
	if err != nil {
		return UsageError{Err: err}
	}
	h.Register(registry)
	r.Handlers.Analytics = h
	return nil
}
