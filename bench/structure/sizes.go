package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/tools/go/packages"
)

// sizes are the figures of all files together.
type sizes struct {
	fileLines             []int // lines of each file of the product
	tests                 []int // lines of each test file
	functions, complexity []int // lines and cyclomatic complexity of each function
	parameters, methods   []int // of each function; of each interface
	comments, all         int   // lines
	exported, documented  int   // functions and types
	over120, over160      int   // lines of more columns
	generated             int
}

// measure counts what the packages hold.
func measure(found []*packages.Package) (s sizes) {
	folders := map[string]bool{}
	for _, p := range found {
		for _, f := range p.Syntax {
			name := p.Fset.Position(f.Package).Filename
			folders[filepath.Dir(name)] = true
			if ast.IsGenerated(f) {
				s.generated++
				continue
			}
			s.fileLines = append(s.fileLines, s.text(name))
			for _, c := range f.Comments {
				s.comments += p.Fset.Position(c.End()).Line - p.Fset.Position(c.Pos()).Line + 1
			}
			ast.Inspect(f, func(n ast.Node) bool { return s.node(p, n) })
		}
	}
	for folder := range folders {
		names, _ := filepath.Glob(filepath.Join(folder, "*_test.go")) // the pattern is well-formed
		for _, name := range names {
			s.tests = append(s.tests, lines([]string{name}))
		}
	}
	return s
}

// text counts a file's lines, and those that are too long.
func (s *sizes) text(name string) int {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	all := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	for _, line := range all {
		columns := utf8.RuneCount(line) + 3*bytes.Count(line, []byte("\t"))
		s.over120 += toInt(columns > 120)
		s.over160 += toInt(columns > 160)
	}
	s.all += len(all)
	return len(all)
}

// node counts a declaration.
func (s *sizes) node(p *packages.Package, n ast.Node) bool {
	switch x := n.(type) {
	case *ast.FuncDecl:
		s.functions = append(s.functions, p.Fset.Position(x.End()).Line-p.Fset.Position(x.Pos()).Line+1)
		s.complexity = append(s.complexity, complexity(x))
		s.parameters = append(s.parameters, x.Type.Params.NumFields())
		if x.Name.IsExported() {
			s.exported++
			s.documented += toInt(x.Doc != nil)
		}
	case *ast.InterfaceType:
		s.methods = append(s.methods, x.Methods.NumFields())
	}
	return true
}

// complexity is McCabe's: one, and one more for each branch.
func complexity(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			n += toInt(x.List != nil)
		case *ast.CommClause:
			n += toInt(x.Comm != nil)
		case *ast.BinaryExpr:
			op := x.Op.String()
			n += toInt(op == "&&" || op == "||")
		}
		return true
	})
	return n
}

func toInt(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// printSizes writes the figures as a table.
func printSizes(w io.Writer, s sizes) {
	row := func(what, format string, values ...any) {
		_, _ = fmt.Fprintf(w, "| %s | %s |\n", what, fmt.Sprintf(format, values...))
	}
	_, _ = fmt.Fprintf(w, "| figure | value |\n|---|---|\n")
	row("Go files / lines, without tests", "%d / %d", len(s.fileLines), sum(s.fileLines))
	row("test files / lines", "%d / %d", len(s.tests), sum(s.tests))
	row("lines of a file: p50 / p90 / max", "%s", percentiles(s.fileLines, 50, 90, 100))
	row("lines of a function: p50 / p90 / p99 / max", "%s", percentiles(s.functions, 50, 90, 99, 100))
	row("functions of more than 60 lines", "%d of %d", over(s.functions, 60), len(s.functions))
	row("functions of a complexity above 15 / max", "%d / %d", over(s.complexity, 15),
		slices.Max(append(s.complexity, 0)))
	row("parameters: p90 / max", "%s", percentiles(s.parameters, 90, 100))
	row("interfaces / methods p50 / p90 / max", "%d / %s", len(s.methods), percentiles(s.methods, 50, 90, 100))
	row("comment lines", "%.1f %%", 100*float64(s.comments)/float64(max(s.all, 1)))
	row("exported functions with a comment", "%.0f %%", 100*float64(s.documented)/float64(max(s.exported, 1)))
	row("lines over 120 / 160 columns (a tab is 4)", "%d / %d", s.over120, s.over160)
}

// percentiles prints some percentiles of values.
func percentiles(values []int, at ...int) string {
	if len(values) == 0 {
		return "–"
	}
	slices.Sort(values)
	var parts []string
	for _, p := range at {
		parts = append(parts, fmt.Sprint(values[min(len(values)*p/100, len(values)-1)]))
	}
	return strings.Join(parts, " / ")
}

func sum(values []int) (n int) {
	for _, v := range values {
		n += v
	}
	return n
}

func over(values []int, limit int) (n int) {
	for _, v := range values {
		n += toInt(v > limit)
	}
	return n
}
