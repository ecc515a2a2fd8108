package browse

import (
	"context"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// Difference is a table or a file that is not the same in two backups. Before or After
// is −1 where the other backup alone has it: rows of a table, bytes of a file.
type Difference struct {
	Name   string `json:"name"`
	Before int64  `json:"before"`
	After  int64  `json:"after"`
}

// Comparison says how a second backup differs from a first.
type Comparison struct {
	Tables     []Difference `json:"tables"`
	SameTables int          `json:"same_tables"`
	// Files are the first of those that differ; the counts are of all.
	Files      []Difference `json:"files"`
	SameFiles  int64        `json:"same_files"`
	AddedFiles int64        `json:"added_files"`
	GoneFiles  int64        `json:"gone_files"`
	OtherFiles int64        `json:"other_files"` // of both, with other content
	// BytesBefore and BytesAfter are the sizes of all files.
	BytesBefore int64 `json:"bytes_before"`
	BytesAfter  int64 `json:"bytes_after"`
}

// maxDifferences bounds the files that a comparison names.
const maxDifferences = 1000

// known is what is kept of a file of the first backup.
type known struct {
	size int64
	sum  string // the beginning of its SHA-256: enough to tell two versions of one file apart
}

const keptSum = 16

// Compare reads two backups. A table is the same when its rows are.
func (b *Browser) Compare(ctx context.Context, before, after catalog.Stored, progress func(catalog.Step)) (Comparison,
	error) {
	c := Comparison{Tables: []Difference{}, Files: []Difference{}}
	files := map[string]known{}
	was, err := b.each(ctx, before, progress, func(f manifest.PackedFile) error {
		files[f.Name] = known{f.Size, strings.Clone(f.SHA256[:min(len(f.SHA256), keptSum)])}
		c.BytesBefore += f.Size
		return nil
	})
	if err != nil {
		return c, err
	}
	is, err := b.each(ctx, after, progress, func(f manifest.PackedFile) error {
		c.BytesAfter += f.Size
		k, there := files[f.Name]
		delete(files, f.Name)
		switch {
		case !there:
			c.AddedFiles++
			c.addFile(f.Name, -1, f.Size)
		case k.size == f.Size && strings.HasPrefix(f.SHA256, k.sum):
			c.SameFiles++
		default:
			c.OtherFiles++
			c.addFile(f.Name, k.size, f.Size)
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	c.GoneFiles = int64(len(files))
	for name, k := range files {
		c.addFile(name, k.size, -1)
	}
	slices.SortFunc(c.Files, func(a, b Difference) int { return strings.Compare(a.Name, b.Name) })
	c.compareTables(tablesOf(was), tablesOf(is))
	return c, nil
}

func (c *Comparison) addFile(name string, before, after int64) {
	if len(c.Files) < maxDifferences {
		c.Files = append(c.Files, Difference{name, before, after})
	}
}

func tablesOf(m *manifest.Manifest) map[string]dump.Table {
	tables := map[string]dump.Table{}
	if m != nil && m.Dump != nil {
		for _, t := range m.Dump.Tables {
			tables[t.Name] = t
		}
	}
	return tables
}

func (c *Comparison) compareTables(before, after map[string]dump.Table) {
	for name, was := range before {
		is, there := after[name]
		switch {
		case !there:
			c.Tables = append(c.Tables, Difference{name, was.Rows, -1})
		case was.Rows == is.Rows && was.Checksum == is.Checksum:
			c.SameTables++
		default:
			c.Tables = append(c.Tables, Difference{name, was.Rows, is.Rows})
		}
	}
	for name, is := range after {
		if _, there := before[name]; !there {
			c.Tables = append(c.Tables, Difference{name, -1, is.Rows})
		}
	}
	slices.SortFunc(c.Tables, func(a, b Difference) int { return strings.Compare(a.Name, b.Name) })
}
