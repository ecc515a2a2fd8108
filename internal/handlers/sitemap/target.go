package sitemap

import (
	"context"
	"errors"
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
