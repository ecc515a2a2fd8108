package sitemap

import (
	"context"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

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
