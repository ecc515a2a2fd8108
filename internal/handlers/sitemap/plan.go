package sitemap

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

// plan is what one run is about, as the CMS's settings say at its start.
type plan struct {
	now     time.Time
	enabled bool
	perFile int
	botble  bool // the CMS's own file names
	groups  []group
	links   *cms.Permalinks
	options Options
	publication,
	summary,
	language string
	scratch []entry
}

// group is one kind of content and how it is listed.
type group struct {
	model               cms.Model
	file                string // "blog-posts"
	priority, frequency string
	ids                 []string // the only rows that are read; nil: all
	lists               []string // paths of plugins' list pages, which have no row
}

// The real CMS's names of files; other models are named as they are.
var botbleFiles = map[string]string{"posts": "blog-posts", "categories": "blog-categories", "tags": "blog-tags"}

var profiles = map[string]map[string]string{
	"specification": {"pages": "0.8", "posts": "0.7", "categories": "0.6", "tags": "0.3", "galleries": "0.6",
		"": "0.5"},
	"botble": {"pages": "0.8", "posts": "0.8", "categories": "0.8", "tags": "0.3", "galleries": "0.8",
		"": "0.8"},
}

func (h *Handler) plan(ctx context.Context) (*plan, error) {
	settings, err := h.site.Settings(ctx)
	if err != nil {
		return nil, err
	}
	p := &plan{now: h.now(), options: h.options, enabled: settings.Bool("sitemap_enabled", true)}
	if p.links, err = h.site.Permalinks(ctx, p.now); err != nil {
		return nil, err
	}
	p.perFile = h.options.PerFile
	if p.perFile == 0 {
		p.perFile = settings.Int("sitemap_items_per_page", 1000)
	}
	p.perFile = min(max(p.perFile, 1), maxURLs)
	p.botble = h.options.Naming == "botble" || h.options.Naming != "plain" && isBotble(settings)
	p.publication = cmp.Or(h.options.Publication, settings.String("theme-"+settings["theme"]+"-site_title", ""),
		settings.String("admin_title", ""), h.site.Env["APP_NAME"])
	p.summary = settings.String("theme-"+settings["theme"]+"-seo_description", "")
	p.language = settings.String("locale", "en")
	models, err := h.models(ctx)
	if err != nil {
		return nil, err
	}
	pages, err := h.site.ListPages(ctx, p.links)
	if err != nil {
		return nil, err
	}
	for _, m := range models {
		g := p.group(m.WithDefaults())
		for _, page := range pages {
			if page.Model == m.Name {
				g.lists = append(g.lists, page.Path)
			}
		}
		if settings.Bool("sitemap_"+strings.ReplaceAll(botbleFile(m.Name), "-", "_")+"_enabled", true) {
			p.groups = append(p.groups, g)
		}
	}
	return p, nil
}

// models are the stock content and the configured one. An application without the
// CMS's slugs has only the content that cms.models names.
func (h *Handler) models(ctx context.Context) ([]cms.Model, error) {
	mapped := slices.ContainsFunc(h.options.Models, func(m cms.Model) bool { return m.Path != "" })
	if mapped {
		if slugs, err := h.site.HasTable(ctx, "slugs"); err != nil || !slugs {
			return h.options.Models, err
		}
	}
	return append(cms.Models(), h.options.Models...), nil
}

// isBotble knows the real CMS by settings that each of its versions writes.
func isBotble(s cms.Settings) bool {
	_, theme := s["theme"]
	_, plugins := s["activated_plugins"]
	return theme || plugins
}

func botbleFile(model string) string { return cmp.Or(botbleFiles[model], model) }

func (p *plan) group(m cms.Model) group {
	g := group{model: m, file: botbleFile(m.Name), frequency: "daily"}
	if !p.botble {
		g.file = "sitemap-" + m.Name
	}
	profile := profiles[cmp.Or(p.options.Profile, "specification")]
	g.priority = cmp.Or(p.options.Priorities[m.Name], profile[m.Name], profile[""])
	if m.Name == "tags" {
		g.frequency = "weekly"
	}
	return g
}

// name is the published name of a group's file n (from 1) of so many.
func (p *plan) name(g *group, n, of int) string {
	switch {
	case of == 1:
		return g.file + ".xml"
	case p.botble:
		return g.file + "-page-" + strconv.Itoa(n) + ".xml"
	}
	return g.file + "-" + strconv.Itoa(n) + ".xml"
}

// query is what a group's entries need of the CMS.
func (p *plan) query(g *group) cms.ContentQuery {
	o := p.options
	return cms.ContentQuery{Now: p.now, Robots: !o.KeepNoIndex, Images: o.Images || o.Videos, Contents: o.Videos,
		Titles: o.LLMs || o.Videos || o.News && g.model.Scheduled, Versions: o.Alternates, IDs: g.ids}
}

// Preview is what a map would have of one kind of content.
type Preview struct {
	Model string `json:"model"`
	Table string `json:"table"`
	File  string `json:"file"`
	URLs  int    `json:"urls"`
	// First are some of the addresses.
	First []string `json:"first,omitempty"`
	// SkippedRows counts the rows that cannot be listed; Skipped names some.
	SkippedRows int       `json:"skippedRows,omitempty"`
	Skipped     []Skipped `json:"skipped,omitempty"`
}

const previewed = 5

// Preview reads what a map would be made of. It writes nothing.
func (h *Handler) Preview(ctx context.Context) ([]Preview, error) {
	p, err := h.plan(ctx)
	if err != nil {
		return nil, err
	}
	var list []Preview
	for i := range p.groups {
		g := &p.groups[i]
		v := Preview{Model: g.model.Name, Table: h.site.Table(g.model.Table), File: g.file + ".xml"}
		skip := func(e *cms.RowError) {
			if v.SkippedRows++; len(v.Skipped) < previewed {
				v.Skipped = append(v.Skipped, Skipped{e.Table, e.ID, e.Reason})
			}
		}
		see := func(e *entry) error {
			if v.URLs++; len(v.First) < previewed {
				v.First = append(v.First, e.loc)
			}
			return nil
		}
		if err := h.stream(ctx, p, g, skip, see); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}
