package manual

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Book is the manual. It does not change after Read.
type Book struct {
	root     string
	chapters map[string]*Chapter
	names    []string
	sections []section
}

// Chapter is one document.
type Chapter struct {
	Name     string // "backup", "adr/0019-our-own-dumper": its path below the manual
	Title    string // its first heading
	HTML     template.HTML
	Headings []Heading // without the first
	anchors  map[string]bool
}

// Heading is one of a chapter.
type Heading struct {
	Level    int
	ID, Text string
}

// Read renders all documents of a folder; root is the address that the manual has.
func Read(files fs.FS, root string) (*Book, error) {
	b := &Book{root: root, chapters: map[string]*Chapter{}}
	for _, pattern := range []string{"*.md", "adr/*.md"} {
		found, err := fs.Glob(files, pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			b.names = append(b.names, strings.TrimSuffix(file, ".md"))
		}
	}
	for _, name := range b.names {
		source, err := fs.ReadFile(files, name+".md")
		if err != nil {
			return nil, fmt.Errorf("reading the chapter %s: %w", name, err)
		}
		if err := b.read(name, source); err != nil {
			return nil, fmt.Errorf("rendering the chapter %s: %w", name, err)
		}
	}
	return b, nil
}

// Chapter is the one with a name; nil is none.
func (b *Book) Chapter(name string) *Chapter { return b.chapters[name] }

// Names are those of all chapters, decisions last.
func (b *Book) Names() []string { return b.names }

// Has says whether "NAME" or "NAME#ANCHOR" is there.
func (b *Book) Has(place string) bool {
	name, anchor, inside := strings.Cut(place, "#")
	c := b.chapters[name]
	return c != nil && (!inside || c.anchors[anchor])
}

// read renders one document.
func (b *Book) read(name string, source []byte) error {
	c := &Chapter{Name: name, anchors: map[string]bool{}}
	page := goldmark.New(goldmark.WithExtensions(
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
		goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithASTTransformers(
			util.Prioritized(&linker{book: b, folder: path.Dir(name)}, 100),
			util.Prioritized(rowNames{}, 200))),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(frames{}, 100))))
	names := parser.NewContext(parser.WithIDs(&anchors{seen: c.anchors}))
	tree := page.Parser().Parse(text.NewReader(source), parser.WithContext(names))
	c.Title = name
	err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		h, is := n.(*ast.Heading)
		if !is || !entering {
			return ast.WalkContinue, nil
		}
		id, _ := n.AttributeString("id")
		anchor, _ := id.([]byte)
		if words := plain(n, source); h.Level == 1 && c.Title == name {
			c.Title = words
		} else {
			c.Headings = append(c.Headings, Heading{h.Level, string(anchor), words})
		}
		return ast.WalkSkipChildren, nil
	})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := page.Renderer().Render(&out, source, tree); err != nil {
		return err
	}
	c.HTML = template.HTML(out.String())
	b.chapters[name] = c
	b.index(c, tree, source)
	return nil
}
