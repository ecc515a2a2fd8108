package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app/activity"
	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/analytics"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/systemd"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/health"
)

// part is one of the things that run does, until its context ends.
type part struct {
	name string
	run  func(context.Context) error
}

// Parts lists what the configuration enables. onAbort gets what ends the worker
// without its grace period.
func (r *Services) Parts(onAbort func(abort func())) ([]part, error) {
	c := r.Config
	r.Metrics = health.NewMetrics(r.Version, func(jobType string) bool {
		_, known := r.Registry.Known(jobType)
		return known
	})
	r.OpenTracer()
	r.Activity = r.NewActivity()
	var parts []part
	if err := r.watchIfEnabled(); err != nil {
		return nil, err
	}
	if c.Queue.Worker && c.Queue.Enabled {
		parts = append(parts, part{"worker", func(ctx context.Context) error {
			return r.Work(ctx, WorkerOptions{
				Ended: func(end jobs.Settlement) { r.Metrics.Ended(end); r.TraceRun(end) }}, onAbort)
		}})
	}
	if c.Schedule.Enabled && c.Queue.Enabled { // or jobs would wait that nobody runs
		s, err := r.Scheduler()
		if err != nil {
			return nil, err
		}
		parts = append(parts, part{"scheduler", s.Run})
	}
	parts = append(parts, r.logParts()...)
	pools, err := r.phpParts()
	if err != nil {
		return nil, err
	}
	parts = append(parts, pools...)
	if c.Publish.Watch && r.Handlers.publish != nil {
		parts = append(parts, part{"watcher", r.watchContent})
	}
	pages, err := r.webParts()
	if err != nil {
		return nil, err
	}
	parts = append(parts, pages...)
	if r.remote != nil {
		parts = append(parts, part{"remote", r.remote.Run}, part{"types", r.followTypes})
	}
	if len(parts) == 0 {
		return nil, nil
	}
	if r.conditions != nil {
		parts = append(parts, part{"conditions", r.conditions.Run})
	}
	if r.Shared != nil { // the process with the sites notifies systemd
		return parts, nil
	}
	// The database may be away for a day and the process is well all the same:
	// the watchdog is for a process that hangs.
	return append(parts, part{"systemd", func(ctx context.Context) error {
		return systemd.Notify(ctx, func(context.Context) error { return nil })
	}}), nil
}

// logParts archive the binary log behind backups.
func (r *Services) logParts() []part {
	c, h := r.Config.Queue, r.Handlers.Backup
	if h == nil || !h.HasLog() || !c.Worker || !c.Enabled {
		return nil
	}
	return []part{{"log archive", h.ArchiveLog}}
}

// webParts are the server of pages and API, and the collector of page views that it
// serves.
func (r *Services) webParts() (parts []part, err error) {
	if !r.Config.HTTP.Enabled {
		return nil, nil
	}
	var collector *analytics.Collector
	if r.Config.Analytics.Collect {
		collector = r.Handlers.Analytics.NewCollector()
		parts = append(parts, part{"collector", collector.Run})
	}
	page, err := r.web(collector)
	if err != nil {
		return nil, err
	}
	return append(parts, page), nil
}

// watchIfEnabled watches the conditions where conditions.enabled says so.
func (r *Services) watchIfEnabled() error {
	if !r.Config.Conditions.Enabled {
		return nil
	}
	return r.WatchConditions(partNames(r.Config))
}

// partNames are the parts that the configuration enables, for the list of
// processes.
func partNames(c *config.Loaded) []string {
	var names []string
	for _, x := range []struct {
		name string
		on   bool
	}{{"worker", c.Queue.Worker && c.Queue.Enabled}, {"scheduler", c.Schedule.Enabled && c.Queue.Enabled},
		{"php", c.PHP.Enabled && c.Queue.Enabled}, {"web", c.HTTP.Enabled}} {
		if x.on {
			names = append(names, x.name)
		}
	}
	return names
}

// web opens the port at once: when systemd is notified that the service is ready,
// it answers.
func (r *Services) web(collector *analytics.Collector) (part, error) {
	server, err := r.WebServer(collector)
	if err != nil {
		return part{}, err
	}
	if r.Shared != nil {
		return part{"web", func(ctx context.Context) error { return r.Shared.Serve(ctx, server) }}, nil
	}
	l, err := Listen(r.Config.HTTP)
	if err != nil {
		return part{}, err
	}
	return part{"web", func(ctx context.Context) error { return r.serve(ctx, server, l) }}, nil
}

