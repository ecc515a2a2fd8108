package cmsjobs_test

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	resyntax "regexp/syntax"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// TestRetiredWords finds words that docs/glossary.md has replaced by a term of
// the field: in identifiers, comments and texts of Go, in SQL, templates,
// settings, scripts and documents.
func TestRetiredWords(t *testing.T) {
	t.Parallel()
	used := map[int]bool{}
	waiting := map[string]int{}
	for _, f := range wordFiles(t) {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range retiredWords(t, f, source) {
			if i := exceptionFor(found); i >= 0 {
				used[i] = true
			} else if folder := notYetFolder(found); folder != "" {
				waiting[folder]++
			} else {
				t.Errorf("%s:%d: %q is retired, write %q: %s", f, found.line, found.word, found.standard, found.text)
			}
		}
	}
	for i, e := range wordExceptions {
		if !used[i] {
			t.Errorf("the exception for %q in %s matches nothing: remove it", e.word, e.path)
		}
	}
	for folder, n := range waiting {
		t.Logf("%s: %d to replace", folder, n)
	}
}

// TestRetiredWordsAreFound holds the search itself: each place where a word may stand.
func TestRetiredWordsAreFound(t *testing.T) {
	for name, source := range map[string]string{
		"identifier.go": "package a\n\nfunc twinOf() {}\n",
		"field.go":      "package a\n\ntype b struct{ JobTwins int }\n",
		"comment.go":    "package a\n\n// b holds the twins.\nvar b int\n",
		"string.go":     "package a\n\nvar b = \"two twins\"\n",
		"tag.go":        "package a\n\ntype b struct {\n\tType string `json:\"kind\"`\n}\n",
		"attribute.go":  "package a\n\nfunc b() { slog.Info(\"done\", \"kind\", 1) }\n",
		"table.sql":     "CREATE TABLE twins (id INT);",
		"page.html":     "<p>two twins</p>",
		"api.json":      `{"properties": {"kind": {"type": "string"}}}`,
		"settings.yaml": "kind: mail.send\n",
		"page.md":       "Two twins.\n",
		"plural.go":     "package a\n\nvar b = \"%d job(s)\"\n",
	} {
		if len(retiredWords(t, name, []byte(source))) == 0 {
			t.Errorf("nothing found in %s: %s", name, source)
		}
	}
	for name, source := range map[string]string{
		"generic.go":  "package a\n\nvar b = jobs.Kind[int]{}\n",
		"foreign.go":  "package a\n\nvar b = math.Floor(1.5)\n",
		"sentence.go": "package a\n\n// b is kind to its callers, in every state.\nvar b int\n",
	} {
		if found := retiredWords(t, name, []byte(source)); len(found) > 0 {
			t.Errorf("%s: %q is no retired word there", name, found[0].word)
		}
	}
}

type foundWord struct {
	path, word, standard, text string
	line                       int
}

// wordFiles are the files of all kinds that people or programs read words in.
func wordFiles(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard").
		Output()
	if err != nil {
		t.Skip("no git checkout: ", err)
	}
	var files []string
	for _, f := range strings.Fields(string(out)) {
		if _, err := os.Stat(f); err != nil || strings.HasPrefix(filepath.Base(f), "banned_words") ||
			strings.Contains("/"+f, "/testdata/") || strings.Contains(f, "node_modules/") ||
			strings.HasSuffix(f, ".min.js") {
			continue
		}
		switch filepath.Ext(f) {
		case ".go", ".sql", ".md", ".html", ".yaml", ".yml", ".json", ".sh", ".css", ".js", ".ts", ".php", ".service",
			".conf":
			files = append(files, f)
		}
	}
	return files
}

func retiredWords(t *testing.T, path string, source []byte) []foundWord {
	t.Helper()
	words := candidates(source)
	if filepath.Ext(path) == ".go" {
		return retiredInGo(t, path, source, words)
	}
	var all []foundWord
	lines := bufio.NewScanner(bytes.NewReader(source))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		text := lines.Text()
		all = append(all, inText(path, n, text, words)...)
		if filepath.Ext(path) == ".md" {
			continue
		}
		for _, m := range dataKey.FindAllStringSubmatch(text, -1) {
			all = append(all, inKey(path, n, m[1]+m[2], text)...)
		}
	}
	return all
}

// candidates are the words that a file may hold at all: most files hold hardly any, and
// a look at each line for each word takes a minute under the race detector.
func candidates(source []byte) (words []retiredWord) {
	lower := strings.ToLower(string(source))
	for _, r := range retiredTable {
		if r.mayHold(lower) {
			words = append(words, r)
		}
	}
	return words
}

// dataKey is a key of JSON or YAML.
var dataKey = regexp.MustCompile(`"(\w+)"\s*:|(?:^|[{,-])\s*(\w+):(?:\s|$)`)

