package cache

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/cmsjobs/cmsjobs/internal/cms/laravel"
)

// Laravel's file store: <h0h1>/<h2h3>/<sha1 of the key>, each file beginning
// with its expiry as ten digits of Unix seconds (Illuminate\Cache\FileStore).
const (
	dataFolder   = "storage/framework/cache/data"
	expiryDigits = 10
)

var cacheFile = regexp.MustCompile(`^[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{40}$`)

type fileStore struct {
	h *Handler
	// folder is the store's, below the CMS's own.
	folder string
}

// fileStore refuses a store outside the CMS's folder: other programs' files
// may be there.
func (h *Handler) fileStore(l laravel.CacheStore) (store, error) {
	if h.site.Root == "" {
		return fileStore{h, dataFolder}, nil
	}
	inside, err := filepath.Rel(h.site.Root, l.Dir)
	if err != nil || !filepath.IsLocal(inside) {
		return nil, fmt.Errorf("the CMS's file cache is in %s, which is outside its folder", l.Dir)
	}
	return fileStore{h, filepath.ToSlash(inside)}, nil
}

func (s fileStore) name() string { return "file" }

func (s fileStore) open() (*os.Root, error) { return s.h.folder(s.folder) }

// forgetTags has nothing to do: this store has no tags.
func (s fileStore) forgetTags(context.Context, []string, *Report) ([]string, error) { return nil, nil }

// flush removes every entry. Files that are no entries (.gitignore) stay.
func (s fileStore) flush(ctx context.Context, r *Report) error {
	return s.sweep(ctx, r, true, func(*os.Root, string) bool { return true })
}

// expired removes the entries whose time is over. One that does not begin with
// an expiry, as one that PHP is just writing, stays.
func (s fileStore) expired(ctx context.Context, r *Report) error {
	now := s.h.now().Unix()
	return s.sweep(ctx, r, false, func(root *os.Root, name string) bool {
		expiry, ok := expiryOf(root, name)
		return ok && now >= expiry
	})
}

func (s fileStore) sweep(ctx context.Context, r *Report, flush bool, doomed func(*os.Root, string) bool) error {
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was ever cached
	}
	if err != nil {
		return err
	}
	defer root.Close()
	removed, others := 0, int64(0)
	err = files(ctx, root, r, func(name string, entry fs.DirEntry) {
		switch {
		case !cacheFile.MatchString(name):
			others++
		case doomed(root, name) && remove(root, name, sizeOf(entry), r):
			removed++
		}
	})
	if err != nil {
		return err
	}
	if flush && removed == 0 && others > 0 {
		r.Untouched = others
		r.note("nothing was removed: %s holds %d files, and none is named as Laravel's file store names entries",
			s.folder, others)
	}
	return emptyFolders(ctx, root, r)
}

func expiryOf(root *os.Root, name string) (int64, bool) {
	f, err := root.Open(name)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	var digits [expiryDigits]byte
	if _, err := io.ReadFull(f, digits[:]); err != nil {
		return 0, false
	}
	expiry, err := strconv.ParseInt(string(digits[:]), 10, 64)
	return expiry, err == nil && expiry >= 0
}

// forget removes entries by their keys, which have no prefix in this store.
func (s fileStore) forget(_ context.Context, keys []string, r *Report) error {
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	for _, key := range keys {
		sum := sha1.Sum([]byte(key))
		hash := hex.EncodeToString(sum[:])
		name := hash[:2] + "/" + hash[2:4] + "/" + hash
		if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() {
			remove(root, name, info.Size(), r)
		}
	}
	return nil
}

// forgetPrefixes cannot be done by hashes: everything goes, which a cache can
// bear.
func (s fileStore) forgetPrefixes(ctx context.Context, prefixes []string, r *Report) error {
	r.note("the file store names entries by a hash of their key: entries beginning with %v cannot be distinguished, "+
		"so all were cleared", prefixes)
	return s.flush(ctx, r)
}
