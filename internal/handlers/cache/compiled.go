package cache

import (
	"context"
	"errors"
	"io/fs"
	"path"
)

// Files that PHP makes from others and makes again when they are gone.
const (
	viewsFolder     = "storage/framework/views"
	bootstrapFolder = "bootstrap/cache"
)

// clearPHP removes the files of one folder that match a pattern, not those of
// folders below it.
func (h *Handler) clearPHP(ctx context.Context, folder string, patterns []string, r *Report) error {
	root, err := h.folder(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	return files(ctx, root, r, func(name string, entry fs.DirEntry) {
		for _, pattern := range patterns {
			if match, err := path.Match(pattern, name); err == nil && match { // no * matches a slash
				remove(root, name, sizeOf(entry), r)
				return
			}
		}
	})
}
