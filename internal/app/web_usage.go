package app

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/web/feature/usage"
)

// webUsage shows what takes room.
type webUsage struct {
	r    *Services
	seen ttlCache[[]usage.UsageItem]
}

func (g *webUsage) StorageUsage(ctx context.Context) ([]usage.UsageItem, error) {
	return g.seen.ask(g.r.Now, func() ([]usage.UsageItem, error) {
		list, err := g.r.Site.TableSizes(ctx)
		if err != nil {
			return nil, err
		}
		var out []usage.UsageItem
		for _, t := range list {
			out = append(out, usage.UsageItem{Name: t.Name, Class: "table", Bytes: t.Bytes, Rows: t.Rows})
		}
		return append(out, g.folders(ctx)...), nil
	})
}

// SizesSince adds up what was kept of each day.
func (g *webUsage) SizesSince(ctx context.Context, since time.Time) ([]usage.SizeDay, error) {
	list, err := g.r.Store.Sizes(ctx, since)
	var days []usage.SizeDay
	for _, x := range list {
		if len(days) == 0 || days[len(days)-1].Day != x.Day {
			days = append(days, usage.SizeDay{Day: x.Day})
		}
		if day := &days[len(days)-1]; x.Part == "table" {
			day.Tables += x.Bytes
		} else {
			day.Disk += x.Bytes
		}
	}
	return days, err
}

// sizesEvery is how often sizes are measured for the plots of growth.
const sizesEvery = time.Hour

// noteSizes writes today's sizes down, unless somebody did within the hour.
func (r *Services) noteSizes(ctx context.Context) error {
	age, ever, err := r.Store.SizesAge(ctx)
	if err != nil || ever && age < sizesEvery {
		return err
	}
	list, err := (&webUsage{r: r}).StorageUsage(ctx)
	if err != nil {
		return err
	}
	sizes := map[string]int64{}
	for _, x := range list {
		sizes[x.Class] += x.Bytes
	}
	return r.Store.KeepSizes(ctx, sizes)
}

func (g *webUsage) folders(ctx context.Context) []usage.UsageItem {
	if g.r.Site.Root == "" {
		return nil
	}
	storage := g.r.Site.Storage()
	var out []usage.UsageItem
	for _, f := range []struct{ part, dir string }{
		{"cache", filepath.Join(storage, "framework", "cache")}, {"cache", filepath.Join(storage, "framework", "views")},
		{"logs", filepath.Join(storage, "logs")}, {"media", g.r.uploads()}, {"backup", filepath.Join(storage, "app", "cmsjobs-backups")},
	} {
		bytes, files, whole := folderSize(ctx, f.dir)
		name := strings.TrimPrefix(strings.TrimPrefix(f.dir, g.r.Site.Root), string(filepath.Separator))
		if !whole {
			name += " (at least)"
		}
		out = append(out, usage.UsageItem{Name: name, Class: f.part, Bytes: bytes, Rows: files})
	}
	return out
}

// filesCounted bounds the walk through one folder.
const filesCounted = 200_000

// folderSize adds up a folder; whole is false when it was too large for that.
func folderSize(ctx context.Context, dir string) (bytes, files int64, whole bool) {
	whole = true
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil || files >= filesCounted {
			whole = false
			return fs.SkipAll
		}
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // what cannot be read is not counted
		}
		if info, err := d.Info(); err == nil {
			bytes, files = bytes+info.Size(), files+1
		}
		return nil
	})
	return bytes, files, whole
}
