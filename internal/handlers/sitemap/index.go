package sitemap

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"

	xmlsitemap "github.com/snabb/sitemap"
)

// indexName is the file that search engines are notified of.
const indexName = "sitemap.xml"

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
	staged := "part-" + itoa(b.nextID)
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
