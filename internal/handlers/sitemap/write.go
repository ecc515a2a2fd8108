package sitemap

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap/rootfile"
)

// Progress receives how many addresses are written ("writing") or files put
// into place ("publishing"), of how many. It may be called from several
// goroutines.
type Progress func(done, total int64, note string)

// Write makes and publishes the map: what the job does, for use by hand.
// progress may be nil.
func (h *Handler) Write(ctx context.Context, force bool, progress Progress) (Result, error) {
	if progress == nil {
		progress = func(int64, int64, string) {}
	}
	p, err := h.plan(ctx)
	if err != nil {
		return Result{}, err
	}
	result := Result{Target: h.target.String()}
	if !p.enabled {
		result.Disabled = "the CMS's setting sitemap_enabled is 0"
		result.Removed, err = h.withdraw(ctx, p)
		return result, err
	}
	if err := h.Foreign(ctx); err != nil {
		return result, err
	}
	progress(0, 0, "looking for changes")
	current, err := h.fingerprint(ctx, p)
	if err != nil {
		return result, err
	}
	if !force {
		if result.Unchanged, err = h.unchanged(ctx, current); err != nil || result.Unchanged != "" {
			return result, err
		}
	}
	files, err := h.write(ctx, p, current, &result, progress)
	if err != nil {
		return result, err
	}
	result.DurationMS = h.now().Sub(p.now).Milliseconds()
	return result, h.remember(ctx, h.target.String(), current, noteOf(result, files))
}

// write stages all files and publishes them.
func (h *Handler) write(ctx context.Context, p *plan, current fingerprint, result *Result,
	progress Progress) (files []file, err error) {
	stage, err := h.target.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stage.end()) }()
	b := &builder{plan: p, stage: stage.root, seal: newSealer(stage.root)}
	b.seen = func(urls int) { progress(int64(urls), max(current.rows, int64(urls)), "writing") }
	built := h.build(ctx, b)
	if err := errors.Join(built, b.seal.done()); err != nil {
		return nil, err
	}
	files = b.published()
	var placed atomic.Int64 // buckets take several files at once
	report := func() { progress(placed.Load(), int64(len(files)), "publishing") }
	report()
	result.Removed, err = h.target.publish(ctx, stage, files, func() { placed.Add(1); report() })
	if err != nil {
		return nil, err
	}
	if err := h.rootFiles(p, b.texts, b.urls > 0); err != nil {
		return nil, err
	}
	result.URLs, result.Skipped, result.SkippedRows = b.urls, b.skipped, b.faults
	for _, f := range b.files {
		result.Bytes += f.bytes
	}
	if result.Files = len(b.files); b.urls > 0 {
		result.Index = p.links.Root + "/" + indexName
	}
	return b.files, nil
}

func (h *Handler) build(ctx context.Context, b *builder) error {
	for i := range b.plan.groups {
		if err := b.group(ctx, h, &b.plan.groups[i]); err != nil {
			return err
		}
	}
	return b.complete()
}

// Remove takes the published map away. The next run makes it again.
func (h *Handler) Remove(ctx context.Context) ([]string, error) {
	p, err := h.plan(ctx)
	if err != nil {
		return nil, err
	}
	return h.withdraw(ctx, p)
}

// withdraw removes the map, for a site that wants none.
func (h *Handler) withdraw(ctx context.Context, p *plan) ([]string, error) {
	removed, err := h.target.clear(ctx)
	if err != nil {
		return removed, err
	}
	return removed, errors.Join(h.rootFiles(p, nil, false), h.forget(ctx))
}

// rootFiles names the map in robots.txt and writes llms.txt, or takes both back where
// nothing is listed.
func (h *Handler) rootFiles(p *plan, sections []rootfile.Section, listed bool) (err error) {
	dir := h.site.Public()
	if dir == "" {
		return nil
	}
	if p.options.Robots {
		err = rootfile.Robots(dir, "Sitemap: "+p.links.Root+"/"+indexName, listed)
	}
	if p.options.LLMs {
		err = errors.Join(err, rootfile.LLMs{Title: p.publication, Address: p.links.Root, Summary: p.summary,
			Marker: marker, Sections: sections}.Write(dir, listed))
	}
	return err
}
