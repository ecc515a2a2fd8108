package manual

import (
	"cmp"
	"html/template"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"
)

// The bounds of a search.
const (
	maxWords   = 8
	maxHits    = 30
	excerptLen = 220
)

// section is a heading and what stands between it and the next.
type section struct {
	chapter *Chapter
	heading Heading
	// parts are its paragraphs, items, rows and blocks of code.
	parts []part
	title string // of the heading, in lower case
}

// part is a piece of text that is shown as a whole.
type part struct{ text, lower, row string }

// Hit is a place that a search found.
type Hit struct {
	Chapter *Chapter
	Heading string // "" is the chapter's beginning
	Place   string // "NAME#ANCHOR"
	Excerpt template.HTML
	score   int
}

// index adds a chapter to what is searched.
func (b *Book) index(c *Chapter, tree ast.Node, source []byte) {
	b.sections = append(b.sections, section{chapter: c, title: strings.ToLower(c.Title)})
	headings := c.Headings
	first := true
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		at := &b.sections[len(b.sections)-1]
		switch n := n.(type) {
		case *ast.Heading:
			if first {
				first = false
				return ast.WalkSkipChildren, nil
			}
			b.sections = append(b.sections, section{chapter: c, heading: headings[0],
				title: strings.ToLower(headings[0].Text)})
			headings = headings[1:]
		case *ast.Paragraph, *ast.TextBlock:
			at.add(plain(n, source), "")
		case *extension.TableRow:
			var cells []string
			for cell := n.FirstChild(); cell != nil; cell = cell.NextSibling() {
				cells = append(cells, plain(cell, source))
			}
			id, _ := n.AttributeString("id")
			row, _ := id.([]byte)
			at.add(strings.Join(cells, " · "), string(row))
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			at.add(string(n.Lines().Value(source)), "")
		default:
			return ast.WalkContinue, nil
		}
		return ast.WalkSkipChildren, nil
	})
}

func (s *section) add(text, row string) {
	text = strings.Join(strings.Fields(text), " ")
	s.parts = append(s.parts, part{text, strings.ToLower(text), row})
}

// Search finds the sections that have every word of a query, best first.
func (b *Book) Search(query string) []Hit {
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"'`", r)
	})
	words = words[:min(len(words), maxWords)]
	if len(words) == 0 {
		return nil
	}
	var hits []Hit
	for i := range b.sections {
		if h, found := b.sections[i].match(words); found {
			hits = append(hits, h)
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.score, a.score) })
	return hits[:min(len(hits), maxHits)]
}

// The weights of where a word stands.
const (
	inTitle = 40 // of the section
	inName  = 15 // of the chapter
	inRow   = 60 // it is the name of a row
	atStart = 4  // more where the word begins there
	record  = -25
)

// match says whether a section has all words, and how well it fits.
func (s *section) match(words []string) (h Hit, found bool) {
	h = Hit{Chapter: s.chapter, Heading: s.heading.Text, Place: s.chapter.Name}
	if s.heading.ID != "" {
		h.Place += "#" + s.heading.ID
	}
	missing := map[string]bool{}
	h.score = s.titles(words, missing)
	best, bestScore := part{}, 0
	if len(s.parts) > 0 {
		best = s.parts[0]
	}
	for _, p := range s.parts {
		if score := p.fits(words, missing); score > bestScore {
			best, bestScore = p, score
		}
	}
	if len(missing) > 0 {
		return h, false
	}
	h.score += bestScore
	if strings.HasPrefix(s.chapter.Name, "adr/") {
		h.score += record
	}
	h.Excerpt = excerpt(best, words)
	if bestScore > 0 && best.row != "" {
		h.Place = s.chapter.Name + "#" + best.row
	}
	return h, true
}

// titles is how well the titles of a section and its chapter fit; words that are in
// neither are missing until a part has them.
func (s *section) titles(words []string, missing map[string]bool) (score int) {
	chapter, titled := strings.ToLower(s.chapter.Title), 0
	for _, w := range words {
		title, name := strings.Contains(s.title, w), strings.Contains(chapter, w)
		if title {
			score += inTitle
			titled++
		}
		if name {
			score += inName
		}
		if !title && !name {
			missing[w] = true
		}
	}
	if titled == len(words) {
		score += inTitle
	}
	return score
}

// fits is how well a part fits; the words that it has are missing no more.
func (p part) fits(words []string, missing map[string]bool) (score int) {
	for _, w := range words {
		n := strings.Count(p.lower, w)
		if n == 0 {
			continue
		}
		delete(missing, w)
		score += 10 + min(n, 3)
		if begins(p.lower, w) {
			score += atStart
		}
	}
	if p.row != "" && len(words) == 1 && words[0] == strings.ToLower(p.row) {
		score += inRow
	}
	return score
}

// begins says whether a word of the text begins with w.
func begins(text, w string) bool {
	i := strings.Index(text, w)
	return i == 0 || i > 0 && !isWord(rune(text[i-1]))
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// excerpt is the piece of a part around its first word of a query, the words marked.
func excerpt(p part, words []string) template.HTML {
	from := len(p.lower)
	for _, w := range words {
		if i := strings.Index(p.lower, w); i >= 0 {
			from = min(from, i)
		}
	}
	if from == len(p.lower) {
		from = 0
	}
	text, lower := p.text, p.lower
	if len(text) != len(lower) { // a letter whose small form is longer
		text = lower
	}
	from = max(from-excerptLen/3, 0)
	for from > 0 && text[from-1] != ' ' {
		from--
	}
	to := min(from+excerptLen, len(text))
	for to < len(text) && text[to] != ' ' {
		to++
	}
	marked := mark(text[from:to], lower[from:to], words)
	if from > 0 {
		marked = "… " + marked
	}
	if to < len(text) {
		marked += " …"
	}
	return template.HTML(marked)
}

// mark escapes a text for HTML, and marks words in it.
func mark(text, lower string, words []string) string {
	var out strings.Builder
	for at := 0; at < len(text); {
		next, length := len(text), 0
		for _, w := range words {
			if i := strings.Index(lower[at:], w); i >= 0 && (at+i < next || at+i == next && len(w) > length) {
				next, length = at+i, len(w)
			}
		}
		out.WriteString(template.HTMLEscapeString(text[at:next]))
		if length > 0 {
			out.WriteString("<mark>" + template.HTMLEscapeString(text[next:next+length]) + "</mark>")
		}
		at = next + length
	}
	return out.String()
}
