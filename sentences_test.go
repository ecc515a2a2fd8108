package cmsjobs_test

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"go.yaml.in/yaml/v3"

	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// The most words of a sentence. People read the texts of pages at a glance; documents and
// help texts name more things in full.
const (
	pageWords     = 25
	documentWords = 30
)

// passage is a text that stands for itself: a paragraph, a list item, a table cell, one text of a page.
type passage struct {
	where, text string
}

// TestSentencesAreShort holds the length of sentences on pages, in the help of commands and in
// documents: docs/glossary.md says about 20 words, this is where it becomes hard to read.
func TestSentencesAreShort(t *testing.T) {
	for name, kind := range map[string]struct {
		passages       []passage
		limit, atLeast int
	}{
		"pages":     {pageTexts(t), pageWords, 1000},
		"commands":  {helpTexts(read(t, "internal/cli/testdata/help.golden")), documentWords, 500},
		"documents": {documentTexts(documents(t)), documentWords, 3000},
	} {
		if len(kind.passages) < kind.atLeast {
			t.Errorf("%s: only %d texts were found", name, len(kind.passages))
		}
		for _, p := range kind.passages {
			for _, s := range longSentences(p.text, kind.limit) {
				t.Errorf("%s: %d words, at most %d: %s", p.where, countWords(s), kind.limit, s)
			}
		}
	}
}

// TestLongSentencesAreFound holds the search itself, in each kind of text.
func TestLongSentencesAreFound(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("word ", documentWords+1))
	short := strings.TrimSpace(strings.Repeat("word ", documentWords))
	for name, form := range map[string]string{
		"paragraph":          "# Page\n\n%s.\n",
		"wrapped":            "One.\n%s\nword.\n",
		"heading":            "# %s\n",
		"list":               "- one\n- %s\n  1. two\n",
		"nested list":        "- one\n  1. %s\n",
		"quotation":          "> %s\n",
		"cell":               "| a | b |\n|---|---|\n| 1 | %s |\n",
		"with code":          "`a` %s\n",
		"emphasis and links": "**Bold** [%s](target.md).\n",
		"after a section":    "<!-- a: begin (make a writes this) -->\n\none\n\n<!-- a: end -->\n\n%s\n",
		"abbreviation":       "word, e.g. %s\n",
		"figures":            "1.5 and 2:30 %s\n",
	} {
		found := documentTexts(map[string]string{"a.md": fmt.Sprintf(form, long)})
		if len(allLong(found, documentWords)) != 1 {
			t.Errorf("%s: no long sentence found in %q", name, found)
		}
	}
	for name, form := range map[string]string{
		"two sentences":   "%s. %[1]s! (%[1]s?) %[1]s: %[1]s; %[1]s · %[1]s.\n",
		"code":            "One:\n\n```sh\n%s %[1]s\n```\n",
		"inline code":     "One `%s %[1]s` two.\n",
		"link's target":   "One [two](<%s %[1]s>).\n",
		"generated":       "<!-- a: begin (make a writes this) -->\n\n%s %[1]s\n\n<!-- a: end -->\n",
		"comment":         "<!-- %s %[1]s -->\n",
		"two cells":       "| a | b |\n|---|---|\n| %s | %[1]s |\n",
		"two items":       "- %s\n- %[1]s\n",
		"two paragraphs":  "%s\n\n%[1]s\n",
		"dashes and such": "%s – & → … -\n",
	} {
		found := allLong(documentTexts(map[string]string{"a.md": fmt.Sprintf(form, short)}), documentWords)
		if found != nil {
			t.Errorf("%s: %q is not long", name, found)
		}
	}
	for name, found := range map[string][]passage{
		"help":           helpTexts("=== a\nOne.\n\n" + long + "\n\nUsage:\n  a b\n"),
		"flag":           helpTexts("=== a\nOne.\n\nUsage:\n  a b\n\nFlags:\n      --all   " + long + "\n"),
		"page":           yamlTexts(t, "en.yaml", "a.b: \""+long+"\"", everyValue),
		"plural":         yamlTexts(t, "en.yaml", "a.b: \"{a|"+long+"}\"", everyValue),
		"type":           yamlTexts(t, "texts.yaml", "a.b:\n  about:\n    en: "+long+"\n    vi: một", englishValue),
		"finding":        yamlTexts(t, "vi.yaml", "\""+long+"\": một", everyKey),
		"broken off":     {{"", "one. " + long}},
		"across a break": {{"", strings.ReplaceAll(long, " ", "\n")}},
	} {
		if len(allLong(found, documentWords)) != 1 {
			t.Errorf("%s: no long sentence found in %q", name, found)
		}
	}
}

func allLong(passages []passage, limit int) (long []string) {
	for _, p := range passages {
		long = append(long, longSentences(p.text, limit)...)
	}
	return long
}

var (
	// sentenceEnd is a full stop, colon or semicolon with what closes around it, or the dot of a list.
	sentenceEnd = regexp.MustCompile(`(?:[.!?:;…]["”’»)\]*]*|\s·)\s+`)
	// abbreviated are full stops that end no sentence.
	abbreviated = regexp.MustCompile(`\b(?:e\.g|i\.e|etc|vs|cf|approx)\.$`)
	// codeText is code in a text that is no document.
	codeText = regexp.MustCompile("`[^`]*`")
	// pluralForms is {job|jobs}: the last form counts.
	pluralForms = regexp.MustCompile(`\{(?:[^{}|]*\|)+([^{}|]*)\}`)
)

