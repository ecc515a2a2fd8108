package config

import (
	"reflect"
	"slices"
	"strings"
)

// slash separates the parts of a path inside this package. A dot does not do,
// as names of types have dots. People see dots.
const slash = "/"

// anyName stands in a path for a name that the user chooses: types/*/timeout.
const anyName = "*"

// field is one key of the configuration.
type field struct {
	path  string // "queue/poll", "types/*/timeout"
	index []int  // of the struct field; nil below a map
	typ   reflect.Type
}

func (f field) open() bool { return f.typ.Kind() == reflect.Map }

// fields lists all keys of the struct, in the order of their declaration. A map
// of structs is listed itself and with the keys of its values.
func fields(t reflect.Type, prefix string, index []int) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("koanf")
		if name == "" {
			continue
		}
		at := append(slices.Clone(index), i)
		path := prefix + name
		switch {
		case f.Type.Kind() == reflect.Struct && f.Type != rangeType:
			all = append(all, fields(f.Type, path+slash, at)...)
		case f.Type.Kind() == reflect.Map && f.Type.Elem().Kind() == reflect.Struct:
			all = append(all, field{path, at, f.Type})
			for _, below := range fields(f.Type.Elem(), path+slash+anyName+slash, nil) {
				below.index = nil
				all = append(all, below)
			}
		default:
			all = append(all, field{path, at, f.Type})
		}
	}
	return all
}

func schema() []field { return fields(reflect.TypeFor[Config](), "", nil) }

// known says whether a path from a file is one of the schema's.
func known(all []field, path string) bool {
	parts := strings.Split(path, slash)
	return slices.ContainsFunc(all, func(f field) bool {
		want := strings.Split(f.path, slash)
		if f.open() && f.typ.Elem().Kind() != reflect.Struct && len(parts) == len(want)+1 {
			want = append(want, anyName) // a map of plain values
		}
		if len(want) != len(parts) {
			return false
		}
		for i := range want {
			if want[i] != anyName && want[i] != parts[i] {
				return false
			}
		}
		return true
	})
}

// envName is our variable that sets a path.
func envName(path string) string {
	return prefixOfEnv + strings.ToUpper(strings.ReplaceAll(path, slash, "_"))
}

// suggestion finds the name that was probably meant, or "".
func suggestion(wrong string, names []string) string {
	best, distance := "", len(wrong)/3+2
	for _, name := range names {
		if d := editDistance(strings.ToLower(wrong), strings.ToLower(name)); d < distance {
			best, distance = name, d
		}
	}
	if best != "" {
		return best
	}
	// A key under the wrong section is a common slip: the last part decides.
	last := wrong[strings.LastIndexAny(wrong, "./_")+1:]
	for _, name := range names {
		if len(last) > 3 && strings.HasSuffix(name, "."+last) {
			return name
		}
	}
	return ""
}

// editDistance counts the letters to insert, delete or replace (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

// dotted is a path as people write it.
func dotted(path string) string { return strings.ReplaceAll(path, slash, ".") }
