package app

import (
	"context"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/usage"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// webUsage shows what takes space.
type webUsage struct {
	r    *Services
	seen ttlCache[[]web.UsageItem]
}

func (g *webUsage) StorageUsage(ctx context.Context) ([]web.UsageItem, error) {
	return g.seen.ask(g.r.Now, func() ([]web.UsageItem, error) {
		items, err := g.r.usage().Items(ctx)
		out := make([]web.UsageItem, len(items))
		for i, x := range items {
			out[i] = web.UsageItem(x)
		}
		return out, err
	})
}

// SizesSince adds up what was kept of each day.
func (g *webUsage) SizesSince(ctx context.Context, since time.Time) ([]web.SizeDay, error) {
	list, err := g.r.History.Sizes(ctx, since)
	var days []web.SizeDay
	for _, x := range list {
		if len(days) == 0 || days[len(days)-1].Day != x.Day {
			days = append(days, web.SizeDay{Day: x.Day})
		}
		if day := &days[len(days)-1]; x.Part == "table" {
			day.Tables += x.Bytes
		} else {
			day.Disk += x.Bytes
		}
	}
	return days, err
}

func (r *Services) usage() usage.Meter {
	return usage.Meter{Site: r.Site, Uploads: r.uploads, History: r.History}
}
