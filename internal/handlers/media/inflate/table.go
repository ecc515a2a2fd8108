package inflate

import "math/bits"

// entry is what the next bits of a stream mean. From its lowest bit on: how many
// bits to drop (6), two unused, how many extra bits follow or, of literals, how
// many there are (4), its kind (4), and a value (16): one or two literals, the
// base of a length or distance, or where a second table begins.
type entry uint32

const (
	literal   entry = 1 << 15
	elsewhere entry = 1 << 14 // the second table at value, of extra bits
	end       entry = 1 << 13 // of the block
)

func newEntry(kind entry, value, extra int) entry {
	return kind | entry(value)<<16 | entry(extra)<<8
}

func (e entry) drop() uint  { return uint(e & 63) }
func (e entry) extra() uint { return uint(e>>8) & 15 }
func (e entry) value() int  { return int(e >> 16) }

const (
	longest      = 15 // of a code, in bits
	literalBits  = 11
	distanceBits = 8
	// Space for all second tables: each has two symbols at least, as a code with
	// long words is complete.
	literalSpace  = 1<<literalBits + 288/2<<(longest-literalBits)
	distanceSpace = 1<<distanceBits + 32/2<<(longest-distanceBits)
)

// The meanings of symbols (RFC 1951, 3.2.5). A zero is none.
var (
	literalMeanings  = literalsAndLengths()
	distanceMeanings = distances()
)

func literalsAndLengths() (m [288]entry) {
	for i := range 256 {
		m[i] = newEntry(literal, i, 1)
	}
	m[256] = end
	base := 3
	for i := range 28 {
		extra := max(0, i/4-1)
		m[257+i] = newEntry(0, base, extra)
		base += 1 << extra
	}
	m[285] = newEntry(0, 258, 0)
	return m
}

func distances() (m [32]entry) {
	base := 1
	for i := range 30 {
		extra := max(0, i/2-1)
		m[i] = newEntry(0, base, extra)
		base += 1 << extra
	}
	return m
}

// build makes a table that is looked into with width bits, and the second tables
// behind it for longer codes. meanings are those of the symbols. As in
// compress/flate, a code must be complete, or be of one symbol, or be empty; what
// has no meaning is a zero entry.
func build(table []entry, width int, lengths []uint8, meanings []entry) bool {
	var counts, next [longest + 1]int
	for _, n := range lengths {
		counts[n]++
	}
	counts[0] = 0
	code, most := 0, 0
	for n := 1; n <= longest; n++ {
		code <<= 1
		next[n] = code
		code += counts[n]
		if counts[n] > 0 {
			most = n
		}
		if code > 1<<n {
			return false
		}
	}
	if whole := code == 1<<longest; !whole && most > 0 && (most != 1 || counts[1] != 1) {
		return false
	}
	clear(table[:1<<width])
	b := builder{table: table, width: width, free: 1 << width, most: most}
	for symbol, n := range lengths {
		if n > 0 {
			b.put(next[n], int(n), meanings[symbol])
			next[n]++
		}
	}
	return true
}

// builder puts codes into a table.
type builder struct {
	table       []entry
	width, free int
	most        int // the longest code
}

func (b *builder) put(code, n int, meaning entry) {
	reversed := int(bits.Reverse16(uint16(code)) >> (16 - n))
	if n <= b.width {
		fill(b.table[:1<<b.width], reversed, n, meaning|entry(n))
		return
	}
	first := reversed & (1<<b.width - 1)
	if b.table[first]&elsewhere == 0 {
		size := b.most - b.width
		b.table[first] = newEntry(elsewhere, b.free, size) | entry(b.width)
		clear(b.table[b.free:][:1<<size])
		b.free += 1 << size
	}
	second := b.table[first]
	n -= b.width
	fill(b.table[second.value():][:1<<second.extra()], reversed>>b.width, n, meaning|entry(n))
}

func fill(table []entry, from, n int, e entry) {
	for i := from; i < len(table); i += 1 << n {
		table[i] = e
	}
}

// pair makes entries of two literals where two codes fit into width bits. It goes
// down, so that the entries it looks at have one literal still.
func pair(table []entry) {
	width := uint(bits.Len(uint(len(table) - 1)))
	for i := len(table) - 1; i >= 0; i-- {
		e := table[i]
		if e&literal == 0 {
			continue
		}
		second := table[i>>e.drop()]
		if second&literal != 0 && e.drop()+second.drop() <= width {
			table[i] = literal | 2<<8 | entry(e.drop()+second.drop()) | e&0xff0000 | second&0xff0000<<8
		}
	}
}
