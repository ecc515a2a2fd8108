package demo

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

type File struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// FilesSince lists what jobs wrote into the site's public folder and mails.
func FilesSince(dir string, since time.Time) ([]File, error) {
	files := []File{}
	for _, part := range []string{"public", "mails", filepath.Join("storage", "app", "cmsjobs-backups")} {
		err := filepath.WalkDir(filepath.Join(dir, part), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err != nil || info.ModTime().Before(since.Add(-10*time.Millisecond)) ||
				strings.HasPrefix(d.Name(), ".") {
				return err
			}
			relative, err := filepath.Rel(dir, path)
			files = append(files, File{filepath.ToSlash(relative), info.Size()})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("listing what was written: %w", err)
		}
	}
	return files, nil
}
