package sitemap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
)

// stageName is the folder inside the public one in which files are made, so
// that they reach their place by rename(2) on one file system.
const stageName = ".cmsjobs-sitemap"

// ErrBusy says that another run writes the same map at this moment.
var ErrBusy = errors.New("another run is writing the sitemap")

// sitemapFile are the names that we give; nothing else is looked at.
var sitemapFile = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*\.(xml|xml\.gz|xsl)$`)

// Folder publishes into a directory, normally the CMS's public one.
func Folder(path string) Target { return folder{path} }

type folder struct{ path string }

func (f folder) String() string { return "folder:" + f.path }

func (f folder) root() (*os.Root, error) {
	root, err := os.OpenRoot(f.path)
	if err != nil {
		return nil, fmt.Errorf("opening the sitemap's folder: %w; it must exist and be writable for this service", err)
	}
	return root, nil
}

// begin makes an empty staging folder and keeps other runs out until end.
func (f folder) begin(context.Context) (*staging, error) {
	root, err := f.root()
	if err != nil {
		return nil, err
	}
	lock, err := lockStage(root)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	stage, err := root.OpenRoot(stageName)
	if err != nil {
		return nil, errors.Join(err, lock.Close(), root.Close())
	}
	s := &staging{root: stage, end: func() error {
		return errors.Join(root.RemoveAll(stageName), stage.Close(), lock.Close(), root.Close())
	}}
	if err := s.empty("lock"); err != nil {
		return nil, errors.Join(err, stage.Close(), lock.Close(), root.Close())
	}
	return s, nil
}

// lockStage takes the lock in the staging folder. The kernel releases it
// when this process ends, however it ends. As the folder is removed at the end
// of a run, the lock counts only while its file is still the one in the folder.
func lockStage(root *os.Root) (*os.File, error) {
	const name = stageName + "/lock"
	for range 10 {
		if err := root.Mkdir(stageName, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("writing into the sitemap's folder: %w", err)
		}
		lock, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed by the run that just ended
		}
		if err != nil {
			return nil, fmt.Errorf("writing into the sitemap's folder: %w", err)
		}
		if err := tryLock(lock); err != nil {
			return nil, errors.Join(ErrBusy, lock.Close())
		}
		held, err1 := lock.Stat()
		there, err2 := root.Stat(name)
		if err1 == nil && err2 == nil && os.SameFile(held, there) {
			return lock, nil
		}
		if err := lock.Close(); err != nil {
			return nil, err
		}
	}
	return nil, ErrBusy
}

// publish renames the files into place, the index last, and then removes what
// is left of longer maps. A crash between two renames leaves whole files only.
func (f folder) publish(ctx context.Context, _ *staging, files []file, placed func()) ([]string, error) {
	root, err := f.root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, file := range files {
		if err := refuseForeign(ctx, f, file.name); err != nil {
			return nil, err
		}
	}
	keep := make(map[string]bool, len(files))
	for _, file := range files {
		if err := root.Rename(stageName+"/"+file.staged, file.name); err != nil {
			return nil, fmt.Errorf("publishing %s: %w", file.name, err)
		}
		keep[file.name] = true
		placed()
	}
	if err := syncDir(root); err != nil {
		return nil, err
	}
	return f.remove(root, keep)
}

// clear removes every file of ours.
func (f folder) clear(context.Context) ([]string, error) {
	root, err := f.root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return f.remove(root, nil)
}

func (f folder) remove(root *os.Root, keep map[string]bool) ([]string, error) {
	names, err := f.ours(root, keep)
	if err != nil {
		return nil, err
	}
	var removed []string
	// The index goes first: it must not name files that are gone.
	slices.SortFunc(names, func(a, b string) int { return indexFirst(a) - indexFirst(b) })
	for _, name := range names {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, fmt.Errorf("removing the old %s: %w", name, err)
		}
		removed = append(removed, name)
	}
	return removed, nil
}

func indexFirst(name string) int {
	if name == indexName || name == indexName+".gz" {
		return 0
	}
	return 1
}

// ours lists the regular files that carry our marker, but for those of skip.
func (f folder) ours(root *os.Root, skip map[string]bool) ([]string, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("listing the sitemap's folder: %w", err)
	}
	var names []string
	for _, e := range entries {
		if skip[e.Name()] || !e.Type().IsRegular() || !sitemapFile.MatchString(e.Name()) {
			continue
		}
		file, err := root.Open(e.Name())
		if err != nil {
			continue // not readable, so not ours
		}
		if carriesMarker(e.Name(), file) {
			names = append(names, e.Name())
		}
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// open reads a published file; fs.ErrNotExist when there is none.
func (f folder) open(_ context.Context, name string) (io.ReadCloser, error) {
	root, err := f.root()
	if err != nil {
		return nil, err
	}
	file, err := root.Open(name)
	return file, errors.Join(err, root.Close())
}

// list names the published files of ours.
func (f folder) list(context.Context) ([]string, error) {
	root, err := f.root()
	if err != nil {
		return nil, err
	}
	names, err := f.ours(root, nil)
	return names, errors.Join(err, root.Close())
}

func syncDir(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// carriesMarker looks at the beginning of a file, plain or compressed.
func carriesMarker(name string, r io.Reader) bool {
	head := make([]byte, 512)
	if zipped(name) {
		z, err := gunzip(r)
		if err != nil {
			return false
		}
		r = z
	}
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false
	}
	return bytes.Contains(head[:n], []byte(marker))
}
