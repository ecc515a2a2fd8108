package vp8plane

// The dimensions of the token probabilities (RFC 6386, 13.3).
const (
	planes   = 4
	bands    = 8
	contexts = 3
	branches = 11
)

// The kinds of blocks that have their own probabilities.
const (
	lumaAfterDC = iota // its first coefficient is in the block of DCs
	lumaDCs
	chroma
	luma
)

// bandOf is the band of a coefficient; one more for the place behind the last.
var bandOf = [17]uint8{0, 1, 2, 3, 6, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 0}

var zigzag = [16]uint8{0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15}

// extraBits are the chances of the bits of the four largest categories (13.2).
var extraBits = [4][]uint8{
	{173, 148, 140},
	{176, 155, 140, 135},
	{180, 157, 141, 134, 130},
	{254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129},
}

// block decodes the coefficients of one block from the one with index first on
// and writes them, times their quantiser's step, into out, which is zero. It
// returns one more than the index of the last one.
//
// The decoder's state is kept in variables, not in b, so that it stays in
// registers; a coefficient begins with enough bits for all but the large ones. Each
// way out of a decision goes on by itself: joined, they would be asked for twice.
func (b *bools) block(chances *[bands][contexts][branches]uint8, context int, first int, steps *[2]int32,
	out *[16]int16) int {
	value, wide, n := b.value, b.wide, b.n
	p := &chances[bandOf[first]][context]
	k := first
	for k < 16 {
		if n < 36 { // four decisions of up to 7 bits, and 8 to look at
			value, n = b.more(value, n)
		}
		split := 1 + (wide-1)*uint64(p[0])>>8
		if value>>56 < split { // the block ends
			value, wide, n = normal(value, split, n)
			break
		}
		value, wide, n = normal(value-split<<56, wide-split, n)
		for {
			split = 1 + (wide-1)*uint64(p[1])>>8
			k++
			if value>>56 >= split {
				value, wide, n = normal(value-split<<56, wide-split, n)
				break
			}
			value, wide, n = normal(value, split, n)
			if k == 16 { // zeros up to the end
				b.value, b.wide, b.n = value, wide, n
				return 16
			}
			p = &chances[bandOf[k]][0]
			if n < 36 {
				value, n = b.more(value, n)
			}
		}
		size := int32(1)
		split = 1 + (wide-1)*uint64(p[2])>>8
		if value>>56 < split {
			value, wide, n = normal(value, split, n)
			p = &chances[bandOf[k]][1]
		} else {
			b.value, b.wide, b.n = normal(value-split<<56, wide-split, n)
			size = b.large(p)
			value, wide, n = b.value, b.wide, b.n
			p = &chances[bandOf[k]][2]
		}
		value, wide, size = sign(value, wide, size)
		n--
		step := steps[1]
		if k == 1 {
			step = steps[0]
		}
		out[zigzag[(k-1)&15]&15] = int16(size * step)
	}
	b.value, b.wide, b.n = value, wide, n
	return k
}

// large decodes a coefficient's size of two and more. It leaves 16 bits.
func (b *bools) large(p *[branches]uint8) int32 {
	size := b.size2(p)
	if b.n < 16 {
		b.refill()
	}
	return size
}

func (b *bools) size2(p *[branches]uint8) int32 {
	if !b.bit(p[3]) {
		if !b.bit(p[4]) {
			return 2
		}
		return 3 + b.extra(p[5:6])
	}
	if !b.bit(p[6]) {
		if !b.bit(p[7]) {
			return 5 + b.extra([]uint8{159})
		}
		return 7 + b.extra([]uint8{165, 145})
	}
	category := b.extra(p[8:9]) << 1
	category |= b.extra(p[9+category/2:][:1])
	return 3 + 8<<category + b.extra(extraBits[category])
}

// extra reads a number whose bits have these chances.
func (b *bools) extra(chances []uint8) (v int32) {
	for _, chance := range chances {
		v <<= 1
		if b.bit(chance) {
			v |= 1
		}
	}
	return v
}
