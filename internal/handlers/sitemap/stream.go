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
	// The site's own address is listed where no page of the CMS has it.
	if g.model.Name == "pages" && p.links.Homepage == "" && g.ids == nil {
		if err := see(&entry{loc: p.links.Home(""), priority: "1.0", frequency: "daily"}); err != nil {
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
