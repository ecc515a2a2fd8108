package dump

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Differences says in which objects and facts a restored structure is not the one
// that was dumped, a line each: "table posts: column title is varchar(50), was varchar(100)".
// Between servers of different kinds or versions, which state the same things in
// other words, it compares only which objects there are and the tables' columns.
func Differences(was, is Summary) []string {
	comparable := alike(was.Server, is.Server)
	found := map[string]Object{}
	for _, o := range is.Objects {
		found[o.String()] = o
	}
	var all []string
	for _, w := range was.Objects {
		g, there := found[w.String()]
		delete(found, w.String())
		switch {
		case !there:
			all = append(all, fmt.Sprintf("the %s was not restored", w))
		case comparable:
			all = append(all, factDifferences(w, g)...)
		case w.Facts["columns"] != g.Facts["columns"]:
			all = append(all, fmt.Sprintf("%s: the columns are %s, were %s", w, g.Facts["columns"], w.Facts["columns"]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		all = append(all, fmt.Sprintf("the %s is there and was not dumped", name))
	}
	return all
}

// Compared says how far Differences compares, where it is not everything: "" is all.
func Compared(was, is Summary) string {
	switch {
	case len(was.Objects) == 0:
		return "the backup does not state its schema in a form that can be compared"
	case !alike(was.Server, is.Server):
		return fmt.Sprintf("it was restored on %s, which describes tables in other words than %s: of the schema, the "+
			"names of tables and columns were compared", is.Server, was.Server)
	}
	return ""
}

// alike says whether two servers describe the same table by the same words: the
// same product, of the same two numbers in front.
func alike(a, b string) bool {
	x, y := versionNumber.FindStringSubmatch(a), versionNumber.FindStringSubmatch(b)
	return x != nil && y != nil && x[1] == y[1] && x[2] == y[2] && IsMariaDB(a) == IsMariaDB(b)
}

// SumsComparable says whether the checksums of a table's rows can be compared: two kinds
// of server write the same JSON value in two ways.
func SumsComparable(was, is Summary, table string) bool {
	if IsMariaDB(was.Server) == IsMariaDB(is.Server) {
		return true
	}
	return !slices.ContainsFunc(was.Objects, func(o Object) bool {
		return o.Kind == "table" && o.Name == table && o.holdsJSON()
	})
}

// holdsJSON knows MySQL's own type, and MariaDB's text that must be JSON.
func (o Object) holdsJSON() bool {
	for fact, how := range o.Facts {
		if strings.HasPrefix(fact, "column ") && strings.HasPrefix(how, "json ") ||
			strings.HasPrefix(fact, "check ") && strings.Contains(how, "json_valid") {
			return true
		}
	}
	return false
}

func factDifferences(was, is Object) (all []string) {
	for _, fact := range slices.Sorted(maps.Keys(was.Facts)) {
		w, g := was.Facts[fact], is.Facts[fact]
		if _, there := is.Facts[fact]; !there {
			all = append(all, fmt.Sprintf("%s: %s is missing", was, fact))
		} else if w != g {
			w, g = around(w, g)
			all = append(all, fmt.Sprintf("%s: %s is %q, was %q", was, fact, g, w))
		}
	}
	for _, fact := range slices.Sorted(maps.Keys(is.Facts)) {
		if _, there := was.Facts[fact]; !there {
			all = append(all, fmt.Sprintf("%s: %s was not there", was, fact))
		}
	}
	return all
}

// shown bounds how much of a long text a difference shows.
const shown = 120

// around cuts two long texts to where they begin to differ.
func around(a, b string) (string, string) {
	x, y := []rune(a), []rune(b)
	if max(len(x), len(y)) <= shown {
		return a, b
	}
	from := 0
	for from < min(len(x), len(y)) && x[from] == y[from] {
		from++
	}
	from = max(0, from-shown/4)
	cut := func(r []rune) string { return string(r[min(from, len(r)):min(from+shown, len(r))]) }
	return cut(x), cut(y)
}
