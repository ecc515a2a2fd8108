package database

import (
	"fmt"
	"strings"
)

// worthwhile is how many rows a stretch must have on average: MariaDB finds a
// range about as fast as three single rows.
const worthwhile = 8

// IDRanges makes a condition on the primary key that names exactly ids, which are
// sorted. Most claims and settlements name rows that stand one behind the
// other: as stretches they cost the server half of what a list of numbers does.
//
// A server that walks a range looks at the row behind it as well, and waits
// where somebody has it locked: a job whose insert is not committed yet. So a
// stretch ends one row early, and its last row is named by its number.
func (d Dialect) IDRanges(ids []int64) (string, []any) { return d.RowsBy("id", ids) }

// RowsBy is IDRanges for another column that has an index.
func (d Dialect) RowsBy(column string, ids []int64) (string, []any) {
	if d.Arrays || countRanges(ids)*worthwhile > len(ids) {
		return d.In(column, ids)
	}
	var b strings.Builder
	b.WriteByte('(')
	var single []int64
	for from := 0; from < len(ids); {
		to := endOfStretch(ids, from)
		if to-from > 2 {
			fmt.Fprintf(&b, "%s BETWEEN %d AND %d OR ", column, ids[from], ids[to-1]-1)
			from = to - 1
		}
		single = append(single, ids[from:to]...)
		from = to
	}
	return b.String() + inNumbers(column, single) + ")", nil
}

// countRanges counts runs of numbers without a gap.
func countRanges(ids []int64) (n int) {
	for from := 0; from < len(ids); n++ {
		from = endOfStretch(ids, from)
	}
	return n
}

// endOfStretch is behind the last of the numbers that follow the one at from
// without a gap.
func endOfStretch(ids []int64, from int) int {
	to := from + 1
	for to < len(ids) && ids[to] == ids[to-1]+1 {
		to++
	}
	return to
}
