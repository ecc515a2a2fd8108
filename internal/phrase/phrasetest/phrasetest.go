package phrasetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Call is a call in the source. On is what stands before the dot, "." if that is no name;
// "" is that there is no dot.
type Call struct {
	On, Name string
	// Texts are its arguments, as far as they are literals or constants; nil for the others.
	Texts []*string
}

// Calls are all calls in the files that the patterns name, tests left out.
func Calls(t *testing.T, patterns ...string) (found []Call) {
	t.Helper()
	files := parse(t, patterns)
	constants := constantsOf(files)
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, is := n.(*ast.CallExpr); is {
				found = append(found, callOf(call, constants))
			}
			return true
		})
	}
	return found
}

func parse(t *testing.T, patterns []string) (files []*ast.File) {
	t.Helper()
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("no source is at %s: %v", pattern, err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
	}
	return files
}

// constantsOf are the strings that have names, by these.
func constantsOf(files []*ast.File) map[string]string {
	constants := map[string]string{}
	for range 2 { // a constant may be made of one that stands behind it
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				if v, is := n.(*ast.ValueSpec); is && len(v.Values) == 1 {
					if text, is := textOf(v.Values[0], constants); is {
						constants[v.Names[0].Name] = text
					}
				}
				return true
			})
		}
	}
	return constants
}

func callOf(call *ast.CallExpr, constants map[string]string) (c Call) {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		c.Name = f.Name
	case *ast.SelectorExpr:
		c.On, c.Name = ".", f.Sel.Name
		if on, is := f.X.(*ast.Ident); is {
			c.On = on.Name
		}
	}
	for _, argument := range call.Args {
		var is *string
		if text, known := textOf(argument, constants); known {
			is = &text
		}
		c.Texts = append(c.Texts, is)
	}
	return c
}

// textOf is the value of a string that is written in pieces, which may be constants.
func textOf(e ast.Expr, constants map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		s, known := constants[e.Name]
		return s, known
	case *ast.BinaryExpr:
		left, is := textOf(e.X, constants)
		right, too := textOf(e.Y, constants)
		return left + right, is && too
	}
	return "", false
}

// AreTranslated fails the test where one of the texts has no translation with the same
// values in the same order, or where a translation is kept of what nothing says. Texts without a
// word, and those that same chooses, are the same in all languages.
func AreTranslated(t *testing.T, said []string, texts map[string]string, same func(text string) bool) {
	t.Helper()
	value, word := regexp.MustCompile(`%(?:\[\d\])?[.0-9]*[a-z%]`), regexp.MustCompile(`[a-z]{2}`)
	blank := regexp.MustCompile(`^\s*`)
	for _, text := range said {
		if !word.MatchString(value.ReplaceAllString(text, "")) || same(text) {
			continue
		}
		other, there := texts[text]
		switch {
		case !there:
			t.Errorf("no translation of %q", text)
		case !slices.Equal(value.FindAllString(text, -1), value.FindAllString(other, -1)):
			t.Errorf("%q and %q have other values", text, other)
		case blank.FindString(text) != blank.FindString(other):
			t.Errorf("%q and %q begin differently", text, other)
		}
	}
	for text := range texts {
		if !slices.Contains(said, text) {
			t.Errorf("nothing says %q", text)
		}
	}
}
