package mail

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// textOf is a readable plain text of an HTML body: lines where the HTML has
// blocks, list dashes, the addresses of links.
func textOf(body string) string {
	var b strings.Builder
	tokens := html.NewTokenizer(strings.NewReader(body))
	hidden, link := 0, ""
	for {
		switch kind := tokens.Next(); kind {
		case html.ErrorToken: // the end: a tokenizer of a string has no other error
			return tidy(b.String())
		case html.TextToken:
			if hidden == 0 {
				b.WriteString(blanks.ReplaceAllString(string(tokens.Text()), " "))
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			t := tokens.Token()
			switch t.DataAtom {
			case atom.Style, atom.Script, atom.Head, atom.Title:
				if kind == html.StartTagToken {
					hidden++
				}
			case atom.A:
				link = attribute(t, "href")
			case atom.Img:
				b.WriteString(attribute(t, "alt"))
			case atom.Li:
				b.WriteString("\n- ")
			case atom.Td, atom.Th:
				b.WriteString(" ")
			default:
				b.WriteString(breakFor(t.DataAtom))
			}
		case html.EndTagToken:
			t := tokens.Token()
			switch t.DataAtom {
			case atom.Style, atom.Script, atom.Head, atom.Title:
				hidden = max(hidden-1, 0)
			case atom.A:
				if strings.HasPrefix(link, "http") && !strings.HasSuffix(strings.TrimSpace(b.String()), link) {
					b.WriteString(" (" + link + ")")
				}
				link = ""
			default:
				b.WriteString(breakFor(t.DataAtom))
			}
		}
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

func attribute(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
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
