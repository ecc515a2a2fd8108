package purge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Config is what the handler needs. Site, Destinations, Client and Now are
// required.
type Config struct {
	// Site is the address of the site: https://www.example.com.
	Site string
	// Hosts are further names that the site answers to.
	Hosts        []string
	Destinations []Destination
	// Also are paths that list what others show: they are purged with every change.
	// The front page when empty.
	Also []string
	// Pages is how many pages of each list are purged: LIST?page=2 and so on. 1: none
	// but the first.
	Pages int
	// Changed knows what changed since the last purge; nil: a job cannot ask for it.
	Changed Changed
	// Told receives what changed when it was purged; what it enqueues with
	// jobs.FollowUp is enqueued with the end of the job. nil: nobody wants to know.
	Told func(context.Context, Change) error
	// Client reaches the destinations, and the site itself.
	Client *http.Client
	Warm   WarmOptions
	Now    func() time.Time
	Logger *slog.Logger
}

// Found is what changed.
type Found struct {
	URLs []string
	// Lists are pages that list those.
	Lists []string
	// More says that there is more than was asked for.
	More bool
	// Purged notes that it was purged.
	Purged func(context.Context) error
}

// Changed gives what changed since it was last noted as purged: on the whole site, or of
// the rows, each TABLE:ID, where there are any.
type Changed func(ctx context.Context, rows []string, most int) (Found, error)

// Change is what a job found changed and purged.
type Change struct {
	URLs []string `json:"urls"`
	// All says that there were more than are listed.
	All bool `json:"all,omitempty"`
}

// Handler runs cache.purge.
type Handler struct {
	c            Config
	site         *url.URL
	destinations []destination
	comparing    chan struct{} // holds a value while a job finds out what changed, and purges it
}

