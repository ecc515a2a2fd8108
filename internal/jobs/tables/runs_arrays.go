package tables

import (
	"fmt"
	"strings"
)

// PostgreSQL gets the values of many lines as arrays: reading ten thousand parameters
// costs it more than writing the rows. A value that all lines share is written once.

// arrayInsert is an INSERT of lines on its way.
type arrayInsert struct {
	lines          []RunRow
	values         []string // of the SELECT, in the order of the columns
	shared, arrays []any
	names, casts   []string // of the arrays
}

// ArrayInsertion is the INSERT of many lines on PostgreSQL. now is SQL. Of lines among
// a table with the column id, which may be "", those are written whose job is in it.
func ArrayInsertion(lines []RunRow, now, among string) (string, []any) {
	x := &arrayInsert{lines: lines}
	if len(lines) == 1 {
		x.share("bigint", lines[0].job)
	} else { // even if it is the same: there are as many rows as lines
		x.array("j", "bigint", gather(lines, func(l *RunRow) int64 { return l.job }))
	}
	addValue(x, "u", "text", func(l *RunRow) string { return l.uuid })
	addValue(x, "k", "text", func(l *RunRow) string { return l.jobType })
	addValue(x, "q", "text", func(l *RunRow) string { return l.queue })
	addValue(x, "a", "bigint", func(l *RunRow) int64 { return l.attempt })
	addValue(x, "o", "text", func(l *RunRow) string { return l.outcome })
	addValue(x, "w", "text", func(l *RunRow) string { return l.worker })
	addValue(x, "l", "text", func(l *RunRow) string { return l.lease })
	x.values = append(x.values, "(SELECT "+now+")") // once, not for each row
	addValue(x, "d", "bigint", func(l *RunRow) int64 { return l.duration })
	addValue(x, "p", "bigint", func(l *RunRow) int64 { return l.wait })
	addValue(x, "c", "bigint", func(l *RunRow) int64 { return l.created })
	columns := runColumns
	for _, k := range textsOf(lines) {
		columns += ", " + textColumns[k]
		if alike(lines, func(l *RunRow) any { return l.text(k) }) {
			x.share("text", lines[0].text(k))
			continue
		}
		x.array(fmt.Sprintf("x%d", k), "text", gather(lines, func(l *RunRow) *string { return l.texts[k] }))
	}
	return "INSERT INTO cmsjobs_runs (" + columns + ") SELECT " + strings.Join(x.values, ", ") + x.from(among),
		append(x.shared, x.arrays...)
}

func (x *arrayInsert) from(among string) string {
	switch {
	case len(x.names) > 0:
		from := " FROM unnest(" + strings.Join(x.casts, ", ") + ") AS t (" + strings.Join(x.names, ", ") + ")"
		if among != "" {
			from += " JOIN " + among + " ON " + among + ".id = " + x.values[0]
		}
		return from
	case among != "":
		return " FROM " + among
	}
	return ""
}

// addValue adds a value of each line.
func addValue[T comparable](x *arrayInsert, name, kind string, of func(*RunRow) T) {
	if alike(x.lines, of) {
		x.share(kind, of(&x.lines[0]))
		return
	}
	x.array(name, kind, gather(x.lines, of))
}

// share is a column whose values are the same.
func (x *arrayInsert) share(kind string, value any) {
	x.values, x.shared = append(x.values, "CAST(? AS "+kind+")"), append(x.shared, value)
}

// array is a column whose values differ.
func (x *arrayInsert) array(name, kind string, values any) {
	x.values, x.names = append(x.values, "t."+name), append(x.names, name)
	x.casts, x.arrays = append(x.casts, "CAST(? AS "+kind+"[])"), append(x.arrays, values)
}

// alike says that all lines have the same value.
func alike[T comparable](lines []RunRow, of func(*RunRow) T) bool {
	first := of(&lines[0])
	for i := range lines {
		if of(&lines[i]) != first {
			return false
		}
	}
	return true
}

// gather lists one value of each line.
func gather[T any](lines []RunRow, of func(*RunRow) T) []T {
	list := make([]T, len(lines))
	for i := range lines {
		list[i] = of(&lines[i])
	}
	return list
}
