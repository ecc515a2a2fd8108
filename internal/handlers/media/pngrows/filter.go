package pngrows

// unfilter undoes a row's filter in place (PNG, 9.2). above is the row before,
// zeros for the first.
func unfilter(kind byte, row, above []byte, stride int) bool {
	above = above[:len(row)]
	switch kind {
	case 0:
	case 1:
		for i := stride; i < len(row); i++ {
			row[i] += row[i-stride]
		}
	case 2:
		for i, v := range above {
			row[i] += v
		}
	case 3:
		for i := range min(stride, len(row)) {
			row[i] += above[i] / 2
		}
		for i := stride; i < len(row); i++ {
			row[i] += byte((int(row[i-stride]) + int(above[i])) / 2)
		}
	case 4:
		switch stride {
		case 3:
			paeth3(row, above)
		case 4:
			paeth4(row, above)
		default:
			paethAny(row, above, stride)
		}
	default:
		return false
	}
	return true
}

// paeth chooses among left, above and above left the one nearest to left +
// above − above left.
func paeth(a, b, c int32) int32 {
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

func paethAny(row, above []byte, stride int) {
	for i := range min(stride, len(row)) {
		row[i] += above[i]
	}
	for i := stride; i < len(row); i++ {
		row[i] += byte(paeth(int32(row[i-stride]), int32(above[i]), int32(above[i-stride])))
	}
}

// paeth3 and paeth4 keep the pixels to the left in registers.
func paeth3(row, above []byte) {
	var a0, a1, a2, c0, c1, c2 int32
	for len(row) >= 3 && len(above) >= 3 {
		b0, b1, b2 := int32(above[0]), int32(above[1]), int32(above[2])
		a0 = (int32(row[0]) + paeth(a0, b0, c0)) & 255
		a1 = (int32(row[1]) + paeth(a1, b1, c1)) & 255
		a2 = (int32(row[2]) + paeth(a2, b2, c2)) & 255
		row[0], row[1], row[2] = byte(a0), byte(a1), byte(a2)
		c0, c1, c2 = b0, b1, b2
		row, above = row[3:], above[3:]
	}
}

func paeth4(row, above []byte) {
	var a0, a1, a2, a3, c0, c1, c2, c3 int32
	for len(row) >= 4 && len(above) >= 4 {
		b0, b1, b2, b3 := int32(above[0]), int32(above[1]), int32(above[2]), int32(above[3])
		a0 = (int32(row[0]) + paeth(a0, b0, c0)) & 255
		a1 = (int32(row[1]) + paeth(a1, b1, c1)) & 255
		a2 = (int32(row[2]) + paeth(a2, b2, c2)) & 255
		a3 = (int32(row[3]) + paeth(a3, b3, c3)) & 255
		row[0], row[1], row[2], row[3] = byte(a0), byte(a1), byte(a2), byte(a3)
		c0, c1, c2, c3 = b0, b1, b2, b3
		row, above = row[4:], above[4:]
	}
}
