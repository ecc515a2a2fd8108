package sitemap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	xmlsitemap "github.com/snabb/sitemap"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap/rootfile"
)

// builder writes the files of one run into a staging folder.
type builder struct {
	plan    *plan
	stage   *os.Root
	seal    *sealer
	out     *output
	texts   []rootfile.Section // of llms.txt, one a group
	parts   []file             // of the group that is being written
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
	b.parts, b.texts = nil, append(b.texts, rootfile.Section{Name: g.model.Name})
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
	b.texts[len(b.texts)-1].Add(e.loc, e.title) // the entry is good until the next one
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

// index writes the list of files, which is always the last to be published.
func (b *builder) index() error {
	list := xmlsitemap.NewSitemapIndex()
	for i := range b.files {
		if b.files[i].urls == 0 {
			continue
		}
		u := &xmlsitemap.URL{Loc: b.plan.links.Root + "/" + b.files[i].name}
		if t := b.files[i].modified; !t.IsZero() {
			u.LastMod = &t
		}
		list.Add(u)
	}
	var text bytes.Buffer
	if _, err := list.WriteTo(&text); err != nil {
		return fmt.Errorf("writing the sitemap's index: %w", err)
	}
	head, body, _ := bytes.Cut(text.Bytes(), []byte("\n"))
	whole := slices.Concat(head, []byte("\n"+preamble(b.plan.stylesheet())), body)
	return b.write(indexName, whole, b.plan.options.Gzip)
}

// write stages a whole small file.
func (b *builder) write(name string, content []byte, zip bool) error {
	b.nextID++
	staged := "part-" + strconv.Itoa(b.nextID)
	f, err := b.stage.OpenFile(staged, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if _, err := f.Write(content); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", name, err), f.Close())
	}
	b.files = append(b.files, file{name: name, staged: staged, bytes: int64(len(content))})
	return b.seal.take(f, staged, zip)
}
