package vp8plane

import "encoding/binary"

// predict fills macroblock x of row y as a whole.
func (s *strip) predict(x, y int, mode uint8) {
	at := s.at(x)
	above := s.pix[at-s.stride:][:s.side]
	switch mode {
	case flat:
		s.fill(at, s.mean(at, x > 0, y > 0))
	case vertical:
		for i := range s.side {
			copy(s.pix[at+i*s.stride:], above)
		}
	case horizontal:
		for i := range s.side {
			row := s.pix[at+i*s.stride-1:][:s.side+1]
			repeat(row[1:], row[0])
		}
	case gradient:
		s.gradient(at, s.side)
	}
}

func repeat(to []byte, v byte) {
	for i := 0; i+8 <= len(to); i += 8 {
		binary.LittleEndian.PutUint64(to[i:], uint64(v)*0x0101010101010101)
	}
}

func (s *strip) fill(at int, v byte) {
	for i := range s.side {
		repeat(s.pix[at+i*s.stride:][:s.side], v)
	}
}

// mean is that of the samples above and on the left, where there are such.
func (s *strip) mean(at int, left, top bool) byte {
	sum, n := 0, 0
	if top {
		for _, v := range s.pix[at-s.stride:][:s.side] {
			sum += int(v)
		}
		n += s.side
	}
	if left {
		for i := range s.side {
			sum += int(s.pix[at+i*s.stride-1])
		}
		n += s.side
	}
	if n == 0 {
		return 128
	}
	return byte((sum + n/2) / n)
}

// gradient fills a square with above + left − corner.
func (s *strip) gradient(at, side int) {
	above := s.pix[at-s.stride-1:][:side+1]
	corner := int32(above[0])
	above = above[1:]
	for i := range side {
		row := s.pix[at+i*s.stride-1:][:side+1]
		d := int32(row[0]) - corner
		row = row[1:][:len(above)]
		for j, v := range above {
			row[j] = clamp(int32(v) + d)
		}
	}
}

// predictSplit predicts the 16 parts of luma macroblock x one by one; each is
// finished by add before the next looks at it.
func (s *strip) predictSplit(x int, parts *[16]uint8, add func(block, at int)) {
	start := s.at(x)
	// The parts on the right look at the macroblock above and to the right, all
	// of them at its same four samples.
	farRight := [4]byte(s.pix[start-s.stride+16:])
	for i, mode := range parts {
		at := start + i/4*4*s.stride + i%4*4
		if i%4 == 3 && i > 3 {
			s.predictPart(at, mode, farRight)
		} else {
			s.predictPart(at, mode, [4]byte(s.pix[at-s.stride+4:]))
		}
		add(i, at)
	}
}

// predictPart fills 4×4 samples. Letters are those of the specification's
// picture: from the lower left corner up (L, K, J, I), the corner P, then A to H
// above from the left.
func (s *strip) predictPart(at int, mode uint8, right [4]byte) {
	switch mode {
	case gradient:
		s.gradient(at, 4)
		return
	case flat:
		s.flatPart(at)
		return
	}
	above := s.pix[at-s.stride-1:][:5]
	p, a, b, c, d := int(above[0]), int(above[1]), int(above[2]), int(above[3]), int(above[4])
	e := int(right[0])
	i, j := int(s.pix[at-1]), int(s.pix[at+s.stride-1])
	k, l := int(s.pix[at+2*s.stride-1]), int(s.pix[at+3*s.stride-1])
	switch mode {
	case vertical:
		row := word(three(p, a, b), three(a, b, c), three(b, c, d), three(c, d, e))
		s.rows(at, row, row, row, row)
	case horizontal:
		const all = 0x01010101
		s.rows(at, all*three(p, i, j), all*three(i, j, k), all*three(j, k, l), all*three(k, l, l))
	case rightDown:
		s.diagonal(at, 3, -1, three(l, k, j), three(k, j, i), three(j, i, p), three(i, p, a), three(p, a, b),
			three(a, b, c), three(b, c, d))
	case downRight:
		x, y := word(two(p, a), two(a, b), two(b, c), two(c, d)), word(three(i, p, a), three(p, a, b), three(a, b, c),
			three(b, c, d))
		s.rows(at, x, y, x<<8|three(j, i, p), y<<8|three(k, j, i))
	case rightSlow:
		x, y := word(two(l, k), three(l, k, j), two(k, j), three(k, j, i)), word(two(j, i), three(j, i, p), two(i, p),
			three(i, p, a))
		top := word(two(i, p), three(i, p, a), three(p, a, b), three(a, b, c))
		s.rows(at, top, y, x>>16|y<<16, x)
	case upRight:
		x := word(two(i, j), three(i, j, k), two(j, k), three(j, k, l))
		y := word(two(k, l), three(k, l, l), uint32(l), uint32(l))
		s.rows(at, x, x>>16|y<<16, y, word(uint32(l), uint32(l), uint32(l), uint32(l)))
	default:
		s.predictLeft(at, mode, [8]int{a, b, c, d, e, int(right[1]), int(right[2]), int(right[3])})
	}
}

// predictLeft fills by the two modes that look to the right above.
func (s *strip) predictLeft(at int, mode uint8, t [8]int) {
	a, b, c, d, e, f, g, h := t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]
	if mode == leftDown {
		s.diagonal(at, 0, 1, three(a, b, c), three(b, c, d), three(c, d, e), three(d, e, f), three(e, f, g),
			three(f, g, h), three(g, h, h))
		return
	}
	x, y := word(two(a, b), two(b, c), two(c, d), two(d, e)), word(three(a, b, c), three(b, c, d), three(c, d, e),
		three(d, e, f))
	s.rows(at, x, y, x>>8|three(e, f, g)<<24, y>>8|three(f, g, h)<<24)
}

// diagonal fills four rows with parts of seven values, the first row from index
// first on, each further one moved by step.
func (s *strip) diagonal(at, first, step int, values ...uint32) {
	for y := range 4 {
		row := s.pix[at+y*s.stride:][:4]
		from := values[first+y*step:][:4]
		row[0], row[1], row[2], row[3] = byte(from[0]), byte(from[1]), byte(from[2]), byte(from[3])
	}
}

func (s *strip) rows(at int, rows ...uint32) {
	for y, row := range rows {
		binary.LittleEndian.PutUint32(s.pix[at+y*s.stride:], row)
	}
}

func (s *strip) flatPart(at int) {
	sum := 4
	for _, v := range s.pix[at-s.stride:][:4] {
		sum += int(v)
	}
	for y := range 4 {
		sum += int(s.pix[at+y*s.stride-1])
	}
	row := uint32(sum>>3) * 0x01010101
	s.rows(at, row, row, row, row)
}

func two(a, b int) uint32      { return uint32(a+b+1) >> 1 }
func three(a, b, c int) uint32 { return uint32(a+2*b+c+2) >> 2 }

// word packs four samples, the leftmost in the lowest byte.
func word(a, b, c, d uint32) uint32 { return a | b<<8 | c<<16 | d<<24 }