// serve answers HTTP, or HTTPS where a certificate is configured.
func (r *Services) serve(ctx context.Context, server *web.Server, l net.Listener) error {
	l, err := Secured(l, r.Config.HTTP, r.Log)
	if err != nil {
		return err
	}
	return server.Serve(ctx, l)
}

// Secured makes l a listener of TLS where a certificate is configured, and logs the
// address of the admin page.
func Secured(l net.Listener, c config.HTTP, log *slog.Logger) (net.Listener, error) {
	scheme := "http"
	if c.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return nil, errors.Join(UsageError{Err: fmt.Errorf("http.tls_cert: %w", err)}, l.Close())
		}
		l, scheme = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
			NextProtos: []string{"h2", "http/1.1"}}), "https"
	}
	log.Info("admin page", "event", "web.started", "url", scheme+"://"+l.Addr().String()+"/")
	return l, nil
}

// errEnded says that a part ended by itself and in order; the others follow.
var errEnded = errors.New("ended")

// Together runs all parts; when one ends, whatever the reason, all end: a
// supervisor then starts the whole again instead of half a service living on.
func Together(ctx context.Context, parts []part) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range parts {
		group.Go(func() error {
			if err := p.run(ctx); err != nil {
				return err
			}
			return errEnded
		})
	}
	if err := group.Wait(); !errors.Is(err, errEnded) {
		return err
	}
	return nil
}

// Work runs one worker until ctx ends. onAbort gets what ends it without its
// grace period.
func (r *Services) Work(ctx context.Context, o WorkerOptions, onAbort func(abort func())) error {
	r.collector.Limit(int64(r.Config.Queue.Memory))
	o, told := r.telling(ctx, o)
	defer told()
	w, call, closeIt, err := r.worker(o)
	if err != nil {
		return err
	}
	defer closeIt()
	onAbort(w.Abort)
	if h := r.Handlers.Backup; h != nil {
		h.SettleQuietly(ctx)
		if !o.Once && !o.StopWhenEmpty {
			stop := settling(ctx, h.SettleQuietly)
			defer stop()
		}
	}
	if !o.Once && !o.StopWhenEmpty { // those end before anything new comes
		stop, err := r.watchFeed(ctx, call)
		if err != nil {
			return err
		}
		defer stop()
	}
	return w.Run(ctx)
}

func (r *Services) NewActivity() *activity.Log {
	return activity.New(r.Log, r.Config.Activity, access.NewStore(r.OwnDB, r.Now))
}

// without says whether an area of job types cannot work beside this application,
// and notes why: a plain Laravel has no pages, no pictures and nothing to publish
// that this service knows of.
func (r *Services) without(area string, types ...string) (bool, error) {
	if r.everything || r.tablesUnknown() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	names, err := r.Site.TableNames(ctx)
	if err != nil {
		return false, err
	}
	reason := missingFor(area, r.models(), func(table string) bool {
		return slices.Contains(names, r.Site.Table(table))
	})
	if reason == "" {
		return false, nil
	}
	if r.Off == nil {
		r.Off = map[string]string{}
	}
	for _, name := range types {
		r.Off[name] = reason
	}
	r.Log.Debug("an area is off: the database has none of its tables", "event", "cms.area_off", "area", area,
		"reason", reason)
	return true, nil
}

// tablesUnknown says that nobody named the application: a database alone may be one
// that is filled later.
func (r *Services) tablesUnknown() bool { return r.Site.Root == "" }

// missingFor says what an area needs that the database does not have.
func missingFor(area string, models []cms.Model, has func(table string) bool) string {
	stock := func(m cms.Model) bool { return has(m.WithDefaults().Table) }
	switch area {
	case "media":
		if !has("media_files") {
			return "the database has no table media_files of a CMS"
		}
		return ""
	case "publish":
		models = slices.DeleteFunc(slices.Clone(models), func(m cms.Model) bool { return m.Class == "" })
	default:
		if slices.ContainsFunc(models, func(m cms.Model) bool { return m.Path != "" && stock(m) }) {
			return ""
		}
	}
	if has("slugs") && slices.ContainsFunc(append(cms.Models(), models...), stock) {
		return ""
	}
	if area == "publish" {
		return "the database has no tables of a CMS's content"
	}
	return "the database has no tables of a CMS's content; name the application's own tables in cms.models " +
		"(cmsjobs sitemap generate --dry-run shows what they give)"
}
