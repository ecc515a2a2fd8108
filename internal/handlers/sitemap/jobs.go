package sitemap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Register makes r run this package's types.
func (h *Handler) Register(r *jobs.Registry) {
	jobs.Handle(r, Generate, h.generate)
	jobs.Handle(r, IndexNow, h.indexNow)
	jobs.Results[Result](r, Generate)
	jobs.Results[Submission](r, IndexNow)
}

// generate is the job around Write.
func (h *Handler) generate(ctx context.Context, j jobs.Job, p GeneratePayload) error {
	result, err := h.Write(ctx, p.Force, func(done, total int64, note string) { jobs.Report(ctx, done, total, note) })
	if errors.Is(err, ErrBusy) {
		return jobs.RetryAfter(err, 30*time.Second)
	}
	if errors.Is(err, ErrForeign) {
		return jobs.Permanent(err)
	}
	if err == nil {
		err = h.announce(ctx, j, result)
	}
	if err != nil {
		return err
	}
	for _, s := range result.Skipped {
		jobs.Logf(ctx, "left out: %s %s: %s", s.Table, s.ID, s.Reason)
	}
	return jobs.SetResult(ctx, result)
}

// announce tells of a new map. A later attempt that finds nothing to do tells
// too: the one before it may have written the map and not lived to say so.
func (h *Handler) announce(ctx context.Context, j jobs.Job, r Result) error {
	if r.Disabled != "" || r.Unchanged != "" && j.Attempt <= 1 {
		return nil
	}
	if h.updated != nil {
		if err := h.updated(ctx, Event{URL: h.site.URL() + "/" + indexName, URLs: r.URLs}); err != nil {
			return fmt.Errorf("telling of the new sitemap: %w", err)
		}
	}
	// Last: caches in front of the site are purged before a search engine asks.
	jobs.FollowUp(ctx, IndexNow.New(IndexNowPayload{}))
	return nil
}

// indexNow is the job around Submit.
func (h *Handler) indexNow(ctx context.Context, _ jobs.Job, p IndexNowPayload) error {
	s, err := h.Submit(ctx, p)
	for _, refusal := range s.Refusals {
		jobs.Logf(ctx, "%s", refusal)
	}
	if s.Forgotten > 0 {
		jobs.Logf(ctx, "forgot %d addresses of another host: the site has moved", s.Forgotten)
	}
	if err != nil {
		return err
	}
	return jobs.SetResult(ctx, s)
}
