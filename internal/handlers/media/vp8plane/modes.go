package vp8plane

// The ways in which a block is predicted of what is above and on its left. The
// first four are those of whole macroblocks too.
const (
	flat       = iota // the mean
	gradient          // above + left − corner
	vertical          // what is above
	horizontal        // what is on the left
	rightDown         // the rest are diagonals
	downRight         // steeper
	leftDown
	downLeft // steeper
	rightSlow
	upRight
	modes
)

// macroblock is the header of one (RFC 6386, 19.3).
type macroblock struct {
	segment int
	skipped bool // it has no coefficients
	split   bool // luma is predicted in 16 parts
	luma    uint8
	parts   [16]uint8
	chroma  uint8
}

func (d *decoder) macroblockHeader(above *edge) (m macroblock) {
	b := &d.head
	if s := &d.segments; s.mapped {
		if !b.bit(s.chances[0]) {
			m.segment = int(flag(b.bit(s.chances[1])))
		} else {
			m.segment = 2 + int(flag(b.bit(s.chances[2])))
		}
	}
	m.skipped = d.skips && b.bit(d.skipChance)
	if m.split = !b.bit(145); m.split {
		d.partModes(above, &m.parts)
	} else {
		m.luma = lumaMode(b)
		for i := range 4 {
			d.left.modes[i], above.modes[i] = m.luma, m.luma
		}
	}
	m.chroma = chromaMode(b)
	return m
}

func lumaMode(b *bools) uint8 {
	if !b.bit(156) {
		if !b.bit(163) {
			return flat
		}
		return vertical
	}
	if !b.bit(128) {
		return horizontal
	}
	return gradient
}

func chromaMode(b *bools) uint8 {
	switch {
	case !b.bit(142):
		return flat
	case !b.bit(114):
		return vertical
	case !b.bit(183):
		return horizontal
	}
	return gradient
}

// partModes reads the modes of the 16 parts; each depends on those above it and
// on its left.
func (d *decoder) partModes(above *edge, parts *[16]uint8) {
	for y := range 4 {
		left := d.left.modes[y]
		for x := range 4 {
			left = partMode(&d.head, &modeChances[above.modes[x]][left])
			above.modes[x], parts[4*y+x] = left, left
		}
		d.left.modes[y] = left
	}
}

// partMode walks the tree of modes (11.2).
func partMode(b *bools, p *[modes - 1]uint8) uint8 {
	switch {
	case !b.bit(p[0]):
		return flat
	case !b.bit(p[1]):
		return gradient
	case !b.bit(p[2]):
		return vertical
	case !b.bit(p[3]):
		if !b.bit(p[4]) {
			return horizontal
		}
		return rightDown + flag(b.bit(p[5]))
	case !b.bit(p[6]):
		return leftDown
	case !b.bit(p[7]):
		return downLeft
	}
	return rightSlow + flag(b.bit(p[8]))
}
