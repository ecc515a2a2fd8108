package feed

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Files notices that somebody writes to a SQLite database. It watches the folder:
// the write-ahead log vanishes when the last connection closes, and a new one
// comes.
type Files struct {
	Path string // of the database
}

// Name implements Source.
func (*Files) Name() string { return "file events" }

// SeesContent implements ContentSource.
func (*Files) SeesContent() bool { return true }

// Run implements Source.
func (f *Files) Run(ctx context.Context, report Told) error {
	path, err := realPath(f.Path)
	if err != nil {
		return fmt.Errorf("finding the database's file: %w", err)
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching the database's folder: %w", err)
	}
	defer w.Close()
	if err := w.Add(filepath.Dir(path)); err != nil {
		return fmt.Errorf("watching the database's folder: %w", err)
	}
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	report(Alive)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-alive.C:
			report(Alive)
		case e, open := <-w.Events:
			if !open {
				return errEnded
			}
			suffix, ours := strings.CutPrefix(e.Name, path)
			if ours && (suffix == "" || suffix == "-wal" || suffix == "-journal") {
				report(Written)
			}
		case err := <-w.Errors: // an overflow of the kernel's queue, for example
			if err == nil {
				return errEnded
			}
			report(Written)
		}
	}
}

// realPath is where a file is, whatever links lead to it: events name it so.
func realPath(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}
