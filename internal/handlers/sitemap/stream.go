package sitemap

import (
	"context"
	"errors"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

// stream gives see every address of a group, and skip every row that cannot be
// listed. It ends at see's first error.
func (h *Handler) stream(ctx context.Context, p *plan, g *group, skip func(*cms.RowError),
	see func(*entry) error) error {
	for _, e := range p.withoutRow(g) {
		if err := see(&e); err != nil {
			return err
		}
	}
	for item, err := range h.site.Content(ctx, g.model, p.query(g)) {
		var fault *cms.RowError
		switch {
		case errors.As(err, &fault):
			skip(fault)
			continue
		case err != nil:
			return err
		case item.NoIndex && !p.options.KeepNoIndex:
			continue
		}
		list := p.entries(g, &item, h.media)
		// All languages or none: their alternates name each other.
		if n := longest(list); n > maxLoc {
			skip(&cms.RowError{Table: g.model.Table, ID: item.ID, Reason: fmt.Sprintf("its address has %d bytes, "+
				"sitemaps allow %d", n, maxLoc)})
			continue
		}
		for i := range list {
			if g.model.Name == "posts" {
				list[i].post = item.ID
			}
			if err := see(&list[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func longest(list []entry) int {
	n := 0
	for i := range list {
		n = max(n, len(list[i].loc))
	}
	return n
}

// withoutRow are the entries of a group that no row has: the site's own address where no page
// of the CMS has it, and the list pages of plugins, one in each language.
func (p *plan) withoutRow(g *group) (list []entry) {
	if g.ids != nil {
		return nil
	}
	if g.model.Name == "pages" && p.links.Homepage == "" {
		list = append(list, entry{loc: p.links.Home(""), priority: "1.0", frequency: "daily"})
	}
	languages := []cms.Language{{}}
	if len(p.links.Languages) > 1 {
		languages = p.links.Languages
	}
	for _, path := range g.lists {
		var set []alternate
		begin := len(list)
		for _, l := range languages {
			loc := p.links.Home(l.Code) + "/" + cms.EscapePath(path)
			list = append(list, entry{loc: loc, priority: "0.8", frequency: "weekly"})
			set = append(set, alternate{hreflang(l.Code), loc})
		}
		if !p.options.Alternates || len(languages) == 1 {
			continue
		}
		set = append(set, alternate{"x-default", list[begin].loc})
		for i := begin; i < len(list); i++ {
			list[i].alternates = set
		}
	}
	return list
}
