package cache

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
)

// Laravel's file store: <h0h1>/<h2h3>/<sha1 of the key>, each file beginning
// with its expiry as ten digits of Unix seconds (Illuminate\Cache\FileStore).
const (
	dataFolder   = "storage/framework/cache/data"
	expiryDigits = 10
)

var cacheFile = regexp.MustCompile(`^[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{40}$`)

type fileStore struct{ h *Handler }

func (s fileStore) name() string { return "file" }

func (s fileStore) open() (*os.Root, error) { return s.h.folder(dataFolder) }

// flush removes every entry. Files that are no entries (.gitignore) stay.
func (s fileStore) flush(ctx context.Context, r *Report) error {
	return s.sweep(ctx, r, func(*os.Root, string) bool { return true })
}

// expired removes the entries whose time is over. One that does not begin with
// an expiry, as one that PHP is just writing, stays.
func (s fileStore) expired(ctx context.Context, r *Report) error {
	now := s.h.now().Unix()
	return s.sweep(ctx, r, func(root *os.Root, name string) bool {
		expiry, ok := expiryOf(root, name)
		return ok && now >= expiry
	})
}

func (s fileStore) sweep(ctx context.Context, r *Report, doomed func(*os.Root, string) bool) error {
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was ever cached
	}
	if err != nil {
		return err
	}
	defer root.Close()
	err = files(ctx, root, r, func(name string, entry fs.DirEntry) {
		if cacheFile.MatchString(name) && doomed(root, name) {
			remove(root, name, sizeOf(entry), r)
		}
	})
	if err != nil {
		return err
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
	r.note("the file store names entries by a hash of their key: entries beginning with %v cannot be told apart, so all were cleared", prefixes)
	return s.flush(ctx, r)
}
