package tables

import (
	"fmt"
	"strconv"
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
	x.numbers("j", func(l *RunRow) int64 { return l.job }, len(lines) == 1)
	x.texts("u", func(l *RunRow) string { return l.uuid })
	x.texts("k", func(l *RunRow) string { return l.jobType })
	x.texts("q", func(l *RunRow) string { return l.queue })
	x.number("a", func(l *RunRow) int64 { return l.attempt })
	x.texts("o", func(l *RunRow) string { return l.outcome })
	x.texts("w", func(l *RunRow) string { return l.worker })
	x.texts("l", func(l *RunRow) string { return l.lease })
	x.values = append(x.values, "(SELECT "+now+")") // once, not for each row
	x.number("d", func(l *RunRow) int64 { return l.duration })
	x.number("p", func(l *RunRow) int64 { return l.wait })
	x.number("c", func(l *RunRow) int64 { return l.created })
	columns := runColumns
	for _, k := range textsOf(lines) {
		columns += ", " + textColumns[k]
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

// number is a column of numbers.
func (x *arrayInsert) number(name string, of func(*RunRow) int64) {
	x.numbers(name, of, alike(x.lines, of))
}

func (x *arrayInsert) numbers(name string, of func(*RunRow) int64, shared bool) {
	if shared {
		x.values = append(x.values, strconv.FormatInt(of(&x.lines[0]), 10))
		return
	}
	x.array(name, "bigint", gather(x.lines, of))
}

func (x *arrayInsert) texts(name string, of func(*RunRow) string) {
	if alike(x.lines, of) {
		x.values, x.shared = append(x.values, "CAST(? AS text)"), append(x.shared, of(&x.lines[0]))
		return
	}
	x.array(name, "text", gather(x.lines, of))
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
