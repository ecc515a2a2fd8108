package app

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
func handlers() []func(*jobs.Registry, *Services) error {
	return []func(*jobs.Registry, *Services) error{
		sitemapHandler,
		mediaHandler,
		mailHandler,
		webhookHandler,
		notifyHandler,
		cacheHandler,
		publishHandler,
		analyticsHandler,
		backupHandler,
	}
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
	notify    *notify.Handler
}

// WithoutDatabase are services without a database, to list types by.
func (p *Process) WithoutDatabase(l *config.Loaded) (*Services, error) {
	db, err := sqlx.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	return &Services{Config: l, Log: slog.New(slog.DiscardHandler), Now: p.Now, DB: db, OwnDB: db, Orders: &orders.Book{DB: db, Now: p.Now},
		Site: &cms.Site{DB: db, Root: ".", Env: cms.Env{}}}, nil
}

func sitemapHandler(registry *jobs.Registry, r *Services) error {
	c := r.Config.Sitemap
	target, err := r.sitemapTarget()
	if err != nil || target == nil {
		return err
	}
	h, err := sitemap.New(sitemap.Config{
		Site: r.Site, DB: r.OwnDB, Target: target, Now: r.Now, Logger: r.Log,
		Options: sitemap.Options{Profile: c.Profile, Naming: c.Naming, PerFile: c.PerFile, Images: c.Images, Alternates: c.Alternates,
			News: c.News, Publication: c.Publication, Gzip: c.Gzip, Stylesheet: c.Stylesheet, Robots: c.Robots, KeepNoIndex: c.KeepNoindex, Models: r.models()},
		IndexNow: sitemap.IndexNowOptions{Mode: r.Config.IndexNow.Mode, Endpoints: r.Config.IndexNow.Endpoints, WriteKey: r.Config.IndexNow.WriteKey, Batch: r.Config.IndexNow.Batch},
		HTTP:     r.SearchEngines(outbound.Options{Timeout: 30 * time.Second, AllowPrivate: r.Config.Webhook.Networks(), AllowHTTP: true, SameHostRedirects: true, UserAgent: "cmsjobs/" + r.Version}),
		Updated:  r.sitemapUpdated,
	})
	if err != nil {
		return err
	}
	h.Register(registry)
	r.Handlers.Sitemap = h
	return nil
}

// SitemapFolder is where the maps are written.
func (r *Services) SitemapFolder() string { return cmp.Or(r.Config.Sitemap.Dir, r.Site.Public()) }

// sitemapTarget is where maps are written; nil where that is not known.
func (r *Services) sitemapTarget() (sitemap.Target, error) {
	switch c := r.Config.Sitemap; {
	case c.Target == "s3":
		bucket, err := r.bucket()
		if err != nil {
			return nil, UsageError{Err: fmt.Errorf("sitemap.target is s3: %w", err)}
		}
		return sitemap.Bucket(bucket, keyPrefix(c.Dir)), nil
	case c.Target == "cache":
		prefix, err := r.cachePrefix()
		if err != nil {
			return nil, err
		}
		return sitemap.CacheTable(cms.CacheTable{Site: r.Site, Prefix: prefix}, r.Now), nil
	case r.Site.Root == "" && c.Dir == "":
		r.Log.Debug("no sitemaps here: the CMS's folder is not known (cms.dir, or sitemap.dir)", "event", "sitemap.off")
		return nil, nil
	}
	return sitemap.Folder(r.SitemapFolder()), nil
}

// keyPrefix turns a folder into what its keys in a bucket begin with.
func keyPrefix(folder string) string {
	if folder = strings.Trim(folder, "/"); folder == "" {
		return ""
	}
	return folder + "/"
}

func mediaHandler(registry *jobs.Registry, r *Services) error {
	o, err := r.MediaOptions()
	if err != nil {
		return err
	}
	h, err := media.New(media.Config{Site: r.Site, Open: r.OpenMedia, Options: o, Now: r.Now, Logger: r.Log})
	if err != nil {
		return err
	}
	h.Register(registry)
	r.Handlers.Media = h
	return nil
}

// MediaOptions says in the handler's words what the configuration says.
func (r *Services) MediaOptions() (media.Options, error) {
	c := r.Config.Media
	limits := picture.DefaultLimits()
	limits.FileBytes = int64(c.MaxFile)
	o := media.Options{Widths: c.Widths, Name: c.Name, Position: c.Position, Quality: c.Quality, Copies: c.Copies, Optimize: c.Optimize,
		KeepEXIF: c.KeepEXIF, KeepICC: c.KeepICC, Placeholder: c.Placeholder, Animations: picture.Animations(c.Animations),
		Limits: limits, Memory: int64(c.Memory), AtOnce: c.AtOnce}
	if w := c.Watermark; w.Enabled {
		o.Watermark = &media.Watermark{Source: w.Source, Percent: w.Percent, Opacity: w.Opacity, Position: w.Position, X: w.X, Y: w.Y, Folders: w.Folders}
	}
	if c.Isolate && r.Self != "" {
		o.Apart = isolate.Renderer{Command: []string{r.Self, "media", "render"}, Memory: int64(c.IsolateMemory), Time: c.IsolateTime}
	}
	for _, text := range c.Sizes {
		size, err := config.ParseMediaSize(text)
		if err != nil {
			return o, UsageError{Err: err}
		}
		o.Sizes = append(o.Sizes, media.Size{Name: size.Name, Width: size.Width, Height: size.Height, Fit: size.Fit})
	}
	return o, nil
}

func webhookHandler(registry *jobs.Registry, r *Services) error {
	c := r.Config.Webhook
	h, err := webhook.New(webhook.Config{
		DB: r.OwnDB, AllowHTTP: c.AllowHTTP, DefaultSecret: c.Secret.Reveal(), Breaker: r.Breakers, Enqueue: r,
		Orders: r.Orders, Rows: slices.Contains(r.Config.Queue.InternalRows, webhook.Deliver.Name), Now: r.Now, Logger: r.Log,
		Client: outbound.New(outbound.Options{Timeout: c.Timeout, AllowPrivate: c.Networks(), AllowHTTP: c.AllowHTTP, UserAgent: "cmsjobs/" + r.Version}),
	})
	if err != nil {
		return fmt.Errorf("setting webhooks up (webhook.secret): %w", err)
	}
	h.Register(registry)
	r.Handlers.Webhook = h
	return nil
}
