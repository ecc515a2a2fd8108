package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Submit tells search engines what changed: what the job does, for use by hand.
// Errors that repeating would not fix are jobs.Permanent; a wait that the
// other side asked for is jobs.RetryAfter. What was accepted before an error
// is not submitted again.
func (h *Handler) Submit(ctx context.Context, payload IndexNowPayload) (Submission, error) {
	settings, err := h.site.Settings(ctx)
	if err != nil {
		return Submission{}, err
	}
	key := strings.TrimSpace(settings["indexnow_api_key"])
	if why := h.whyNot(settings, key); why != "" {
		return Submission{Why: why}, nil
	}
	p, err := h.plan(ctx)
	if err != nil {
		return Submission{}, err
	}
	current, err := h.fingerprint(ctx, p)
	if err != nil {
		return Submission{}, err
	}
	s := Submission{Mode: modeOf(payload, h.indexnow.Mode)}
	state := "indexnow:" + s.Mode
	last, err := h.recall(ctx, state)
	if err != nil {
		return s, err
	}
	if last.sum == current.sum && payload.SitemapURL == nil {
		s.Why = "nothing changed since the submission of " + last.at.Format(time.RFC3339)
		return s, nil
	}
	e, err := h.endpoint(ctx, p, key, &s)
	if err != nil {
		return s, err
	}
	if err := h.submit(ctx, p, e, payload, &s); err != nil {
		return s, err
	}
	return s, h.remember(ctx, state, current, s)
}

func (h *Handler) whyNot(settings cms.Settings, key string) string {
	switch {
	case !settings.Bool("indexnow_enabled", false):
		return "the CMS's setting indexnow_enabled is off"
	case key == "":
		return "the CMS's setting indexnow_api_key is empty"
	case !settings.Bool("sitemap_enabled", true):
		return "the CMS's setting sitemap_enabled is 0"
	}
	return ""
}

func modeOf(p IndexNowPayload, configured string) string {
	if p.Mode == "" && p.SitemapURL != nil && configured == ModeURLs {
		return ModeBoth
	}
	return cmp.Or(p.Mode, configured)
}

func (h *Handler) submit(ctx context.Context, p *plan, e *endpoint, payload IndexNowPayload, s *Submission) error {
	if s.Mode != ModeURLs {
		s.Sitemap = p.links.Root + "/" + indexName
		if payload.SitemapURL != nil {
			s.Sitemap = *payload.SitemapURL
		}
		if u, err := url.Parse(s.Sitemap); err != nil || u.Host != e.host {
			return jobs.Permanent(fmt.Errorf("sitemapUrl %q is not on %s: IndexNow takes addresses of the site's own "+
				"host only", s.Sitemap, e.host))
		}
		if err := e.send(ctx, []string{s.Sitemap}, s); err != nil {
			return err
		}
	}
	if s.Mode == ModeSitemap {
		return nil
	}
	return h.submitChanges(ctx, p, e, s)
}

// submitChanges compares the site with what was accepted, address by address,
// and submits the differences in full calls.
func (h *Handler) submitChanges(ctx context.Context, p *plan, e *endpoint, s *Submission) error {
	known, err := h.known(ctx, toIndexNow)
	if err != nil {
		return err
	}
	b := &batch{handler: h, endpoint: e, submission: s, size: h.indexnow.Batch}
	return b.finish(ctx, h.gather(ctx, p, known, b))
}

// gather adds what is new, changed or gone.
func (h *Handler) gather(ctx context.Context, p *plan, known *watermark, b *batch) error {
	s := b.submission
	var foreign []int64
	err := h.compare(ctx, p, known, func(u changedURL, there bool) error {
		switch {
		case !b.endpoint.ours(u.loc):
			if u.gone {
				foreign = append(foreign, u.hash)
			}
			return nil
		case u.gone:
			s.Deleted++
		case there:
			s.Changed++
		default:
			s.Added++
		}
		return b.add(ctx, u)
	})
	if err != nil {
		return err
	}
	s.Forgotten = len(foreign)
	return h.forgetURLs(ctx, toIndexNow, foreign)
}

// endpoint checks key and key file, which search engines would refuse later
// and say less about.
func (h *Handler) endpoint(ctx context.Context, p *plan, key string, s *Submission) (*endpoint, error) {
	root, err := url.Parse(p.links.Root)
	if err != nil || root.Host == "" {
		return nil, jobs.Permanent(fmt.Errorf("the site's address %q has no host: set APP_URL in the CMS's .env",
			p.links.Root))
	}
	if !validKey.MatchString(key) {
		return nil, jobs.Permanent(errors.New("the IndexNow key has characters or a length that the protocol does " +
			"not allow (8 to 128 letters, digits and dashes): make a new one in the CMS's sitemap settings"))
	}
	e := &endpoint{http: h.http, now: h.now, addresses: h.indexnow.Endpoints, host: root.Host, key: key,
		keyURL: p.links.Root + "/" + key + ".txt"}
	return e, h.checkKey(ctx, e, s)
}
