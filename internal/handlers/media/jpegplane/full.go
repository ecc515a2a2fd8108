package jpegplane

import (
	"encoding/binary"
	"math"
	"sync"
)

// Sizes of 6 and 8 samples a block's side: pictures that are hardly made
// smaller. The inverse transform is two multiplications by a matrix, in vectors.

// basisBits is how many bits matrices carry after the point, between how many
// what is kept between the two passes.
const (
	basisBits = 14
	between   = 3
)

// basis is the matrix of the inverse transform of n samples, whose columns from
// n on are zero: a picture at n/8 has no finer waves.
type basis struct {
	n    int
	rows [8][8]int16
	// pairs is rows again, by pairs of columns: for two coefficients what they
	// give to each sample.
	pairs [4][8][2]int16
}

var bases = sync.OnceValue(func() *[9]*basis {
	var all [9]*basis
	for _, n := range []int{6, 8} {
		all[n] = newBasis(n)
	}
	return &all
})

func newBasis(n int) *basis {
	b := &basis{n: n}
	for x := range n {
		for u := range n {
			scale := 0.5
			if u == 0 {
				scale = math.Sqrt(0.125)
			}
			v := int16(math.Round(scale * math.Cos(float64(2*x+1)*float64(u)*math.Pi/float64(2*n)) * (1 << basisBits)))
			b.rows[x][u], b.pairs[u/2][x][u%2] = v, v
		}
	}
	return b
}

// inverseGo is the transform in plain Go: columns, then rows.
func inverseGo(dst []byte, stride int, c *[64]int16, b *basis) {
	var t [8]int32
	for y := range b.n {
		for u := range 8 {
			sum := int32(1) << (basisBits - between - 1)
			for v, w := range b.rows[y] {
				sum += int32(w) * int32(c[8*v+u])
			}
			t[u] = min(max(sum>>(basisBits-between), math.MinInt16), math.MaxInt16)
		}
		for x := range b.n {
			sum := int32(1) << (basisBits + between - 1)
			for u, w := range b.rows[x] {
				sum += int32(w) * t[u]
			}
			dst[y*stride+x] = clamp(min(max(sum>>(basisBits+between), math.MinInt16), math.MaxInt16-128))
		}
	}
}

// natural holds the place of each zigzag index in a block, row by row.
var natural = [64]uint8{
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
}

// fullMCU decodes one MCU at 6 or 8 samples a side.
func (d *decoder) fullMCU(r *reader, x, y int) bool {
	var c [64]int16
	b := bases()[d.scale]
	for i := range d.planes {
		p := &d.planes[i]
		for v := range p.v {
			for h := range p.h {
				clear(c[:])
				difference, ok := r.difference(p.dc)
				if !ok || !r.coefficients(p.ac, p.quant, &c) {
					return false
				}
				p.prediction += difference
				c[0] = int16(p.prediction * int32(p.quant[0]))
				at := ((y*p.v+v)*p.Stride + (x*p.h + h)) * d.scale
				inverse(p.Pix[at:], p.Stride, &c, b)
			}
		}
	}
	return true
}

// difference decodes a DC coefficient's difference from the one before.
func (r *reader) difference(dc *huffman) (v int32, ok bool) {
	size, ok := r.symbol(dc)
	if !ok || size > 15 {
		return 0, false
	}
	if size > 0 {
		v = extend(r.acc>>((64-uint(size))&63), uint(size))
		r.drop(uint(size))
	}
	return v, true
}

// coefficients decodes all AC coefficients of a block, times their quantiser's
// step.
func (r *reader) coefficients(ac *huffman, quant *[64]uint16, c *[64]int16) bool {
	buf, pos, acc, n := r.buf, r.pos, r.acc, r.n
	for k := 1; k < 64; k++ {
		if n < 32 {
			acc |= binary.BigEndian.Uint64(buf[pos:]) >> (n & 63)
			pos += int(63-n) >> 3
			n |= 56
		}
		entry := ac.value[acc>>(64-lookBits)]
		if entry == 0 {
			r.pos, r.acc, r.n = pos, acc, n
			steps, value, bits := ac.one(acc)
			r.drop(bits)
			if acc, n = r.acc, r.n; bits == 0 {
				return false
			}
			if steps == ended {
				break
			}
			if k += steps - 1; k > 63 {
				return false
			}
			c[natural[k]&63] = int16(value * int32(quant[k]))
			continue
		}
		bits := uint(entry & 15)
		acc <<= bits
		n -= bits
		run := int(entry >> 8 & 127)
		if k += run; k > 63 {
			r.pos, r.acc, r.n = pos, acc, n
			return run == 64
		}
		c[natural[k]&63] = int16(entry >> 16 * int32(quant[k]))
	}
	r.pos, r.acc, r.n = pos, acc, n
	return true
}
