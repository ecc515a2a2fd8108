package manual

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// anchors names headings as code hosts do, so that a link to one leads there on
// both.
type anchors struct{ seen map[string]bool }

// Generate implements parser.IDs.
func (a *anchors) Generate(heading []byte, _ ast.NodeKind) []byte {
	name := Anchor(string(heading))
	id := name
	for n := 1; a.seen[id]; n++ {
		id = fmt.Sprintf("%s-%d", name, n)
	}
	a.seen[id] = true
	return []byte(id)
}

// Put implements parser.IDs.
func (a *anchors) Put(id []byte) { a.seen[string(id)] = true }

// Anchor is the name that a heading gets: lower case, blanks as hyphens, and of the
// other signs only hyphens and underscores.
func Anchor(heading string) string {
	var out strings.Builder
	for _, r := range strings.TrimSpace(strings.ToLower(heading)) {
		switch {
		case r == ' ':
			out.WriteByte('-')
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			out.WriteRune(r)
		}
	}
	return out.String()
}

// rowNames gives a row of a table whose first cell is one word in code font that
// word as its anchor: a setting, a condition, a type.
type rowNames struct{}

// Transform implements parser.ASTTransformer.
func (rowNames) Transform(tree *ast.Document, reader text.Reader, context parser.Context) {
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if row, is := n.(*extension.TableRow); is && entering {
			word := onlyCode(row.FirstChild(), reader.Source())
			if names, ours := context.IDs().(*anchors); ours && word != "" && !names.seen[word] {
				names.seen[word] = true
				row.SetAttributeString("id", []byte(word))
			}
		}
		return ast.WalkContinue, nil
	})
}

// onlyCode is a cell's text where all of it is one word in code font.
func onlyCode(cell ast.Node, source []byte) string {
	if cell == nil || cell.ChildCount() != 1 || cell.FirstChild().Kind() != ast.KindCodeSpan {
		return ""
	}
	word := plain(cell, source)
	if strings.ContainsAny(word, " /{") {
		return ""
	}
	return word
}

// plain is the text of a node, without marks.
func plain(n ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			out.Write(n.Segment.Value(source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				out.WriteByte(' ')
			}
		case *ast.String:
			out.Write(n.Value)
		case *ast.AutoLink:
			out.Write(n.Label(source))
		}
		return ast.WalkContinue, nil
	})
	return out.String()
}
