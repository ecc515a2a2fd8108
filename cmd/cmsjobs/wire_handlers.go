package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/analytics"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/isolate"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
	"github.com/cmsjobs/cmsjobs/internal/handlers/notify"
	"github.com/cmsjobs/cmsjobs/internal/handlers/publish"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/orders"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// handlers joins each handler to what it needs, one function a handler. What
// cannot work here (no folder of the CMS, say) is left out with a word in the
// log: its jobs then wait for a worker that can run them.
func handlers() []func(*jobs.Registry, *services) error {
	return []func(*jobs.Registry, *services) error{sitemapHandler, mediaHandler, mailHandler, webhookHandler, notifyHandler, cacheHandler,
		publishHandler, analyticsHandler, backupHandler}
}

// handlerSet are the handlers that commands and pages call besides their jobs.
// One that cannot work here is nil.
type handlerSet struct {
	sitemap   *sitemap.Handler
	media     *media.Handler
	mail      *mail.Handler
	webhook   *webhook.Handler
	analytics *analytics.Handler
	backup    *backup.Handler
	publish   *publish.Handler
	notify    *notify.Handler
}

// withoutDatabase are rooms without a database, to list kinds by.
func (p *process) withoutDatabase(l *config.Loaded) (*services, error) {
	db, err := sqlx.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	return &services{config: l, log: slog.New(slog.DiscardHandler), now: p.now, db: db, ownDB: db, orders: &orders.Book{DB: db, Now: p.now},
		site: &cms.Site{DB: db, Root: ".", Env: cms.Env{}}}, nil
}

func sitemapHandler(registry *jobs.Registry, r *services) error {
	c := r.config.Sitemap
	target, err := r.sitemapTarget()
	if err != nil || target == nil {
		return err
	}
	h, err := sitemap.New(sitemap.Config{
		Site: r.site, DB: r.ownDB, Target: target, Now: r.now, Logger: r.log,
		Options: sitemap.Options{Profile: c.Profile, Naming: c.Naming, PerFile: c.PerFile, Images: c.Images, Alternates: c.Alternates,
			News: c.News, Publication: c.Publication, Gzip: c.Gzip, Stylesheet: c.Stylesheet, Robots: c.Robots, KeepNoIndex: c.KeepNoindex, Models: r.models()},
		IndexNow: sitemap.IndexNowOptions{Mode: r.config.IndexNow.Mode, Endpoints: r.config.IndexNow.Endpoints, WriteKey: r.config.IndexNow.WriteKey, Batch: r.config.IndexNow.Batch},
		HTTP:     r.searchEngines(outbound.Options{Timeout: 30 * time.Second, AllowPrivate: r.config.Webhook.Networks(), AllowHTTP: true, SameHostRedirects: true, UserAgent: "cmsjobs/" + r.version}),
		Updated:  r.sitemapUpdated,
	})
	if err != nil {
		return err
	}
	h.Register(registry)
	r.handlers.sitemap = h
	return nil
}

// sitemapFolder is where the maps are written.
func (r *services) sitemapFolder() string { return cmp.Or(r.config.Sitemap.Dir, r.site.Public()) }

// sitemapTarget is where maps are written; nil where that is not known.
func (r *services) sitemapTarget() (sitemap.Target, error) {
	switch c := r.config.Sitemap; {
	case c.Target == "s3":
		bucket, err := r.bucket()
		if err != nil {
			return nil, usageError{fmt.Errorf("sitemap.target is s3: %w", err)}
		}
		return sitemap.Bucket(bucket, keyPrefix(c.Dir)), nil
	case c.Target == "cache":
		prefix, err := r.cachePrefix()
		if err != nil {
			return nil, err
		}
		return sitemap.CacheTable(cms.CacheTable{Site: r.site, Prefix: prefix}, r.now), nil
	case r.site.Root == "" && c.Dir == "":
		r.log.Debug("no sitemaps here: the CMS's folder is not known (cms.dir, or sitemap.dir)", "event", "sitemap.off")
		return nil, nil
	}
	return sitemap.Folder(r.sitemapFolder()), nil
}

// keyPrefix turns a folder into what its keys in a bucket begin with.
func keyPrefix(folder string) string {
	if folder = strings.Trim(folder, "/"); folder == "" {
		return ""
	}
	return folder + "/"
}

func mediaHandler(registry *jobs.Registry, r *services) error {
	o, err := r.mediaOptions()
	if err != nil {
		return err
	}
	h, err := media.New(media.Config{Site: r.site, Open: r.openMedia, Options: o, Now: r.now, Logger: r.log})
	if err != nil {
		return err
	}
	h.Register(registry)
	r.handlers.media = h
	return nil
}

// mediaOptions says in the handler's words what the configuration says.
func (r *services) mediaOptions() (media.Options, error) {
	c := r.config.Media
	limits := picture.DefaultLimits()
	limits.FileBytes = int64(c.MaxFile)
	o := media.Options{Widths: c.Widths, Name: c.Name, Position: c.Position, Quality: c.Quality, Copies: c.Copies, Optimize: c.Optimize,
		KeepEXIF: c.KeepEXIF, KeepICC: c.KeepICC, Placeholder: c.Placeholder, Animations: picture.Animations(c.Animations),
		Limits: limits, Memory: int64(c.Memory), AtOnce: c.AtOnce}
	if w := c.Watermark; w.Enabled {
		o.Watermark = &media.Watermark{Source: w.Source, Percent: w.Percent, Opacity: w.Opacity, Position: w.Position, X: w.X, Y: w.Y, Folders: w.Folders}
	}
	if c.Isolate && r.self != "" {
		o.Apart = isolate.Renderer{Command: []string{r.self, "media", "render"}, Memory: int64(c.IsolateMemory), Time: c.IsolateTime}
	}
	for _, text := range c.Sizes {
		size, err := config.ParseMediaSize(text)
		if err != nil {
			return o, usageError{err}
		}
		o.Sizes = append(o.Sizes, media.Size{Name: size.Name, Width: size.Width, Height: size.Height, Fit: size.Fit})
	}
	return o, nil
}

func webhookHandler(registry *jobs.Registry, r *services) error {
	c := r.config.Webhook
	h, err := webhook.New(webhook.Config{
		DB: r.ownDB, AllowHTTP: c.AllowHTTP, DefaultSecret: c.Secret.Reveal(), Breaker: r.breakers, Enqueue: r,
		Orders: r.orders, Rows: slices.Contains(r.config.Queue.InternalRows, webhook.Deliver.Name), Now: r.now, Logger: r.log,
		Client: outbound.New(outbound.Options{Timeout: c.Timeout, AllowPrivate: c.Networks(), AllowHTTP: c.AllowHTTP, UserAgent: "cmsjobs/" + r.version}),
	})
	if err != nil {
		return fmt.Errorf("setting webhooks up (webhook.secret): %w", err)
	}
	h.Register(registry)
	r.handlers.webhook = h
	return nil
}