func retiredInGo(t *testing.T, path string, source []byte, words []retiredWord) []foundWord {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var all []foundWord
	lineOf := func(p token.Pos) int { return set.Position(p).Line }
	for _, group := range file.Comments {
		for _, c := range group.List {
			for i, text := range strings.Split(c.Text, "\n") {
				all = append(all, inText(path, lineOf(c.Pos())+i, text, words)...)
			}
		}
	}
	imported := map[string]bool{}
	for _, i := range file.Imports {
		if name := strings.Trim(i.Path.Value, `"`); !strings.HasPrefix(name, "github.com/cmsjobs/") {
			imported[filepath.Base(name)] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.SelectorExpr:
			if id, ok := x.X.(*ast.Ident); ok && imported[id.Name] {
				return false
			}
		case *ast.Ident:
			all = append(all, inIdentifier(path, lineOf(x.Pos()), x.Name, words)...)
		case *ast.BasicLit:
			if x.Kind != token.STRING {
				break
			}
			for i, text := range strings.Split(strings.Trim(x.Value, "\"`"), "\n") {
				all = append(all, inText(path, lineOf(x.Pos())+i, text, words)...)
			}
			all = append(all, inKey(path, lineOf(x.Pos()), strings.Trim(x.Value, "\"`"), x.Value)...)
			for _, m := range tagKey.FindAllStringSubmatch(x.Value, -1) {
				all = append(all, inKey(path, lineOf(x.Pos()), m[1]+m[2], x.Value)...)
			}
		}
		return true
	})
	return all
}

// tagKey is a name in a struct's tag, or a key in JSON that stands in a text.
var tagKey = regexp.MustCompile(`(?:json|koanf|db|query|form):"(\w+)|(\w+)":`)

// mayHold says that a text in lower case may hold the word: it has one of the word's
// stems. A regular expression for each line takes minutes under the race detector.
func (w retiredWord) mayHold(lower string) bool {
	return w.stems == nil || slices.ContainsFunc(w.stems, func(stem string) bool { return strings.Contains(lower, stem) })
}

// stemsOf lists texts of which every match has one; nil where none is long enough to tell.
func stemsOf(re *resyntax.Regexp) (stems []string) {
	switch re.Op {
	case resyntax.OpLiteral:
		if len(re.Rune) >= 2 {
			return []string{strings.ToLower(string(re.Rune))}
		}
	case resyntax.OpCapture, resyntax.OpPlus:
		return stemsOf(re.Sub[0])
	case resyntax.OpConcat:
		for _, part := range re.Sub {
			if found := stemsOf(part); shortest(found) > shortest(stems) {
				stems = found
			}
		}
	case resyntax.OpAlternate:
		for _, part := range re.Sub {
			found := stemsOf(part)
			if found == nil {
				return nil
			}
			stems = append(stems, found...)
		}
	}
	return stems
}

func shortest(list []string) int {
	if len(list) == 0 {
		return 0
	}
	return len(slices.MinFunc(list, func(a, b string) int { return len(a) - len(b) }))
}

func inText(path string, line int, text string, words []retiredWord) []foundWord {
	lower := strings.ToLower(text)
	var all []foundWord
	for _, r := range words {
		if !r.mayHold(lower) {
			continue
		}
		for _, word := range r.inText.FindAllString(text, -1) {
			all = append(all, foundWord{path, strings.ToLower(word), r.standard, strings.TrimSpace(text), line})
		}
	}
	return all
}

// cleanNames are identifiers in which nothing was found: most come again and again.
var cleanNames sync.Map

func inIdentifier(path string, line int, name string, words []retiredWord) []foundWord {
	if _, clean := cleanNames.Load(name); clean {
		return nil
	}
	var all []foundWord
	for _, word := range camelWords(name) {
		lower := strings.ToLower(word)
		for _, r := range words {
			if r.inIdentifier != nil && r.mayHold(lower) && r.inIdentifier.MatchString(word) {
				all = append(all, foundWord{path, word, r.standard, name, line})
			}
		}
	}
	if len(all) == 0 {
		cleanNames.Store(name, true)
	}
	return all
}

func inKey(path string, line int, key, text string) []foundWord {
	if standard := retiredKeys[key]; standard != "" {
		return []foundWord{{path, key, standard, text, line}}
	}
	return nil
}

// camelWords splits "jobTwinsOf" into job, twins, of.
func camelWords(name string) []string {
	var words []string
	start := 0
	runes := []rune(name)
	for i := 1; i <= len(runes); i++ {
		end := i == len(runes) || runes[i] == '_'
		if end || unicode.IsUpper(runes[i]) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) &&
			unicode.IsLower(runes[i+1])) {
			words = append(words, strings.ToLower(strings.Trim(string(runes[start:i]), "_")))
			start = i
		}
	}
	return words
}

func exceptionFor(f foundWord) int {
	for i, e := range wordExceptions {
		if strings.HasPrefix(f.path, e.path) && regexp.MustCompile(`^(?:`+e.word+`)$`).MatchString(f.word) &&
			(e.text == "" || strings.Contains(f.text, e.text)) {
			return i
		}
	}
	return -1
}

func notYetFolder(f foundWord) string {
	for _, folder := range wordsNotYet {
		if strings.HasPrefix(f.path, folder) {
			return folder
		}
	}
	return ""
}

func retire(forms, standard string) retiredWord {
	parsed, err := resyntax.Parse(forms, resyntax.Perl)
	if err != nil {
		panic(err) // as MustCompile does
	}
	return retiredWord{
		standard: standard, stems: stemsOf(parsed), inText: regexp.MustCompile(`(?i)\b(?:` + forms + `)\b`),
		inIdentifier: regexp.MustCompile(`^(?:` + forms + `)$`),
	}
}

// retireText retires a phrase that is no identifier, or a word that identifiers may hold.
func retireText(forms, standard string) retiredWord {
	w := retire(forms, standard)
	w.inIdentifier = nil
	return w
}

type retiredWord struct {
	standard             string
	stems                []string // lower case: each match has one of them; nil: see stemsOf
	inText, inIdentifier *regexp.Regexp
}