// New returns the handler. An error says which destination cannot work.
func New(c Config) (*Handler, error) {
	site, err := url.Parse(c.Site)
	if err != nil || site.Host == "" {
		return nil, errors.New("purging needs the site's address: set APP_URL in the CMS's .env, or cms.url")
	}
	if c.Client == nil || c.Now == nil {
		return nil, errors.New("purging needs an HTTP client and a clock")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if len(c.Also) == 0 {
		c.Also = []string{"/"}
	}
	c.Warm = c.Warm.withDefaults()
	h := &Handler{c: c, site: site, comparing: make(chan struct{}, 1)}
	for _, d := range c.Destinations {
		d = d.withDefaults()
		to, err := d.open(c.Client, c.Now)
		if err != nil {
			return nil, fmt.Errorf("the destination %s: %w", d.Name, err)
		}
		h.destinations = append(h.destinations, destination{d, to})
	}
	return h, nil
}

// Register makes the type known.
func (h *Handler) Register(r *jobs.Registry) {
	jobs.Handle(r, Purge, h.run)
	jobs.Results[Result](r, Purge)
}

func (h *Handler) run(ctx context.Context, _ jobs.Job, p Payload) error {
	done, err := h.alone(ctx, p)
	if err != nil {
		return err
	}
	defer done()
	noted, nothing, err := h.changed(ctx, &p)
	if err != nil || nothing {
		return err
	}
	urls, refused := h.own(p.URLs)
	r := Result{URLs: len(urls), All: p.All, Refused: refused[:min(len(refused), 20)], DryRun: p.DryRun}
	if len(urls) == 0 && !p.All {
		return jobs.Permanent(fmt.Errorf("none of the addresses is one of %s: %s", h.site.Host, refused[0]))
	}
	var failed error
	if !p.DryRun {
		r.Destinations, failed = h.purge(ctx, urls, p.All)
	}
	// What failed to be purged is not asked for: the old page would stay warm.
	if failed == nil && !p.DryRun {
		failed = noted(ctx)
		done()
		if !p.Cold && h.c.Warm.Most > 0 {
			w := h.warm(ctx, urls)
			r.Warm = &w
		}
	}
	if err := jobs.SetResult(ctx, r); err != nil {
		return err
	}
	return failed
}

// alone lets one job at a time find out what changed, until it is noted: two would find
// the same changes.
func (h *Handler) alone(ctx context.Context, p Payload) (done func(), err error) {
	if !p.compares() {
		return func() {}, nil
	}
	select {
	case h.comparing <- struct{}{}:
		return sync.OnceFunc(func() { <-h.comparing }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// changed adds what changed to a payload that asks for it. noted is called when it
// was purged; nothing says that nothing has changed, which is then the result.
func (h *Handler) changed(ctx context.Context, p *Payload) (noted func(context.Context) error, nothing bool,
	err error) {
	noted = func(context.Context) error { return nil }
	if !p.compares() {
		return noted, false, nil
	}
	if h.c.Changed == nil {
		return nil, false, jobs.Permanent(errors.New("what changed is not known here: it is read with the sitemaps, " +
			"which are off"))
	}
	rows := p.Rows
	if p.Changed { // they are of the site
		rows = nil
	}
	found, err := h.c.Changed(ctx, rows, maxURLs)
	if err != nil {
		return nil, false, fmt.Errorf("reading what changed on the site: %w", err)
	}
	urls, done := found.URLs, found.Purged
	if len(urls) == 0 && len(p.URLs) == 0 && !p.All {
		if !p.DryRun {
			err = done(ctx)
		}
		return done, true, errors.Join(err, jobs.SetResult(ctx, Result{DryRun: p.DryRun}))
	}
	p.All = p.All || found.More
	if len(urls) > 0 && h.c.Told != nil {
		done = func(ctx context.Context) error {
			return errors.Join(found.Purged(ctx), h.c.Told(ctx, Change{urls, found.More}))
		}
	}
	if len(urls) > 0 {
		p.URLs = slices.Concat(p.URLs, urls, h.pages(found.Lists), h.pages(h.c.Also))
	}
	return done, false, nil
}

// pages adds their further pages to lists.
func (h *Handler) pages(lists []string) []string {
	all := slices.Clone(lists)
	for _, list := range lists {
		for n := 2; n <= h.c.Pages; n++ {
			if u, err := h.site.Parse(list); err == nil && u.RawQuery == "" {
				u.RawQuery = fmt.Sprintf("page=%d", n)
				all = append(all, u.String())
			}
		}
	}
	return all
}

// own are the addresses that are the site's, absolute, each once; refused are the
// others.
func (h *Handler) own(list []string) (urls []*url.URL, refused []string) {
	seen := map[string]bool{}
	for _, text := range list {
		u, err := h.site.Parse(strings.TrimSpace(text))
		if err != nil || u.User != nil || !h.hosts(u) {
			refused = append(refused, text)
			continue
		}
		u.Fragment = ""
		if u.Path == "" {
			u.Path = "/"
		}
		if !seen[u.String()] {
			seen[u.String()] = true
			urls = append(urls, u)
		}
	}
	return urls, refused
}

// hosts says whether an address is one of the site's.
func (h *Handler) hosts(u *url.URL) bool {
	if u.Scheme != "https" && u.Scheme != "http" {
		return false
	}
	return strings.EqualFold(u.Host, h.site.Host) || slices.ContainsFunc(h.c.Hosts, func(name string) bool {
		return strings.EqualFold(u.Host, name)
	})
}

// purge tells all destinations. What one of them refuses keeps no other from it.
func (h *Handler) purge(ctx context.Context, urls []*url.URL, all bool) ([]Purged, error) {
	var list []Purged
	var failed []error
	var wait time.Duration
	permanent := len(h.destinations) > 0
	for _, d := range h.destinations {
		done := Purged{Name: d.Name, Type: d.Type}
		var err error
		if all {
			done.Requests, err = 1, d.to.purgeAll(ctx)
		} else {
			done.Requests, err = d.to.purge(ctx, urls)
		}
		if err != nil {
			done.Error = err.Error()
			failed = append(failed, fmt.Errorf("purging %s: %w", d.Name, err))
			if later, ok := jobs.AsRetryAfter(err); ok {
				wait = max(wait, later)
			}
			permanent = permanent && jobs.IsPermanent(err)
		}
		list = append(list, done)
	}
	switch err := errors.Join(failed...); {
	case err == nil:
		return list, nil
	case len(failed) == len(list) && permanent:
		return list, jobs.Permanent(err)
	case wait > 0:
		return list, jobs.RetryAfter(err, wait)
	default:
		return list, err
	}
}
