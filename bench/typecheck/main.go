package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	dir := flag.String("dir", "..", "the module's folder")
	system := flag.String("os", "windows", "the system, as GOOS has it")
	flag.Parse()
	n, faults, err := check(*dir, *system)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/typecheck:", err)
		os.Exit(1)
	}
	for _, f := range faults {
		fmt.Fprintln(os.Stderr, f)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
	fmt.Printf("%d packages are good for %s\n", n, *system)
}

// check returns how many packages the module in dir has for a system, with its tests
// as further ones, and what is wrong with them.
func check(dir, system string) (n int, faults []string, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return 0, nil, err
	}
	all, err := packages.Load(&packages.Config{Dir: dir, Tests: true, BuildFlags: []string{"-tags", "nodynamic"},
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
		Env: append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
		ParseFile: func(set *token.FileSet, name string, text []byte) (*ast.File, error) {
			file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(name, dir+string(filepath.Separator)) {
				dropBodies(file)
			}
			return file, err
		}}, "./...")
	if err != nil {
		return 0, nil, fmt.Errorf("loading the packages: %w", err)
	}
	for _, p := range all {
		if strings.HasSuffix(p.PkgPath, ".test") {
			continue // made by the go command
		}
		n++
		for _, fault := range p.Errors {
			faults = append(faults, fault.Error())
		}
	}
	return n, faults, nil
}

// dropBodies leaves a file's declarations: what functions of others do is their affair.
func dropBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
}
