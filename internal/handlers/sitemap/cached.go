package sitemap

import (
	"context"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

// CacheTable publishes into the CMS's database cache: a file's text is
// under the key cmsjobs:sitemap:<name>, for a route of the CMS to show. All of
// it changes in one transaction.
func CacheTable(table cms.CacheTable, now func() time.Time) Target { return cached{table, now} }

const cacheGroup = "cmsjobs:sitemap:"

type cached struct {
	table cms.CacheTable
	now   func() time.Time
}

func (c cached) String() string { return "cache:" + c.table.Prefix + cacheGroup }

func (c cached) begin(context.Context) (*staging, error) { return stageInTemp() }

func (c cached) publish(ctx context.Context, s *staging, files []file, placed func()) ([]string, error) {
	return c.replace(ctx, func(yield func(cms.CacheEntry, error) bool) {
		for _, f := range files {
			if zipped(f.name) {
				continue // the table holds text
			}
			text, err := s.root.ReadFile(f.staged)
			if !yield(cms.CacheEntry{Key: cacheGroup + f.name, Text: string(text)}, err) {
				return
			}
			placed()
		}
	})
}

func (c cached) clear(ctx context.Context) ([]string, error) {
	return c.replace(ctx, func(func(cms.CacheEntry, error) bool) {})
}

func (c cached) replace(ctx context.Context, entries func(func(cms.CacheEntry, error) bool)) ([]string, error) {
	keys, err := c.table.Replace(ctx, cacheGroup, c.now(), entries)
	return names(keys), err
}

func names(keys []string) []string {
	for i, key := range keys {
		keys[i] = strings.TrimPrefix(key, cacheGroup)
	}
	return keys
}

func (c cached) open(ctx context.Context, name string) (io.ReadCloser, error) {
	text, there, err := c.table.Text(ctx, cacheGroup+name)
	if err == nil && !there {
		err = fs.ErrNotExist
	}
	return io.NopCloser(strings.NewReader(text)), err
}

func (c cached) list(ctx context.Context) ([]string, error) {
	keys, err := c.table.Keys(ctx, cacheGroup)
	return names(keys), err
}
