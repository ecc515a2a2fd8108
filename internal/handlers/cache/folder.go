package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

var errNoFolder = errors.New("the CMS's folder is not configured: set the path of the site to clean its files")

// storage is Laravel's folder of what a release does not replace. Tools that put each release into a
// separate folder (Deployer, Envoyer, Capistrano) link it to one that all releases share.
const storage = "storage"

// folder opens a folder below the CMS's own. A missing one is fs.ErrNotExist. A symlink on the way is
// refused, as what it names may be another site's; only storage itself may be one, to a folder
// that is laid out as Laravel's: the CMS writes there, too.
func (h *Handler) folder(name string) (*os.Root, error) {
	if h.site.Root == "" {
		return nil, errNoFolder
	}
	root, err := os.OpenRoot(h.site.Root)
	if err != nil {
		return nil, fmt.Errorf("opening the CMS's folder: %w", err)
	}
	defer func() { root.Close() }()
	if first, rest, _ := strings.Cut(name, "/"); first == storage && linked(root, storage) {
		shared, err := h.sharedStorage()
		if err != nil {
			return nil, err
		}
		root.Close()
		root, name = shared, path.Clean(rest) // "" is "."
	}
	if err := plain(root, name); err != nil {
		return nil, err
	}
	return root.OpenRoot(name)
}

func linked(root *os.Root, name string) bool {
	info, err := root.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// sharedStorage opens what the link storage names: the link is followed once, everything else stays
// under the folder that was opened. No error is fs.ErrNotExist: such a link is a fault, not an empty cache.
func (h *Handler) sharedStorage() (*os.Root, error) {
	shared, err := os.OpenRoot(h.site.Storage())
	if err != nil {
		return nil, errors.New("the link " + storage + " cannot be followed: " + err.Error())
	}
	if err := plain(shared, "framework"); err != nil {
		shared.Close()
		return nil, errors.New("the link " + storage +
			" is not followed, as its folder is not laid out as Laravel's: " + err.Error())
	}
	return shared, nil
}

// plain says whether each part of a path is a folder and no symlink.
func plain(root *os.Root, name string) error {
	at := ""
	for part := range strings.SplitSeq(name, "/") {
		at = path.Join(at, part)
		info, err := root.Lstat(at)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is no plain folder (symlinks are not followed): configure the CMS's real path", at)
		}
	}
	return nil
}

// files calls visit for each regular file below root that is no dot file. A
// folder that cannot be read is reported and passed over; the context ends the
// walk.
func files(ctx context.Context, root *os.Root, r *Report, visit func(name string, entry fs.DirEntry)) error {
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist): // PHP was faster
			return nil
		case err != nil:
			r.failed(name, err)
			return fs.SkipDir
		case entry.Type().IsRegular() && !strings.HasPrefix(path.Base(name), "."):
			visit(name, entry)
		}
		return nil
	})
}

// remove deletes one file, or only counts it. One that is gone already is as
// good as removed.
func remove(root *os.Root, name string, size int64, r *Report) bool {
	if !r.DryRun {
		err := root.Remove(name)
		if errors.Is(err, fs.ErrNotExist) {
			return true
		}
		if err != nil {
			r.failed(name, err)
			return false
		}
	}
	r.file(size)
	return true
}

func sizeOf(entry fs.DirEntry) int64 {
	info, err := entry.Info()
	if err != nil {
		return 0 // it is gone; its removal will tell
	}
	return info.Size()
}

// emptyFolders removes the folders below root that have nothing in them,
// deepest first. One that PHP fills meanwhile is not empty and stays.
func emptyFolders(ctx context.Context, root *os.Root, r *Report) error {
	var folders []string
	err := fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && entry.IsDir() && name != "." {
			folders = append(folders, name)
		}
		return nil
	})
	for i := len(folders) - 1; i >= 0 && !r.DryRun; i-- {
		if root.Remove(folders[i]) == nil { // an error says: not empty
			r.Folders++
		}
	}
	return err
}
