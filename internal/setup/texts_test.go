package setup

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

// forms are the texts that setup says: the string that a call of one of the functions
// below names, in this package and in the command.
func forms(t *testing.T) (found []string) {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	command, err := filepath.Glob("../cli/setup*.go")
	if err != nil || len(command) < 2 {
		t.Fatalf("the command's files are not where this test looks: %v, %v", command, err)
	}
	for _, path := range append(paths, command...) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || len(call.Args) == 0 {
				return true
			}
			f, is := call.Fun.(*ast.SelectorExpr)
			if !is || !slices.Contains([]string{"Say", "say", "ask", "Errorf"}, f.Sel.Name) {
				return true
			}
			if from, is := f.X.(*ast.Ident); is && from.Name == "fmt" {
				return true
			}
			for _, argument := range call.Args {
				if form, is := literal(argument); is && strings.Contains(form, " ") {
					found = append(found, form)
					break
				}
			}
			return true
		})
	}
	return found
}

// literal is the value of a string that is written in one or several pieces.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, is := literal(e.X)
		right, too := literal(e.Y)
		return left + right, is && too
	}
	return "", false
}

// Each text has a Vietnamese one with the same values in the same order, and no text is
// kept that nothing says.
func TestEverySentenceIsThereInVietnamese(t *testing.T) {
	texts, err := TextsFor([]string{"LANG=vi_VN.UTF-8"})
	if err != nil {
		t.Fatal(err)
	}
	verb, letter := regexp.MustCompile(`%(?:\[\d\])?[a-z]`), regexp.MustCompile(`[a-z]{2}`)
	said := forms(t)
	if len(said) < 60 {
		t.Fatalf("only %d texts were found: the test looks in the wrong place", len(said))
	}
	for _, form := range said {
		if !letter.MatchString(verb.ReplaceAllString(form, "")) {
			continue // only values
		}
		other, there := texts[form]
		if !there {
			t.Errorf("no Vietnamese for %q", form)
			continue
		}
		if !slices.Equal(verb.FindAllString(form, -1), verb.FindAllString(other, -1)) {
			t.Errorf("%q and %q have other values", form, other)
		}
		if blank := regexp.MustCompile(`^\s*`); blank.FindString(form) != blank.FindString(other) {
			t.Errorf("%q and %q begin differently", form, other)
		}
	}
	for form := range texts {
		if !slices.Contains(said, form) {
			t.Errorf("nothing says %q", form)
		}
	}
}

func TestTheLanguageIsThatOfTheEnvironment(t *testing.T) {
	for environ, vietnamese := range map[string]bool{"": false, "LANG=vi_VN.UTF-8": true, "LC_ALL=vi": true,
		"LANG=en_US.UTF-8": false, "LANG=vi_VN LC_ALL=C.UTF-8": false, "LANG=vi_VN LC_ALL=": true,
		"LC_MESSAGES=vi_VN.utf8 LANG=en_GB": true, "LANG=view": false} {
		texts, err := TextsFor(strings.Fields(environ))
		if err != nil || len(texts) > 0 != vietnamese {
			t.Errorf("%q: %d texts, %v", environ, len(texts), err)
		}
	}
}
