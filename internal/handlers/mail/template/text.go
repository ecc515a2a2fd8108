package template

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/cmsjobs/cmsjobs/internal/markup"
)

// PlainText is a readable plain text of an HTML body: lines where the HTML has
// blocks, list dashes, the addresses of links.
func PlainText(body string) string {
	var w textWriter
	tokens := html.NewTokenizer(strings.NewReader(body))
	for {
		switch kind := tokens.Next(); kind {
		case html.ErrorToken: // the end: a tokenizer of a string has no other error
			return tidy(w.text.String())
		case html.TextToken:
			if w.hidden == 0 {
				w.text.WriteString(blanks.ReplaceAllString(string(tokens.Text()), " "))
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			w.start(tokens.Token(), kind == html.SelfClosingTagToken)
		case html.EndTagToken:
			w.end(tokens.Token())
		}
	}
}

// textWriter puts the text of an HTML body together.
type textWriter struct {
	text   strings.Builder
	hidden int    // how many elements without readable text are open
	link   string // the address of the link that is open
}

func (w *textWriter) start(t html.Token, closed bool) {
	switch t.DataAtom {
	case atom.Style, atom.Script, atom.Head, atom.Title:
		if !closed {
			w.hidden++
		}
	case atom.A:
		w.link = markup.Attribute(t, "href")
	case atom.Img:
		w.text.WriteString(markup.Attribute(t, "alt"))
	case atom.Li:
		w.text.WriteString("\n- ")
	case atom.Td, atom.Th:
		w.text.WriteString(" ")
	default:
		w.text.WriteString(breakFor(t.DataAtom))
	}
}

func (w *textWriter) end(t html.Token) {
	switch t.DataAtom {
	case atom.Style, atom.Script, atom.Head, atom.Title:
		w.hidden = max(w.hidden-1, 0)
	case atom.A:
		if strings.HasPrefix(w.link, "http") && !strings.HasSuffix(strings.TrimSpace(w.text.String()), w.link) {
			w.text.WriteString(" (" + w.link + ")")
		}
		w.link = ""
	default:
		w.text.WriteString(breakFor(t.DataAtom))
	}
}

func breakFor(tag atom.Atom) string {
	switch tag {
	case atom.Br, atom.Div, atom.Tr, atom.Table, atom.Hr, atom.Ul, atom.Ol:
		return "\n"
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Blockquote:
		return "\n\n"
	}
	return ""
}

var (
	blanks     = regexp.MustCompile(`[ \t\r\n]+`)
	manyBlanks = regexp.MustCompile(`[ \t]{2,}`)
	manyLines  = regexp.MustCompile(`\n{3,}`)
	edges      = regexp.MustCompile(`[ \t]*\n[ \t]*`)
)

func tidy(text string) string {
	text = manyBlanks.ReplaceAllString(text, " ")
	text = edges.ReplaceAllString(text, "\n")
	return strings.TrimSpace(manyLines.ReplaceAllString(text, "\n\n")) + "\n"
}
