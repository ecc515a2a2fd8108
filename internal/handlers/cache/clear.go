package cache

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// part is what a tag means in the CMS's caches.
type part struct {
	groups    []string // of cache_keys.json
	keys      []string
	prefixes  []string // of keys
	views     bool     // compiled templates
	bootstrap []string // file patterns under bootstrap/cache
	flush     bool     // the whole store
	tags      []string // as they were asked for: Laravel's own, where the store has tags
	unknown   []string // those among them that mean nothing to the CMS
}

// What a page shows besides its text is cached by the shortcodes and widgets
// in it.
var rendered = []string{"shortcode_render_", "widget_"}

// parts maps tags to what the CMS really stores. It has no tags itself: its
// groups, named by class, are the nearest thing.
var parts = map[string]part{
	"pages":      {groups: []string{`Botble\Page\Models\Page`}, prefixes: rendered},
	"posts":      {groups: []string{`Botble\Blog\Models\Post`}, prefixes: rendered},
	"categories": {groups: []string{`Botble\Blog\Models\Category`}, prefixes: rendered},
	"tags":       {groups: []string{`Botble\Blog\Models\Tag`}, prefixes: rendered},
	"galleries":  {groups: []string{`Botble\Gallery\Models\Gallery`}, prefixes: rendered},
	"menus":      {groups: []string{`Botble\Menu\Models\Menu`}},
	"languages":  {groups: []string{"languages"}},
	"widgets":    {prefixes: []string{"widget_"}},
	"sitemap":    {prefixes: []string{"cache_site_map_key"}},
	"settings":   {keys: []string{"core.base.boot_settings", "core_installed_plugins", "theme_manager_all_themes"}},
	"views":      {views: true},
	"config":     {bootstrap: []string{"config.php"}},
	"routes":     {bootstrap: []string{"routes*.php"}},
	"events":     {bootstrap: []string{"events.php"}},
}

// partOf merges what the payload asks for.
func partOf(p ClearPayload) part {
	if p.ClearAll {
		return part{flush: true, views: true, bootstrap: []string{"config.php", "routes*.php", "events.php"}}
	}
	if len(p.Tags) == 0 {
		return part{flush: true, views: true}
	}
	all := part{tags: p.Tags}
	for _, tag := range p.Tags {
		one, known := parts[strings.ToLower(strings.TrimSpace(tag))]
		switch {
		case known:
		case strings.Contains(tag, `\`):
			one = part{groups: []string{tag}}
		default:
			all.unknown = append(all.unknown, tag)
		}
		all.groups = append(all.groups, one.groups...)
		all.keys = append(all.keys, one.keys...)
		all.prefixes = append(all.prefixes, one.prefixes...)
		all.bootstrap = append(all.bootstrap, one.bootstrap...)
		all.views = all.views || one.views
	}
	slices.Sort(all.prefixes)
	all.prefixes = slices.Compact(all.prefixes)
	return all
}

func (h *Handler) clear(ctx context.Context, _ jobs.Job, p ClearPayload) error {
	r := &Report{DryRun: p.DryRun}
	what := partOf(p)
	steps := []step{}
	if s, err := h.store(); err != nil {
		r.failed("the cache store", err)
	} else {
		r.Store = s.name()
		steps = append(steps, step{"the " + s.name() + " cache", func(ctx context.Context) error {
			return h.clearStore(ctx, s, what, r)
		}})
	}
	if what.views {
		steps = append(steps,
			step{viewsFolder, func(ctx context.Context) error {
				return h.clearPHP(ctx, viewsFolder, []string{"*.php"}, r)
			}})
	}
	if len(what.bootstrap) > 0 {
		steps = append(steps, step{bootstrapFolder, func(ctx context.Context) error {
			return h.clearPHP(ctx, bootstrapFolder, what.bootstrap, r)
		}})
	}
	return h.bestEffort(ctx, r, steps)
}

func (h *Handler) clearStore(ctx context.Context, s store, what part, r *Report) error {
	there, err := s.forgetTags(ctx, what.tags, r)
	if err != nil {
		return err
	}
	for _, tag := range what.unknown {
		if !slices.Contains(there, tag) {
			r.note("nothing is stored under the tag %q, so the whole cache store was cleared", tag)
			what.flush = true
		}
	}
	if what.flush {
		if err := s.flush(ctx, r); err != nil {
			return err
		}
		return h.dropGroups(r)
	}
	if len(what.groups) > 0 {
		if err := h.clearGroups(ctx, s, what.groups, r); err != nil {
			return err
		}
	}
	if len(what.keys) > 0 {
		if err := s.forget(ctx, what.keys, r); err != nil {
			return err
		}
	}
	if len(what.prefixes) > 0 {
		return s.forgetPrefixes(ctx, what.prefixes, r)
	}
	return nil
}

func (h *Handler) clearExpired(ctx context.Context, _ jobs.Job, p ExpiredPayload) error {
	r := &Report{DryRun: p.DryRun}
	s, err := h.store()
	if err != nil {
		r.failed("the cache store", err)
		return r.finish(ctx)
	}
	r.Store = s.name()
	return h.bestEffort(ctx, r,
		[]step{{"the " + s.name() + " cache", func(ctx context.Context) error { return s.expired(ctx, r) }}})
}

// step is one part of a cleaning, named for the report.
type step struct {
	name string
	do   func(context.Context) error
}

// bestEffort does all steps, whatever fails, within the budget. Only the
// worker's own ending of the run is an error.
func (h *Handler) bestEffort(ctx context.Context, r *Report, steps []step) error {
	within, cancel := context.WithTimeout(ctx, h.options.Budget)
	defer cancel()
	for _, s := range steps {
		err := s.do(within)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case within.Err() != nil:
			r.Unfinished = true
			return r.finish(ctx)
		case err != nil:
			r.failed(s.name, err)
			h.logger.WarnContext(ctx, "a cleaning step failed", "event", "cache.clear_failed",
				"part", s.name, "error", err)
		case r.Untouched > 0:
			h.logger.WarnContext(ctx, "nothing removed from the CMS's cache",
				"event", "cache.nothing_cleared", "part", s.name, "entries", r.Untouched)
		}
	}
	return r.finish(ctx)
}

// store finds the CMS's cache store, as the CMS's configuration and .env name
// it, or the one that the owner named.
func (h *Handler) store() (store, error) {
	l, err := h.site.CacheStore(h.options.Store)
	if err != nil {
		return nil, err
	}
	if h.options.Prefix != "" {
		l.Prefixes, l.Known = []string{h.options.Prefix}, true
	}
	switch l.Driver {
	case "file":
		return h.fileStore(l)
	case "database":
		return databaseStore{h, l}, nil
	case "redis":
		return redisStore{h, l}, nil
	}
	return nil, fmt.Errorf("the CMS's cache store %q cannot be cleared from outside PHP: run `php artisan "+
		"cache:clear` there", l.Name)
}
