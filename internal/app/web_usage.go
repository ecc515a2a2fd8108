package app

import (
	"context"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/answers"
	meter "github.com/cmsjobs/cmsjobs/internal/handlers/usage"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/storage"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/usage"
)

// webUsage shows what takes space.
type webUsage struct {
	r     *Services
	cache *answers.Cache
}

func (g webUsage) StorageUsage(ctx context.Context) ([]usage.UsageItem, error) {
	return answers.Fresh(ctx, g.cache, "usage", serves, func(ctx context.Context) ([]usage.UsageItem, error) {
		items, err := g.r.usage().Items(ctx)
		out := make([]usage.UsageItem, len(items))
		for i, x := range items {
			out[i] = usage.UsageItem(x)
		}
		return out, err
	})
}

// SizesSince adds up what was kept of each day.
func (g webUsage) SizesSince(ctx context.Context, since time.Time) ([]usage.SizeDay, error) {
	list, err := g.r.History.Sizes(ctx, since)
	var days []usage.SizeDay
	for _, x := range list {
		if len(days) == 0 || days[len(days)-1].Day != x.Day {
			days = append(days, usage.SizeDay{Day: x.Day, Parts: map[string]int64{}})
		}
		days[len(days)-1].Parts[x.Part] += x.Bytes
		if day := &days[len(days)-1]; x.Part == "table" {
			day.Tables += x.Bytes
		} else {
			day.Disk += x.Bytes
		}
	}
	return days, err
}

// Free is what the disk of the site's folder has left.
func (g webUsage) Free(context.Context) (int64, error) {
	if g.r.Site.Root == "" {
		return 0, fmt.Errorf("the site's folder is on another host: %w", jobs.ErrNotFound)
	}
	return storage.FreeSpace(g.r.Site.Root)
}

func (r *Services) usage() meter.Meter {
	return meter.Meter{Site: r.Site, Uploads: r.uploads, History: r.History}
}
