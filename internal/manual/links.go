package manual

import (
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// linker leads the links of a document to where the manual has what they name.
type linker struct {
	book   *Book
	folder string // of the document, "." or "adr"
}

// Transform implements parser.ASTTransformer.
func (l *linker) Transform(tree *ast.Document, reader text.Reader, _ parser.Context) {
	var source []*ast.Link // links into the source of the program
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			to, there := l.to(string(n.Destination))
			if !there {
				source = append(source, n)
				return ast.WalkContinue, nil
			}
			n.Destination = []byte(to)
			if strings.Contains(to, "://") {
				n.SetAttributeString("rel", []byte("noopener noreferrer"))
			}
		case *ast.Image:
			n.Destination = []byte(l.book.root + "/" + path.Join(l.folder, string(n.Destination)))
			n.SetAttributeString("loading", []byte("lazy"))
		}
		return ast.WalkContinue, nil
	})
	for _, n := range source {
		file, _, _ := strings.Cut(string(n.Destination), "#")
		name(n, path.Join("docs", l.folder, file), reader.Source())
	}
}

// to is where a link leads; there is false for a file that the manual does not have.
func (l *linker) to(target string) (to string, there bool) {
	if strings.HasPrefix(target, "#") || strings.Contains(target, ":") {
		return target, true
	}
	file, anchor, inside := strings.Cut(target, "#")
	chapter, document := strings.CutSuffix(path.Join(l.folder, file), ".md")
	if !document || strings.HasPrefix(chapter, "..") {
		return "", false
	}
	if to = l.book.root + "/" + chapter; inside {
		to += "#" + anchor
	}
	return to, true
}

// name replaces a link by its text and the path that it leads to in the source.
func name(link *ast.Link, file string, source []byte) {
	parent, said := link.Parent(), plain(link, source)
	var last ast.Node = link
	for child := link.FirstChild(); child != nil; child = link.FirstChild() {
		link.RemoveChild(link, child)
		parent.InsertAfter(parent, last, child)
		last = child
	}
	if said != file {
		parent.InsertAfter(parent, last, ast.NewString([]byte(" ("+file+")")))
	}
	parent.RemoveChild(parent, link)
}
