package sitemap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Bucket publishes into a store, its keys after prefix ("sitemaps/"). The web
// server must show them at the site's root.
func Bucket(store storage.Store, prefix string) Target { return bucket{store, prefix} }

type bucket struct {
	store  storage.Store
	prefix string
}

func (b bucket) String() string {
	if named, ok := b.store.(fmt.Stringer); ok {
		return "bucket:" + named.String() + "/" + b.prefix
	}
	return "bucket:" + b.prefix
}

func (b bucket) begin(context.Context) (*staging, error) { return stageInTemp() }

// stageInTemp makes files in a folder of this host for targets elsewhere.
func stageInTemp() (*staging, error) {
	dir, err := os.MkdirTemp("", "cmsjobs-sitemap-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the sitemap: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &staging{root: root, end: func() error { return errors.Join(root.Close(), os.RemoveAll(dir)) }}, nil
}

// uploads is how many files travel at once.
const uploads = 8

// publish uploads all files but the index at once, then the index: it never
// names what is not there.
func (b bucket) publish(ctx context.Context, s *staging, files []file, placed func()) ([]string, error) {
	keep := map[string]bool{}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(uploads)
	for _, f := range files {
		if keep[f.name] = true; indexFirst(f.name) != 0 {
			group.Go(func() error {
				defer placed()
				return b.put(within, s, f)
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, f := range files {
		if indexFirst(f.name) == 0 {
			if err := b.put(ctx, s, f); err != nil {
				return nil, err
			}
			placed()
		}
	}
	return b.remove(ctx, keep)
}

var contentTypes = map[string]string{".xml": "application/xml; charset=utf-8", ".xsl": "application/xslt+xml; " +
	"charset=utf-8", ".gz": "application/gzip"}

func (b bucket) put(ctx context.Context, s *staging, f file) error {
	if err := refuseForeign(ctx, b, f.name); err != nil {
		return err
	}
	r, err := s.root.Open(f.staged)
	if err != nil {
		return err
	}
	o := storage.PutOptions{ContentType: contentTypes[f.name[strings.LastIndexByte(f.name, '.'):]],
		ExpectedSize: f.bytes, Public: true}
	if err := errors.Join(b.store.Put(ctx, b.prefix+f.name, r, o), r.Close()); err != nil {
		return fmt.Errorf("publishing %s: %w", f.name, err)
	}
	return nil
}

func (b bucket) clear(ctx context.Context) ([]string, error) { return b.remove(ctx, nil) }

func (b bucket) remove(ctx context.Context, keep map[string]bool) ([]string, error) {
	names, err := b.ours(ctx, keep)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(names, func(a, b string) int { return indexFirst(a) - indexFirst(b) })
	for i, name := range names {
		if err := b.store.Delete(ctx, b.prefix+name); err != nil {
			return names[:i], fmt.Errorf("removing the old %s: %w", name, err)
		}
	}
	return names, nil
}

func (b bucket) ours(ctx context.Context, skip map[string]bool) ([]string, error) {
	var names []string
	for info, err := range b.store.List(ctx, b.prefix) {
		if err != nil {
			return nil, fmt.Errorf("listing the sitemap's store: %w", err)
		}
		name := strings.TrimPrefix(info.Key, b.prefix)
		if skip[name] || !sitemapFile.MatchString(name) {
			continue
		}
		r, err := b.open(ctx, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if carriesMarker(name, r) {
			names = append(names, name)
		}
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
	return names, nil
}

func (b bucket) open(ctx context.Context, name string) (io.ReadCloser, error) {
	r, _, err := b.store.Open(ctx, b.prefix+name)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, fs.ErrNotExist
	}
	return r, err
}

func (b bucket) list(ctx context.Context) ([]string, error) { return b.ours(ctx, nil) }
