package vp8plane

import "encoding/binary"

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
// registers; a coefficient begins with enough bits for all but the large ones.
func (b *bools) block(chances *[bands][contexts][branches]uint8, context int, first int, steps *[2]int32,
	out *[16]int16) int {
	value, wide, n, pos, buf := b.value, b.wide, b.n, b.pos, b.buf
	var used uint
	var yes bool
	last := len(buf) - 8
	p := &chances[bandOf[first]][context]
	k := first
	fresh := true // a place where the block may end
	for k < 16 {
		if n < 36 { // four decisions of up to 7 bits, and 8 to look at
			pos = min(pos, last)
			value |= binary.BigEndian.Uint64(buf[pos:]) >> (n & 63)
			pos += int(63-n) >> 3
			n |= 56
		}
		if fresh {
			value, wide, used, yes = decide(value, wide, p[0])
			if n -= used; !yes {
				break
			}
		}
		value, wide, used, yes = decide(value, wide, p[1])
		n -= used
		k++
		if !yes {
			p, fresh = &chances[bandOf[k]][0], false
			continue
		}
		value, wide, used, yes = decide(value, wide, p[2])
		n -= used
		size := int32(1)
		if yes {
			b.value, b.wide, b.n, b.pos = value, wide, n, pos
			size = b.large(p)
			value, wide, n, pos = b.value, b.wide, b.n, b.pos
			p = &chances[bandOf[k]][2]
		} else {
			p = &chances[bandOf[k]][1]
		}
		value, wide, size = sign(value, wide, size)
		n--
		step := steps[1]
		if k == 1 {
			step = steps[0]
		}
		out[zigzag[(k-1)&15]&15] = int16(size * step)
		fresh = true
	}
	b.value, b.wide, b.n, b.pos = value, wide, n, pos
	if !fresh {
		return 16 // zeros up to the end
	}
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
