package cmsjobs_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryFunctionOfTheClientHasAnExample reads package client as its documentation shows
// it: who enqueues from Go finds an example below each function and method.
func TestEveryFunctionOfTheClientHasAnExample(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("client", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var parsed []*ast.File
	for _, file := range files {
		f, err := parser.ParseFile(set, file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	page, err := doc.NewFromFiles(set, parsed, "github.com/cmsjobs/cmsjobs/client")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	check := func(name string, has int, signature *ast.FuncDecl) {
		if seen++; has == 0 && !isStandard(signature.Name.Name) {
			t.Errorf("client.%s has no example", name)
		}
	}
	for _, f := range page.Funcs {
		check(f.Name, len(f.Examples), f.Decl)
	}
	for _, typ := range page.Types {
		for _, f := range append(typ.Funcs, typ.Methods...) {
			name := f.Name
			if f.Recv != "" {
				name = strings.TrimPrefix(f.Recv, "*") + "." + name
			}
			check(name, len(f.Examples), f.Decl)
		}
	}
	if seen < 8 {
		t.Errorf("%d functions: the test looks in the wrong place", seen)
	}
}

// isStandard says that the standard library calls the method, as that of an error.
func isStandard(method string) bool { return method == "Error" || method == "Is" }
