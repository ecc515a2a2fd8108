package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	dir := flag.String("dir", "..", "the `folder` of the module to measure")
	list := flag.Bool("upward", false, "also list the arrows that run backwards")
	flag.Parse()
	found, err := load(*dir)
	if err != nil {
		log.Fatal(err)
	}
	printSizes(os.Stdout, measure(found))
	printPackages(os.Stdout, found, *list)
}

// load reads the packages of the module below dir, with their types and without
// generated files; tests are left out here, sizes counts them by their text.
func load(dir string) ([]*packages.Package, error) {
	need := packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
		packages.NeedImports | packages.NeedDeps | packages.NeedModule
	found, err := packages.Load(&packages.Config{Mode: need, Dir: dir}, "./...")
	if err != nil {
		return nil, fmt.Errorf("loading the packages below %s: %w", dir, err)
	}
	for _, p := range found {
		for _, e := range p.Errors {
			return nil, fmt.Errorf("reading %s: %w", p.PkgPath, e)
		}
	}
	slices.SortFunc(found, func(a, b *packages.Package) int { return strings.Compare(a.PkgPath, b.PkgPath) })
	return found, nil
}

// printPackages writes a line a package with more than one file.
func printPackages(w io.Writer, found []*packages.Package, list bool) {
	_, _ = fmt.Fprintf(w, "\n| package | files | lines | arrows | upward |\n|---|--:|--:|--:|--:|\n")
	files, arrows, upward := 0, 0, 0
	for _, p := range found {
		g := arrowsOf(p)
		files, arrows, upward = files+len(g.files), arrows+g.count(), upward+len(g.upward())
		if len(g.files) < 2 {
			continue
		}
		_, _ = fmt.Fprintf(w, "| %s | %d | %d | %d | %d |\n", short(p), len(g.files), lines(g.files), g.count(),
			len(g.upward()))
		for _, a := range g.upward() {
			if list {
				_, _ = fmt.Fprintf(w, "| | %s → %s | | | |\n", filepath.Base(a.from), filepath.Base(a.to))
			}
		}
	}
	_, _ = fmt.Fprintf(w, "| all | %d | | %d | %d |\n", files, arrows, upward)
}

// short is a package's path below its module.
func short(p *packages.Package) string {
	if p.Module == nil || p.PkgPath == p.Module.Path {
		return "."
	}
	return strings.TrimPrefix(p.PkgPath, p.Module.Path+"/")
}
