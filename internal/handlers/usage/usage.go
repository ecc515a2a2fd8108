package usage

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

// Item is a table or a folder and the space that it takes.
type Item struct {
	Name  string // a folder's below the site's root; "(at least)" follows where it was not counted whole
	Class string // table, cache, logs, media, backup
	Bytes int64
	Rows  int64 // of a table; files of a folder
}

// History keeps the sizes of a day.
type History interface {
	SizesAge(ctx context.Context) (age time.Duration, ever bool, err error)
	KeepSizes(ctx context.Context, sizes map[string]int64) error
}

// Meter measures a site.
type Meter struct {
	Site    *cms.Site
	Uploads func() string // the folder of the CMS's uploads
	History History
}

// Items lists the largest tables and the folders.
func (m Meter) Items(ctx context.Context) ([]Item, error) {
	list, err := m.Site.TableSizes(ctx)
	if err != nil {
		return nil, err
	}
	var items []Item
	for _, t := range list {
		items = append(items, Item{Name: t.Name, Class: "table", Bytes: t.Bytes, Rows: t.Rows})
	}
	return append(items, m.folders(ctx)...), nil
}

// keptEvery is how often sizes are measured for the plots.
const keptEvery = time.Hour

// Keep writes today's sizes down, unless somebody did within the hour.
func (m Meter) Keep(ctx context.Context) error {
	age, ever, err := m.History.SizesAge(ctx)
	if err != nil || ever && age < keptEvery {
		return err
	}
	items, err := m.Items(ctx)
	if err != nil {
		return err
	}
	sizes := map[string]int64{}
	for _, x := range items {
		sizes[x.Class] += x.Bytes
	}
	return m.History.KeepSizes(ctx, sizes)
}

func (m Meter) folders(ctx context.Context) []Item {
	root := m.Site.Root
	if root == "" {
		return nil
	}
	storage := m.Site.Storage()
	var items []Item
	for _, f := range []struct{ class, dir string }{
		{"cache", filepath.Join(storage, "framework", "cache")},
		{"cache", filepath.Join(storage, "framework", "views")},
		{"logs", filepath.Join(storage, "logs")}, {"media", m.Uploads()},
		{"backup", filepath.Join(storage, "app", "cmsjobs-backups")},
	} {
		bytes, files, whole := folderSize(ctx, f.dir)
		name := strings.TrimPrefix(strings.TrimPrefix(f.dir, root), string(filepath.Separator))
		if !whole {
			name += " (at least)"
		}
		items = append(items, Item{Name: name, Class: f.class, Bytes: bytes, Rows: files})
	}
	return items
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
