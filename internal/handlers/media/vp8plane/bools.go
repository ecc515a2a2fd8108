package vp8plane

import (
	"encoding/binary"
	"math/bits"
)

// padding after a partition's bytes: what a refill may read beyond them.
const padding = 16

// bools is the arithmetic decoder of RFC 6386, 7: value holds n valid bits at its
// top, and zeros (or more valid bits) below.
type bools struct {
	buf   []byte // with padding
	size  int    // without
	pos   int
	value uint64
	n     uint
	wide  uint64 // the range, 128 to 255
}

func newBools(data []byte) bools {
	buf := make([]byte, len(data)+padding)
	copy(buf, data)
	return bools{buf: buf, size: len(data), wide: 255}
}

// refill tops value up to at least 56 bits: enough for six decisions.
func (b *bools) refill() { b.value, b.n = b.more(b.value, b.n) }

// more is refill of a value with n bits that is not b's own.
func (b *bools) more(value uint64, n uint) (newValue uint64, newN uint) {
	// Behind the end all is zero; overrun tells.
	pos := min(b.pos, len(b.buf)-8)
	value |= binary.BigEndian.Uint64(b.buf[pos:]) >> (n & 63)
	b.pos = pos + int(63-n)>>3
	return value, n | 56
}

// overrun says whether more was asked for than there is. Encoders leave
// out zeros at the end.
func (b *bools) overrun() bool { return b.pos-int(b.n/8) > b.size+1 }

// normal makes wide at least 128 again after a decision.
func normal(value, wide uint64, n uint) (newValue, newWide uint64, newN uint) {
	used := zeros[uint8(wide)] & 7
	return value << used, wide << used, n - uint(used)
}

// zeros is how many zeros a byte begins with: on older processors faster than the
// instruction that Go has for it.
var zeros = func() (z [256]uint8) {
	for i := range z {
		z[i] = uint8(bits.LeadingZeros8(uint8(i)))
	}
	return z
}()

// sign gives size the sign that an even decision takes, without a branch, which
// would be guessed wrongly every other time. Any decision before it has left wide
// below 255, so that value always moves by one.
func sign(value, wide uint64, size int32) (newValue, newWide uint64, signed int32) {
	split := (wide + 1) / 2
	rest, no := bits.Sub64(value, split<<56, 0)
	value += (rest - value) & (no - 1)
	wide = split + (wide-2*split)&(no-1)
	minus := int32(no) - 1
	return value << 1, wide << 1, size ^ minus - minus
}

// bit takes one decision; chance of 256 is that of a no.
func (b *bools) bit(chance uint8) bool {
	if b.n < 16 {
		b.refill()
	}
	split := 1 + (b.wide-1)*uint64(chance)>>8
	if b.value>>56 < split {
		b.value, b.wide, b.n = normal(b.value, split, b.n)
		return false
	}
	b.value, b.wide, b.n = normal(b.value-split<<56, b.wide-split, b.n)
	return true
}

const even = 128

// number reads an unsigned number of count bits.
func (b *bools) number(count int) (v int) {
	for range count {
		v <<= 1
		if b.bit(even) {
			v |= 1
		}
	}
	return v
}

// optional reads a flag and, where it is set, a number with a sign behind it.
func (b *bools) optional(count int) int {
	if !b.bit(even) {
		return 0
	}
	v := b.number(count)
	if b.bit(even) {
		return -v
	}
	return v
}
