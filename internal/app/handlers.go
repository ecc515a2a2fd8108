package app

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/cache"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/isolate"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
	"github.com/cmsjobs/cmsjobs/internal/handlers/publish"
	"github.com/cmsjobs/cmsjobs/internal/handlers/purge"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
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
		purgeHandler,
		linksHandler,
		publishHandler,
		analyticsHandler,
		backupHandler,
		externalHandler,
	}
}

func sitemapHandler(registry *jobs.Registry, r *Services) error {
	c := r.Config.Sitemap
	if without, err := r.without("sitemap", sitemap.Generate.Name, sitemap.IndexNow.Name); err != nil || without {
		return err
	}
	target, err := r.sitemapTarget()
	if err != nil || target == nil {
		return err
	}
	h, err := sitemap.New(sitemap.Config{
		Site: r.Site, DB: r.OwnDB, Target: target, Now: r.Now, Logger: r.Log,
		Options: sitemap.Options{Profile: c.Profile, Naming: c.Naming, PerFile: c.PerFile, Images: c.Images,
			Alternates: c.Alternates,
			News:       c.News, Publication: c.Publication, Gzip: c.Gzip, Stylesheet: c.Stylesheet, Robots: c.Robots,
			Videos: c.Videos, LLMs: c.LLMs, KeepNoIndex: c.KeepNoindex, Models: r.models()},
		IndexNow: sitemap.IndexNowOptions{Mode: r.Config.IndexNow.Mode, Endpoints: r.Config.IndexNow.Endpoints,
			WriteKey: r.Config.IndexNow.WriteKey, Batch: r.Config.IndexNow.Batch},
		HTTP: r.SearchEngines(outbound.Options{
			Timeout: 30 * time.Second, AllowPrivate: r.Config.Webhook.Networks(), AllowHTTP: true,
			SameHostRedirects: true, UserAgent: "cmsjobs/" + r.Version}),
		Updated: r.sitemapUpdated,
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
	if without, err := r.without("media", media.ProcessImage.Name); err != nil || without {
		return err
	}
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
	o := media.Options{Widths: c.Widths, Name: c.Name, Position: c.Position, Quality: c.Quality, Copies: c.Copies,
		Optimize: c.Optimize,
		KeepEXIF: c.KeepEXIF, KeepICC: c.KeepICC, Placeholder: c.Placeholder,
		Animations: picture.Animations(c.Animations),
		Limits:     limits, Memory: int64(c.Memory), AtOnce: c.AtOnce}
	if w := c.Watermark; w.Enabled {
		o.Watermark = &media.Watermark{Source: w.Source, Percent: w.Percent, Opacity: w.Opacity, Position: w.Position,
			X: w.X, Y: w.Y, Folders: w.Folders}
	}
	if c.Isolate && r.Self != "" {
		o.Apart = isolate.Renderer{Command: []string{r.Self, "media", "render"}, Memory: int64(c.IsolateMemory),
			Time: c.IsolateTime}
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
		Orders: r.Orders, Rows: slices.Contains(r.Config.Queue.InternalRows, webhook.Deliver.Name), Now: r.Now,
		Logger: r.Log,
		Client: outbound.New(outbound.Options{Timeout: c.Timeout, AllowPrivate: c.Networks(), AllowHTTP: c.AllowHTTP,
			UserAgent: "cmsjobs/" + r.Version}),
	})
	if err != nil {
		return fmt.Errorf("setting webhooks up (webhook.secret): %w", err)
	}
	h.Register(registry)
	r.Handlers.Webhook = h
	return nil
}

// maxPage is how much of a page is read to warm its cache.
const maxPage = 32 << 20

// purgeHandler joins the caches in front of the site. Both their addresses and the
// site's are the owner's own: they may be private.
func purgeHandler(registry *jobs.Registry, r *Services) error {
	c, site := r.Config.Purge, cmp.Or(r.Config.CMS.URL, r.Site.URL())
	if site == "" && r.everything { // only the type is wanted, to be described
		site = "https://example.com"
	}
	if site == "" {
		r.Log.Debug("no purges here: the site's address is not known (cms.url)", "event", "purge.off")
		return nil
	}
	set := purge.Config{Site: site, Hosts: c.Hosts, Also: c.Also, Pages: c.Pages,
		Changed: r.changesToPurge(), Now: r.Now,
		Told:   func(ctx context.Context, c purge.Change) error { return r.publish(ctx, webhook.ContentChanged, c) },
		Logger: r.Log,
		Warm:   purge.WarmOptions{Most: c.Warm, AtOnce: c.WarmAtOnce},
		Client: outbound.New(outbound.Options{Timeout: 30 * time.Second, AllowPrivate: everywhere(), AllowHTTP: true,
			SameHostRedirects: true, MaxBody: maxPage, UserAgent: "cmsjobs/" + r.Version})}
	for _, d := range c.Destinations {
		set.Destinations = append(set.Destinations, purge.Destination{Name: d.Name, Type: d.Type, URL: d.URL,
			Prefix: d.Prefix, Method: d.Method, Zone: d.Zone, Service: d.Service, Token: d.Token.Reveal()})
	}
	h, err := purge.New(set)
	if err != nil {
		return UsageError{Err: fmt.Errorf("purge.destinations: %w", err)}
	}
	h.Register(registry)
	r.Handlers.purge, r.Handlers.compares = len(c.Destinations) > 0, true
	return nil
}

// changesToPurge reads what changed with the sitemap's eyes; nil where there is none.
func (r *Services) changesToPurge() purge.Changed {
	h := r.Handlers.Sitemap
	if h == nil {
		return nil
	}
	return func(ctx context.Context, rows []string, most int) (purge.Found, error) {
		var c sitemap.Changes
		var err error
		if len(rows) > 0 {
			c, err = h.ChangesOfRows(ctx, rows)
		} else {
			c, err = h.ChangesToPurge(ctx, most)
		}
		return purge.Found{URLs: c.URLs, Lists: c.Lists, More: c.More, Purged: func(ctx context.Context) error {
			return h.NoteChanges(ctx, c)
		}}, err
	}
}

// everywhere are all addresses.
func everywhere() []netip.Prefix {
	return []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
}

// publishHandler joins scheduled publishing.
func publishHandler(registry *jobs.Registry, r *Services) error {
	if without, err := r.without("publish", publish.Publish.Name); err != nil || without {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	c := publish.Config{Site: r.Site, DB: r.OwnDB, Queue: r, Models: r.publishModels(),
		Effects: r.published, Now: r.Now, Logger: r.Log,
		Every: r.Config.Publish.Every, Probe: r.Config.Publish.Probe, Night: r.night,
		Name: fmt.Sprintf("%.40s:%d", host, os.Getpid())}
	if r.Handlers.Sitemap != nil {
		c.Outdated, c.Edited = r.outdated, r.edited
	}
	h, err := publish.New(c)
	if err != nil {
		return err
	}
	h.Register(registry)
	r.Handlers.publish = h
	return nil
}

// outdated names the job that renews what shows the content: the sitemap, which the
// others follow; where none is made, the caches.
func (r *Services) outdated(ctx context.Context) (content string, renew []jobs.Spec, err error) {
	s, err := r.Handlers.Sitemap.Compare(ctx)
	switch {
	case err != nil || !s.Outdated:
	case s.Listed:
		renew = []jobs.Spec{sitemap.Generate.New(sitemap.GeneratePayload{})}
	default:
		renew, err = r.purgeChanged(ctx, purge.Payload{Changed: true})
	}
	return s.Content, renew, err
}

// edited names the job that purges the pages of rows, where they changed.
func (r *Services) edited(ctx context.Context, rows []string) ([]jobs.Spec, error) {
	c, err := r.Handlers.Sitemap.ChangesOfRows(ctx, rows)
	if err != nil || len(c.URLs) == 0 {
		return nil, err
	}
	return r.purgeChanged(ctx, purge.Payload{Rows: rows})
}

// purgeChanged is the job that purges what changed and tells subscribers of it; none where
// there is nobody to tell.
func (r *Services) purgeChanged(ctx context.Context, p purge.Payload) ([]jobs.Spec, error) {
	if !r.Handlers.purge {
		told, err := r.deliveries(ctx, webhook.ContentChanged, nil)
		if err != nil || len(told) == 0 || !r.Handlers.compares {
			return nil, err
		}
	}
	p.Cold = p.Cold || !r.Handlers.purge
	return []jobs.Spec{purge.Purge.New(p)}, nil
}

// models are the content of plugins that the configuration names.
func (r *Services) models() []cms.Model {
	var list []cms.Model
	for _, m := range r.Config.CMS.Models {
		list = append(list, cms.Model{Name: m.Name, Table: m.Table, Class: m.Class, Prefix: m.Prefix,
			StatusColumn: m.Status, Published: m.Published,
			TitleColumn: m.Title, ImageColumn: m.Image, Path: m.Path, Where: m.Where, VisibleColumn: m.Visible})
	}
	return list
}

// publishModels is what may be published: the stock content and the configured
// one, each with the column of its date.
func (r *Services) publishModels() []publish.Model {
	list := publish.Models()
	for i, m := range r.models() {
		if m.Class != "" {
			list = append(list, publish.Model{Model: m, DateColumn: r.Config.CMS.Models[i].Date})
		}
	}
	for i := range list {
		if column := r.Config.Publish.Dates[list[i].Name]; column != "" {
			list[i].DateColumn = column
		}
	}
	return list
}

// CancelJob implements publish.Queue.
func (r *Services) CancelJob(ctx context.Context, uuid string) error {
	_, err := r.History.Cancel(ctx, jobs.Filter{UUIDs: []string{uuid}}, 1)
	return err
}

// published says what follows a publication, beside the new sitemap that tells search
// engines of it. The comparison of the purge notes the address as purged, so that the
// sitemap's purge leaves it out.
func (r *Services) published(ctx context.Context, p publish.Publication) ([]jobs.Spec, error) {
	next := []jobs.Spec{cache.Clear.New(cache.ClearPayload{Tags: []string{p.Model}})}
	if r.Handlers.purge && p.URL != "" {
		next = append(next, purge.Purge.New(purge.Payload{Changed: r.Handlers.Sitemap != nil,
			URLs: append([]string{p.URL}, r.Config.Purge.Also...)}))
	}
	if r.Handlers.Sitemap != nil {
		next = append(next, sitemap.Generate.New(sitemap.GeneratePayload{}))
	}
	if to := r.Config.Mail.Admin; r.Config.Publish.Mail && len(to) > 0 {
		data := map[string]any{"title": p.Title, "url": p.URL, "publishedAt": p.At.Format("2006-01-02 15:04")}
		next = append(next, mail.Send.New(mail.SendPayload{To: to, Template: "content-published", Data: data}))
	}
	told, err := r.deliveries(ctx, "content.published", map[string]any{"model": p.Model, "id": p.ID,
		"title": p.Title, "url": p.URL})
	return append(next, told...), err
}
