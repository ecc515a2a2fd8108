package sitemap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// Target is where the map is published: Folder, Bucket or CacheTable.
type Target interface{ target }

// target names itself in results and in our table by String.
type target interface {
	String() string
	// begin makes a place to write files in; the caller ends it.
	begin(ctx context.Context) (*staging, error)
	// publish puts files into place, the index last, and removes older ones of
	// ours, whose names it returns. placed is called after each.
	publish(ctx context.Context, s *staging, files []file, placed func()) (removed []string, err error)
	// clear removes every file of ours.
	clear(ctx context.Context) (removed []string, err error)
	// open reads a published file: fs.ErrNotExist when there is none.
	open(ctx context.Context, name string) (io.ReadCloser, error)
	// list names the published files of ours.
	list(ctx context.Context) ([]string, error)
}

// staging is a private folder of one run.
type staging struct {
	root *os.Root
	end  func() error
}

// indexName is the file that search engines are notified of.
const indexName = "sitemap.xml"

// file is one finished file in the staging folder.
type file struct {
	name     string // as it will be published
	staged   string // as it lies in the staging folder
	urls     int
	bytes    int64
	modified time.Time // newest lastmod in it
}

// empty removes what a crashed run left.
func (s *staging) empty(keep string) error {
	entries, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != keep {
			err = errors.Join(err, s.root.RemoveAll(e.Name()))
		}
	}
	return err
}

// ErrForeign says that a file lies where the map would go that is not ours: it
// has no mark of this service. It is never replaced.
var ErrForeign = errors.New("this service did not write it, so it stays as it is")

// refuseForeign is ErrForeign where the target has a file of the name that
// carries no marker, and nil where it has none.
func refuseForeign(ctx context.Context, t target, name string) error {
	r, err := t.open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if unreadable := (*fs.PathError)(nil); errors.As(err, &unreadable) { // a link that leads out of the folder, say
		return fmt.Errorf("%s is in %s already and cannot be read (%w): %w. Move it away", name, t, err, ErrForeign)
	}
	if err != nil {
		return fmt.Errorf("looking at the sitemap: %w", err)
	}
	ours := carriesMarker(name, r)
	if err := r.Close(); err != nil {
		return err
	}
	if ours {
		return nil
	}
	return fmt.Errorf("%s is in %s already: %w. Move it away, give the maps another folder (sitemap.dir), or turn "+
		"the entry off (schedule.entries.sitemap.generate.enabled: false)", name, t, ErrForeign)
}

// Foreign is nil, or an ErrForeign that names the sitemap.xml of another program
// in the place of ours.
func (h *Handler) Foreign(ctx context.Context) error { return refuseForeign(ctx, h.target, indexName) }

// Foreign is Handler.Foreign for a place that no handler has yet.
func Foreign(ctx context.Context, t Target) error { return refuseForeign(ctx, t, indexName) }