func longSentences(text string, limit int) (long []string) {
	text = codeText.ReplaceAllString(pluralForms.ReplaceAllString(text, "$1"), "`code`")
	text = strings.Join(strings.Fields(text), " ")
	from := 0
	take := func(to int) {
		if s := strings.TrimSpace(text[from:to]); countWords(s) > limit {
			long = append(long, s)
		}
		from = to
	}
	for _, end := range sentenceEnd.FindAllStringIndex(text, -1) {
		if !abbreviated.MatchString(text[from : end[0]+1]) {
			take(end[1])
		}
	}
	take(len(text))
	return long
}

func countWords(sentence string) (n int) {
	for _, w := range strings.Fields(sentence) {
		if strings.ContainsFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}

// pageTexts are the English texts of pages, and those of types, findings, conditions and figures
// that pages show.
func pageTexts(t *testing.T) (all []passage) {
	t.Helper()
	for pattern, which := range map[string]chosen{
		"templates/*/texts/en.yaml":        everyValue,
		"internal/web/feature/*/en.yaml":   everyValue,
		"internal/schema/texts/texts.yaml": englishValue,
		"internal/doctor/vi.yaml":          everyKey,
		"internal/setup/vi.yaml":           everyKey,
	} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("no file is %s: %v", pattern, err)
		}
		for _, path := range paths {
			all = append(all, yamlTexts(t, path, read(t, path), which)...)
		}
	}
	for _, c := range conditions.List() {
		for _, text := range []string{c.Title, c.Measured, c.Fix} {
			all = append(all, passage{"condition " + c.Name, text})
		}
	}
	for _, f := range jobs.Figures() {
		all = append(all, passage{"figure " + f.Name, f.Counts}, passage{"figure " + f.Name, f.Shown})
	}
	return all
}

// chosen says whether a key or value of a YAML file is an English text.
type chosen func(parent string, isKey bool) bool

func everyValue(_ string, isKey bool) bool        { return !isKey }
func everyKey(_ string, isKey bool) bool          { return isKey } // of a file from English to another language
func englishValue(parent string, isKey bool) bool { return !isKey && parent == "en" }

func yamlTexts(t *testing.T, path, source string, which chosen) (all []passage) {
	t.Helper()
	var file yaml.Node
	if err := yaml.Unmarshal([]byte(source), &file); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var visit func(n *yaml.Node, parent string, isKey bool)
	visit = func(n *yaml.Node, parent string, isKey bool) {
		if n.Kind == yaml.ScalarNode && which(parent, isKey) {
			all = append(all, passage{fmt.Sprintf("%s:%d", path, n.Line), n.Value})
		}
		for i, child := range n.Content {
			switch {
			case n.Kind == yaml.MappingNode && i%2 == 0:
				visit(child, parent, true)
			case n.Kind == yaml.MappingNode:
				visit(child, n.Content[i-1].Value, false)
			default:
				visit(child, parent, false)
			}
		}
	}
	visit(&file, "", false)
	return all
}

// helpTexts are the paragraphs of the help of all commands, and the last column of its lists.
func helpTexts(help string) (all []passage) {
	command := ""
	for paragraph := range strings.SplitSeq(help, "\n\n") {
		list := false
		var prose []string
		for line := range strings.Lines(paragraph) {
			if name, begins := strings.CutPrefix(line, "=== "); begins {
				command = strings.TrimSpace(name)
			} else if columns := helpColumn.Split(strings.TrimSpace(line), -1); line[0] == ' ' || list {
				all = append(all, passage{command, columns[len(columns)-1]})
			} else if list = helpList.MatchString(line); !list {
				prose = append(prose, line)
			}
		}
		all = append(all, passage{command, strings.Join(prose, "")})
	}
	return all
}

var (
	helpColumn = regexp.MustCompile(`\s{2,}`)
	helpList   = regexp.MustCompile(`^[A-Z][A-Za-z ]*:\s*$`)
	// madeSection is what a measurement writes into a page: figures, no sentences.
	madeSection = regexp.MustCompile(`(?s)<!-- \w+: begin .*?<!-- \w+: end -->`)
)

// documentTexts are the paragraphs, headings, items and cells of Markdown pages by their names.
func documentTexts(pages map[string]string) (all []passage) {
	parser := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
	for _, path := range slices.Sorted(maps.Keys(pages)) {
		source := []byte(madeSection.ReplaceAllStringFunc(pages[path], func(section string) string {
			return strings.Repeat("\n", strings.Count(section, "\n"))
		}))
		_ = ast.Walk(parser.Parse(text.NewReader(source)), func(n ast.Node, enter bool) (ast.WalkStatus, error) {
			switch n.Kind() {
			case ast.KindParagraph, ast.KindTextBlock, ast.KindHeading, extast.KindTableCell:
			default:
				return ast.WalkContinue, nil
			}
			if enter && n.Lines().Len() > 0 {
				line := 1 + bytes.Count(source[:n.Lines().At(0).Start], []byte("\n"))
				all = append(all, passage{fmt.Sprintf("%s:%d", path, line), plainText(n, source)})
			}
			return ast.WalkSkipChildren, nil
		})
	}
	return all
}

// plainText is what a reader sees of a paragraph, with `code` for each piece of code.
func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, enter bool) (ast.WalkStatus, error) {
		if !enter {
			return ast.WalkContinue, nil
		}
		switch x := n.(type) {
		case *ast.CodeSpan:
			b.WriteString("`code`")
			return ast.WalkSkipChildren, nil
		case *ast.AutoLink:
			b.Write(x.Label(source))
		case *ast.Text:
			b.Write(x.Segment.Value(source))
			if x.SoftLineBreak() || x.HardLineBreak() {
				b.WriteByte('\n')
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}
