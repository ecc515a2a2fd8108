package browse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/fileset"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// Browser looks into the backups of a catalog.
type Browser struct{ catalog *catalog.Catalog }

// New makes a Browser.
func New(c *catalog.Catalog) *Browser { return &Browser{c} }

// ErrNoFile says that a backup has no file of a name.
var ErrNoFile = errors.New("the backup has no such file")

// Folder is a folder of a backup with what is in it and in the folders below.
type Folder struct {
	Name  string `json:"name"`
	Files int64  `json:"files"`
	Bytes int64  `json:"bytes"`
}

// Contents is what a backup holds.
type Contents struct {
	Tables  []dump.Table `json:"tables,omitempty"`
	Folders []Folder     `json:"folders,omitempty"`
	// Files are those that fit the patterns, the first of them where there are many;
	// More is how many were left out.
	Files []manifest.PackedFile `json:"files,omitempty"`
	More  int64                 `json:"more,omitempty"`
}

// MaxFiles is how many files Contents names.
const MaxFiles = 10_000

// folderDepth is how many parts the name of a folder in Contents has.
const folderDepth = 2

// Contents reads what a backup holds. Files are named where patterns are given.
func (b *Browser) Contents(ctx context.Context, of catalog.Stored, patterns []string, progress func(catalog.Step)) (
	Contents, error) {
	var c Contents
	if err := fileset.CheckPatterns(patterns); err != nil {
		return c, err
	}
	folders := map[string]*Folder{}
	m, err := b.each(ctx, of, progress, func(f manifest.PackedFile) error {
		name := folderOf(f.Name)
		if folders[name] == nil {
			folders[name] = &Folder{Name: name}
		}
		folders[name].Files++
		folders[name].Bytes += f.Size
		switch {
		case len(patterns) == 0 || !fileset.MatchesAny(patterns, f.Name):
		case len(c.Files) == MaxFiles:
			c.More++
		default:
			c.Files = append(c.Files, f)
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	if m != nil && m.Dump != nil {
		c.Tables = m.Dump.Tables
	}
	for _, f := range folders {
		c.Folders = append(c.Folders, *f)
	}
	slices.SortFunc(c.Folders, func(a, b Folder) int { return strings.Compare(a.Name, b.Name) })
	return c, nil
}

func folderOf(name string) string {
	parts := strings.Split(path.Dir(name), "/")
	return strings.Join(parts[:min(len(parts), folderDepth)], "/")
}

// each visits the files of a backup by its lists, and returns its manifest.
func (b *Browser) each(ctx context.Context, of catalog.Stored, progress func(catalog.Step),
	visit func(manifest.PackedFile) error) (m *manifest.Manifest, err error) {
	err = b.catalog.Read(ctx, of, progress, func(e archive.Entry, content io.Reader) error {
		switch {
		case e.Name == manifest.LastEntry:
			return manifest.DecodeEntry(content, &m)
		case !strings.HasPrefix(e.Name, manifest.ListFolder):
			return nil
		}
		return manifest.ReadList(e, content, visit)
	})
	if err != nil {
		return nil, fmt.Errorf("looking into %s: %w", of.ID, err)
	}
	return m, nil
}

// File writes one file of a backup (LABEL/PATH) to w and returns its size. What was
// written counts only without an error: the archive is checked at its end.
func (b *Browser) File(ctx context.Context, of catalog.Stored, name string, w io.Writer,
	progress func(catalog.Step)) (size int64, err error) {
	found := false
	err = b.catalog.Read(ctx, of, progress, func(e archive.Entry, content io.Reader) (err error) {
		if e.Name != manifest.FilesFolder+name {
			return nil
		}
		found = true
		size, err = io.Copy(w, content)
		return err
	})
	switch {
	case err != nil:
		return size, fmt.Errorf("taking %s from %s: %w", name, of.ID, err)
	case !found:
		return 0, fmt.Errorf("%w: %s. cmsjobs backup contents %s --files PATTERN lists them", ErrNoFile, name, of.ID)
	}
	return size, nil
}
