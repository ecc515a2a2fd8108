package pngrows

import "encoding/binary"

// The filters (PNG, 9.2).
const (
	none = iota
	sub
	up
	average
	paeth
)

// unfilter undoes a row's filter: raw is what was in the file, above the row before,
// zeros for the first.
func unfilter(kind byte, row, raw, above []byte, stride int) bool {
	above = above[:len(row)]
	done := unfilterVectors(kind, row, raw, above, stride)
	copy(row[done:], raw[done:])
	if done == 0 && unfilterUsual(kind, row, above, stride) {
		return true
	}
	switch kind {
	case none:
	case sub:
		subAny(row, stride, done)
	case up:
		upAny(row, above)
	case average:
		averageAny(row, above, stride, done)
	case paeth:
		paethAny(row, above, stride, done)
	default:
		return false
	}
	return true
}

// unfilterUsual knows faster ways for usual pixels, where there is no kernel; it
// says whether it knew one.
func unfilterUsual(kind byte, row, above []byte, stride int) bool {
	switch {
	case kind == sub && stride == 4:
		sub4(row)
	case kind == average && stride == 4:
		average4(row, above)
	case kind == paeth && stride == 3:
		paeth3(row, above)
	case kind == paeth && stride == 4:
		paeth4(row, above)
	default:
		return false
	}
	return true
}

// low7 masks the lower bits of eight bytes in a word.
const low7 = 0x7f7f7f7f7f7f7f7f

// add adds the bytes of two words, each for itself.
func add(a, b uint64) uint64 { return (a&low7 + b&low7) ^ ((a ^ b) &^ low7) }

// mean is the rounded-down mean of the bytes of two words.
func mean(a, b uint64) uint64 { return a&b + (a^b)>>1&low7 }

func upAny(row, above []byte) {
	for len(row) >= 8 && len(above) >= 8 {
		binary.LittleEndian.PutUint64(row, add(binary.LittleEndian.Uint64(row), binary.LittleEndian.Uint64(above)))
		row, above = row[8:], above[8:]
	}
	for i, v := range above {
		row[i] += v
	}
}

func sub4(row []byte) {
	var a uint64
	for ; len(row) >= 4; row = row[4:] {
		a = add(a, uint64(binary.LittleEndian.Uint32(row)))
		binary.LittleEndian.PutUint32(row, uint32(a))
	}
}

func average4(row, above []byte) {
	var a uint64
	for len(row) >= 4 && len(above) >= 4 {
		a = add(uint64(binary.LittleEndian.Uint32(row)), mean(a, uint64(binary.LittleEndian.Uint32(above))))
		binary.LittleEndian.PutUint32(row, uint32(a))
		row, above = row[4:], above[4:]
	}
}

// subAny, averageAny and paethAny begin at byte from.
func subAny(row []byte, stride, from int) {
	for i := max(stride, from); i < len(row); i++ {
		row[i] += row[i-stride]
	}
}

func averageAny(row, above []byte, stride, from int) {
	for i := from; i < min(stride, len(row)); i++ {
		row[i] += above[i] / 2
	}
	for i := max(stride, from); i < len(row); i++ {
		row[i] += byte((int(row[i-stride]) + int(above[i])) / 2)
	}
}

// nearest chooses among left, above and above left the one nearest to left +
// above − above left.
func nearest(a, b, c int32) int32 {
	p, q := b-c, a-c
	pa, pb, pc := abs(p), abs(q), abs(p+q)
	if pb < pa {
		a, pa = b, pb
	}
	if pc < pa {
		a = c
	}
	return a
}

func abs(v int32) int32 {
	m := v >> 31
	return (v ^ m) - m
}

func paethAny(row, above []byte, stride, from int) {
	for i := from; i < min(stride, len(row)); i++ {
		row[i] += above[i]
	}
	for i := max(stride, from); i < len(row); i++ {
		row[i] += byte(nearest(int32(row[i-stride]), int32(above[i]), int32(above[i-stride])))
	}
}

// paeth3 and paeth4 keep the pixels to the left in registers.
func paeth3(row, above []byte) {
	var a0, a1, a2, c0, c1, c2 int32
	for len(row) >= 3 && len(above) >= 3 {
		b0, b1, b2 := int32(above[0]), int32(above[1]), int32(above[2])
		a0 = (int32(row[0]) + nearest(a0, b0, c0)) & 255
		a1 = (int32(row[1]) + nearest(a1, b1, c1)) & 255
		a2 = (int32(row[2]) + nearest(a2, b2, c2)) & 255
		row[0], row[1], row[2] = byte(a0), byte(a1), byte(a2)
		c0, c1, c2 = b0, b1, b2
		row, above = row[3:], above[3:]
	}
}

func paeth4(row, above []byte) {
	var a0, a1, a2, a3, c0, c1, c2, c3 int32
	for len(row) >= 4 && len(above) >= 4 {
		b0, b1, b2, b3 := int32(above[0]), int32(above[1]), int32(above[2]), int32(above[3])
		a0 = (int32(row[0]) + nearest(a0, b0, c0)) & 255
		a1 = (int32(row[1]) + nearest(a1, b1, c1)) & 255
		a2 = (int32(row[2]) + nearest(a2, b2, c2)) & 255
		a3 = (int32(row[3]) + nearest(a3, b3, c3)) & 255
		row[0], row[1], row[2], row[3] = byte(a0), byte(a1), byte(a2), byte(a3)
		c0, c1, c2, c3 = b0, b1, b2, b3
		row, above = row[4:], above[4:]
	}
}
