package sites

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// Front passes requests on to the sites: by the name in their path, or by their host
// where a site has its own.
type Front struct {
	names         []string
	publicMetrics bool
	log           *slog.Logger
	now           func() time.Time
	list          http.Handler
	metrics       *prometheus.Registry
	up            *prometheus.GaugeVec

	mu    sync.RWMutex
	sites map[string]*open
}

// open is a site that answers.
type open struct {
	name, base, host, url string
	handler               http.Handler
	running               sync.WaitGroup // requests
	readiness             readiness
}

// NewFront makes the front of the sites of the names; shared is what they have in common.
// It listens nowhere yet.
func NewFront(names []string, shared *config.Loaded, p *app.Process) (*Front, error) {
	f := &Front{names: names, publicMetrics: shared.HTTP.Metrics, log: p.Logger(shared.Log), now: p.Now,
		metrics: prometheus.NewRegistry(), sites: map[string]*open{}}
	f.up = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cmsjobs_site_up",
		Help: "Whether the services of a site run in this process (1) or could not be started (0)."}, []string{"site"})
	f.metrics.MustRegister(f.up, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, name := range f.names {
		f.up.WithLabelValues(name).Set(0)
	}
	var err error
	f.list, err = web.SitesList(web.SitesConfig{Sites: f.statuses, Version: p.Version, Now: p.Now, Log: f.log})
	return f, err
}

// Serve answers on l until ctx ends.
func (f *Front) Serve(ctx context.Context, l net.Listener) error {
	return web.Listen(ctx, l, f, web.Listening{Log: f.log, Stop: func() {}})
}

// share makes r a site of the process.
func (f *Front) share(r *app.Services) {
	r.Shared.Sites = f.known
	r.Shared.Serve = func(ctx context.Context, server *web.Server) error { return f.serve(ctx, r, server) }
}

// serve passes requests on to a site until ctx ends, and waits for those that run.
func (f *Front) serve(ctx context.Context, r *app.Services, server *web.Server) error {
	l := r.Config
	site := &open{name: l.Site, base: l.Base(), host: l.Host(), url: l.HTTP.URL, handler: server.Handler()}
	labelled := prometheus.WrapRegistererWith(prometheus.Labels{"site": l.Site}, f.metrics)
	if l.HTTP.Metrics {
		// these are about the process, which is one
		r.Metrics.Registry.Unregister(collectors.NewGoCollector())
		r.Metrics.Registry.Unregister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		if err := labelled.Register(r.Metrics.Registry); err != nil {
			return fmt.Errorf("registering the metrics of %s: %w", l.Site, err)
		}
		defer labelled.Unregister(r.Metrics.Registry)
	}
	f.add(site)
	stop := context.AfterFunc(ctx, func() { f.remove(site) })
	defer stop()
	server.Run(ctx)
	f.remove(site)
	ended := make(chan struct{})
	go func() { site.running.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(requestGrace):
	}
	return nil
}

// requestGrace is how long requests that run may take when a site is closed.
const requestGrace = 10 * time.Second

func (f *Front) add(site *open) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sites[site.name] = site
	f.up.WithLabelValues(site.name).Set(1)
}

func (f *Front) remove(site *open) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sites[site.name] == site {
		delete(f.sites, site.name)
		f.up.WithLabelValues(site.name).Set(0)
	}
}

// find returns a site that answers, with the request counted; done ends the count.
func (f *Front) find(of func(*open) bool) (site *open, done func()) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, s := range f.sites {
		if of(s) {
			s.running.Add(1)
			return s, s.running.Done
		}
	}
	return nil, func() {}
}

// all are the sites that answer, in the order of their names.
func (f *Front) all() []*open {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var list []*open
	for _, name := range f.names {
		if s := f.sites[name]; s != nil {
			list = append(list, s)
		}
	}
	return list
}

// known lists the sites that a browser has a session of. It asks no site: one that does not
// answer must not delay the pages of another.
func (f *Front) known(r *http.Request) []web.SiteLink {
	var links []web.SiteLink
	for _, name := range f.names {
		if web.HasSession(r, config.SitePath+name) {
			links = append(links, web.SiteLink{Name: name, Path: config.SitePath + name + "/admin"})
		}
	}
	return links
}

// statuses is known with what each site says of itself.
func (f *Front) statuses(r *http.Request) []web.SiteLink {
	links := f.known(r)
	var asked sync.WaitGroup
	for i := range links {
		if s, done := f.find(func(s *open) bool { return s.name == links[i].Name }); s != nil {
			asked.Go(func() { defer done(); links[i].Ready = s.ready(r.Context(), f.now) })
		}
	}
	asked.Wait()
	return links
}

// ServeHTTP implements http.Handler.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host := strings.ToLower(r.Host)
	if site, done := f.find(func(s *open) bool { return s.host != "" && s.host == host }); site != nil {
		defer done()
		site.handler.ServeHTTP(w, r)
		return
	}
	if rest, below := strings.CutPrefix(r.URL.Path, config.SitePath); below {
		name, _, _ := strings.Cut(rest, "/")
		f.pass(w, r, name)
		return
	}
	switch path := r.URL.Path; {
	case path == "/":
		http.Redirect(w, r, "/admin", http.StatusFound)
	case path == "/livez", path == "/healthz":
		answer(w, http.StatusOK, map[string]any{"status": "ok"})
	case path == "/readyz":
		f.readyz(w, r)
	case path == "/metrics" && f.publicMetrics:
		promhttp.HandlerFor(f.metrics, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	case path == "/admin" || strings.HasPrefix(path, "/admin/"):
		f.list.ServeHTTP(w, r)
	default:
		refuse(w, http.StatusNotFound, "There is nothing here. The pages and the API of a site are below "+
			config.SitePath+"NAME/.")
	}
}

// pass passes a request on to the site of that name.
func (f *Front) pass(w http.ResponseWriter, r *http.Request, name string) {
	site, done := f.find(func(s *open) bool { return s.name == name })
	defer done()
	switch {
	case site == nil && slices.Contains(f.names, name):
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, "The site is not running now. It is tried again; the log and cmsjobs "+
			"doctor name the cause.")
	case site == nil:
		refuse(w, http.StatusNotFound, "There is no such site.")
	case site.host != "":
		to := strings.TrimSuffix(site.url, "/") + "/" + strings.TrimPrefix(strings.TrimPrefix(r.URL.EscapedPath(),
			config.SitePath+name), "/")
		if r.URL.RawQuery != "" {
			to += "?" + r.URL.RawQuery
		}
		http.Redirect(w, r, to, http.StatusPermanentRedirect)
	case r.URL.Path == site.base || r.URL.Path == site.base+"/":
		http.Redirect(w, r, site.base+"/admin", http.StatusFound)
	default:
		http.StripPrefix(site.base, site.handler).ServeHTTP(w, r)
	}
}

// readyz says how many sites are ready. The process is while one is: a supervisor or a
// balancer must not stop the others for one that is not.
func (f *Front) readyz(w http.ResponseWriter, r *http.Request) {
	ready := f.countReady(r.Context())
	status, word := http.StatusOK, "ok"
	if ready == 0 {
		status, word = http.StatusServiceUnavailable, "unready"
	}
	answer(w, status, map[string]any{"status": word, "sites": len(f.names), "ready": ready})
}

func answer(w http.ResponseWriter, status int, body any) {
	safe(w, "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the caller is gone
}

func refuse(w http.ResponseWriter, status int, detail string) {
	safe(w, "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(web.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status,
		Detail: detail}) // the caller is gone
}

func safe(w http.ResponseWriter, contentType string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Security-Policy", web.ContentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
}
