package schema

// suggest is the path of the field that a wrong name is nearest to; "" where none is
// near.
func (o *Object) suggest(path, name string) string {
	var names []string
	for _, f := range o.Fields {
		names = append(append(names, f.Name), f.Synonyms...)
	}
	if best := Nearest(name, names); best != "" {
		return path + best
	}
	return ""
}

// Nearest is the name of a list that a misspelt one probably means; "" where none
// is near: more than a third of its letters differ.
func Nearest(name string, names []string) string {
	if len(name) > 60 {
		return ""
	}
	best, least := "", 0
	for _, candidate := range names {
		d := distance([]rune(fold(name)), []rune(fold(candidate)))
		if d <= max(1, len(candidate)/3) && (best == "" || d < least) {
			best, least = candidate, d
		}
	}
	return best
}

// distance counts insertions, deletions, replacements and swaps of neighbours
// (Damerau and Levenshtein) that make b of a.
func distance(a, b []rune) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
