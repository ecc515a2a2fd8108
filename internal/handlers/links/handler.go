package links

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Config is what the handler needs. Site, Client and Now are required.
type Config struct {
	// Site is the address of the site: https://www.example.com.
	Site string
	// Hosts are further names that the site answers to.
	Hosts []string
	// Addresses are pages that a check begins with where its job names none, besides the
	// front page; nil: none are known.
	Addresses func(ctx context.Context) iter.Seq2[string, error]
	// Client follows redirects that stay on their host.
	Client *http.Client
	// Budget is how long a check asks: 30 minutes when 0. AtOnce requests are made: 4 when 0.
	Budget time.Duration
	AtOnce int
	// Found hears of a job that found broken links; nil: nobody does.
	Found func(ctx context.Context, job jobs.Job, r Result)
	Now   func() time.Time
}

// Handler runs links.check.
type Handler struct {
	c     Config
	site  *url.URL
	hosts map[string]bool
}

// New returns the handler.
func New(c Config) (*Handler, error) {
	site, err := url.Parse(c.Site)
	if err != nil || site.Host == "" {
		return nil, errors.New("following links needs the site's address: set APP_URL in the CMS's .env, or cms.url")
	}
	if c.Client == nil || c.Now == nil {
		return nil, errors.New("following links needs an HTTP client and a clock")
	}
	if c.Budget <= 0 {
		c.Budget = 30 * time.Minute
	}
	if c.AtOnce <= 0 {
		c.AtOnce = 4
	}
	h := &Handler{c: c, site: site, hosts: map[string]bool{strings.ToLower(site.Host): true}}
	for _, name := range c.Hosts {
		h.hosts[strings.ToLower(name)] = true
	}
	return h, nil
}

// Register makes the type known.
func (h *Handler) Register(r *jobs.Registry) {
	jobs.Handle(r, Check, h.run)
	jobs.Results[Result](r, Check)
}

func (h *Handler) run(ctx context.Context, job jobs.Job, p Payload) error {
	w := newWalk(h, p.Most)
	if err := h.begin(ctx, w, p.From); err != nil {
		return err
	}
	w.run(ctx)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("following the site's links: %w", err)
	}
	r := w.result()
	if w.nothing() {
		return fmt.Errorf("the site does not answer: %s: %s", r.Broken[0].URL, r.Broken[0].Error)
	}
	if r.Found > 0 && h.c.Found != nil {
		h.c.Found(ctx, job, r)
	}
	return jobs.SetResult(ctx, r)
}

// begin gives the walk its first addresses: those of the job, or the front page and what
// else is known of the site.
func (h *Handler) begin(ctx context.Context, w *walk, from []string) error {
	var refused string
	for _, text := range from {
		if to := resolve(h.site, text); to != nil && h.own(to) {
			w.add(nil, link{to: to})
		} else {
			refused = text
		}
	}
	switch {
	case refused != "":
		return jobs.Permanent(fmt.Errorf("%q is no address of %s", refused, h.site.Host))
	case len(from) > 0:
		return nil
	}
	w.add(nil, link{to: h.site.JoinPath("/")})
	if h.c.Addresses == nil {
		return nil
	}
	for text, err := range h.c.Addresses(ctx) {
		if err != nil {
			return fmt.Errorf("reading the site's addresses: %w", err)
		}
		if to := resolve(h.site, text); to != nil && h.own(to) {
			w.add(nil, link{to: to})
		}
		if w.full() {
			break
		}
	}
	return nil
}

// own says whether an address is one of the site.
func (h *Handler) own(u *url.URL) bool { return h.hosts[strings.ToLower(u.Host)] }
