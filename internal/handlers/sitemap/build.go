package sitemap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

// file is one finished file in the staging folder.
type file struct {
	name     string // as it will be published
	staged   string // as it lies in the staging folder
	urls     int
	bytes    int64
	modified time.Time // newest lastmod in it
}

// Skipped is a row that is not in the map, and why.
type Skipped struct {
	Table  string `json:"table"`
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// maxSkipped bounds how many skipped rows a result names; all are counted.
const maxSkipped = 50

// builder writes the files of one run into a staging folder.
type builder struct {
	plan    *plan
	stage   *os.Root
	seal    *sealer
	out     *output
	parts   []file // of the group that is being written
	files   []file
	nextID  int
	urls    int
	skipped []Skipped
	faults  int
	buffer  []byte         // of an entry
	text    []byte         // of a file, handed from one to the next
	seen    func(urls int) // progress
}

// group writes all of one kind of content.
func (b *builder) group(ctx context.Context, h *Handler, g *group) error {
	b.parts = nil
	if err := h.stream(ctx, b.plan, g, b.skip, b.add); err != nil {
		return errors.Join(err, b.abort())
	}
	return b.finish(g)
}

func (b *builder) skip(e *cms.RowError) {
	if b.faults++; len(b.skipped) < maxSkipped {
		b.skipped = append(b.skipped, Skipped{e.Table, e.ID, e.Reason})
	}
}

// add writes an entry into the current file, or into a new one when it is full.
func (b *builder) add(e *entry) error {
	b.buffer = appendEntry(b.buffer[:0], e)
	if b.out != nil && !b.out.fits(len(b.buffer), b.plan.perFile) {
		if err := b.close(); err != nil {
			return err
		}
	}
	if b.out == nil {
		if err := b.open(); err != nil {
			return err
		}
	}
	b.urls++
	if b.urls%1000 == 0 {
		b.seen(b.urls)
	}
	return b.out.write(b.buffer, e.modified)
}

func (b *builder) open() error {
	b.nextID++
	name := "part-" + strconv.Itoa(b.nextID)
	f, err := b.stage.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("writing the sitemap: %w", err)
	}
	b.out = &output{file: f, staged: name, buffer: b.text[:0]}
	return b.out.write([]byte(header(b.plan.stylesheet(), b.plan.extensions()...)), time.Time{})
}

func (b *builder) close() error {
	out := b.out
	b.out = nil
	if out == nil {
		return nil
	}
	part, err := out.end()
	b.text = out.buffer
	if err != nil {
		return errors.Join(fmt.Errorf("writing the sitemap: %w", err), out.file.Close())
	}
	b.parts = append(b.parts, part)
	b.seen(b.urls)
	return b.seal.take(out.file, part.staged, b.plan.options.Gzip)
}

// abort closes what is open after an error.
func (b *builder) abort() error {
	if b.out == nil {
		return nil
	}
	out := b.out
	b.out = nil
	return out.file.Close()
}

// finish ends a group: only now it is known how many files it has.
func (b *builder) finish(g *group) error {
	if err := b.close(); err != nil {
		return err
	}
	for i := range b.parts {
		b.parts[i].name = b.plan.name(g, i+1, len(b.parts))
	}
	b.files = append(b.files, b.parts...)
	return nil
}

// complete adds what stands around the groups' files: the style sheet and, as
// the last, the index. A site without public content gets no files at all.
func (b *builder) complete() error {
	if len(b.files) == 0 {
		return nil
	}
	if b.plan.options.Stylesheet {
		if err := b.write(stylesheetName, stylesheet, false); err != nil {
			return err
		}
	}
	if len(b.files) == 1+b.extras() && !b.plan.botble {
		b.files[0].name = indexName // one file needs no index
		b.files[0], b.files[len(b.files)-1] = b.files[len(b.files)-1], b.files[0]
		return nil
	}
	return b.index()
}

// published lists the files in the order in which they are put into place,
// each compressed copy before its original, the index last.
func (b *builder) published() []file {
	if !b.plan.options.Gzip {
		return b.files
	}
	var list []file
	for _, f := range b.files {
		if f.name != stylesheetName {
			list = append(list, file{name: f.name + ".gz", staged: f.staged + ".gz"})
		}
		list = append(list, f)
	}
	return list
}

func (b *builder) extras() int {
	if b.plan.options.Stylesheet {
		return 1
	}
	return 0
}
