package main

import (
	"bytes"
	"cmp"
	"go/types"
	"os"
	"slices"

	"golang.org/x/tools/go/packages"
)

// arrow says that a file uses a declaration of another.
type arrow struct{ from, to string }

// graph holds the files of a package and the arrows between them.
type graph struct {
	files []string
	out   map[string]map[string]bool
}

// arrowsOf finds the arrows inside a package.
func arrowsOf(p *packages.Package) graph {
	g := graph{out: map[string]map[string]bool{}}
	for _, f := range p.Syntax {
		name := p.Fset.Position(f.Package).Filename
		g.files = append(g.files, name)
		g.out[name] = map[string]bool{}
	}
	slices.Sort(g.files)
	for id, object := range p.TypesInfo.Uses {
		if object.Pkg() != p.Types || isLocal(object) {
			continue
		}
		from, to := p.Fset.Position(id.Pos()).Filename, p.Fset.Position(object.Pos()).Filename
		if from != to && g.out[from] != nil && g.out[to] != nil {
			g.out[from][to] = true
		}
	}
	return g
}

// isLocal says whether an object is declared inside a function.
func isLocal(object types.Object) bool {
	switch o := object.(type) {
	case *types.Var:
		return !o.IsField() && o.Parent() != o.Pkg().Scope()
	case *types.Func:
		return false
	}
	return object.Parent() != object.Pkg().Scope()
}

func (g graph) count() (n int) {
	for _, to := range g.out {
		n += len(to)
	}
	return n
}

// upward lists the arrows that run backwards in the order of the files.
func (g graph) upward() (back []arrow) {
	place := map[string]int{}
	for i, name := range g.order() {
		place[name] = i
	}
	for from, all := range g.out {
		for to := range all {
			if place[to] < place[from] {
				back = append(back, arrow{from, to})
			}
		}
	}
	slices.SortFunc(back, func(a, b arrow) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	return back
}

// order puts the files so that few arrows run backwards: what uses nothing goes
// last, what nobody uses first, and of the others first the one with the most
// arrows out over those in.
func (g graph) order() []string {
	left := map[string]bool{}
	for _, name := range g.files {
		left[name] = true
	}
	var first, last []string
	for len(left) > 0 {
		best, bestScore, sink, source := "", -1<<30, "", ""
		for _, name := range g.files {
			if !left[name] {
				continue
			}
			out, in := g.degree(name, left)
			switch {
			case out == 0 && sink == "":
				sink = name
			case in == 0 && source == "":
				source = name
			}
			if out-in > bestScore {
				best, bestScore = name, out-in
			}
		}
		if sink != "" {
			last = append(last, sink)
			delete(left, sink)
			continue
		}
		next := cmp.Or(source, best)
		first = append(first, next)
		delete(left, next)
	}
	slices.Reverse(last)
	return append(first, last...)
}

// degree counts a file's arrows to and from those that are left.
func (g graph) degree(name string, left map[string]bool) (out, in int) {
	for to := range g.out[name] {
		if left[to] {
			out++
		}
	}
	for from := range left {
		if g.out[from][name] {
			in++
		}
	}
	return out, in
}

// lines counts the lines of files.
func lines(names []string) (n int) {
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // a file that the packages were just read from
		}
		n += bytes.Count(text, []byte("\n"))
	}
	return n
}
