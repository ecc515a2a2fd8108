package jpegplane

import "encoding/binary"

// padding after the scan's bytes: more than the blocks of one MCU can ask for
// (10 blocks of 64 coefficients of 31 bits), so that the end is looked at once
// an MCU only.
const padding = 4096

// reader reads bits from bytes without stuffing; padding zeros follow them. acc
// holds n valid bits at its top; what lies below is either valid too or zero.
type reader struct {
	buf []byte
	pos int
	acc uint64
	n   uint
}

func (r *reader) seek(pos int) { r.pos, r.acc, r.n = pos, 0, 0 }

// used is how many bytes were taken, a started one included.
func (r *reader) used() int { return r.pos - int(r.n/8) }

// refill tops acc up to at least 56 bits.
func (r *reader) refill() {
	r.acc |= binary.BigEndian.Uint64(r.buf[r.pos:]) >> (r.n & 63)
	r.pos += int(63-r.n) >> 3
	r.n |= 56
}

func (r *reader) drop(bits uint) {
	r.acc <<= bits & 63
	r.n -= bits
}

// block decodes one block: out[0] becomes the difference of the DC coefficient,
// out[1…last] the AC coefficients in zigzag order. The rest is walked over.
func (r *reader) block(dc, ac *huffman, out *[32]int32, last int) bool {
	r.refill()
	symbol, length := byte(0), uint(0)
	if entry := dc.symbol[r.acc>>(64-lookBits)]; entry != 0 {
		symbol, length = byte(entry), uint(entry>>8)
	} else if symbol, length = dc.long(uint32(r.acc >> 48)); length == 0 {
		return false
	}
	size := uint(symbol)
	if size > 15 {
		return false
	}
	r.drop(length)
	out[0] = 0
	if size > 0 {
		out[0] = extend(r.acc>>((64-size)&63), size)
	}
	r.drop(size)
	k := 1
	if last > 0 {
		k = r.values(ac, out, last)
	}
	for k < 64 {
		if k = r.skip(ac.skip, k); k >= 64 {
			break
		}
		r.refill()
		steps, _, bits := ac.one(r.acc)
		if bits == 0 {
			return false
		}
		r.drop(bits)
		if k += steps; k > 64 && steps != ended {
			return false
		}
	}
	return k != broken
}

// broken is a place in a block that no block has.
const broken = 1 << 10

// values decodes symbols until last is behind and returns the next index, 64 or
// more at the end of the block.
func (r *reader) values(ac *huffman, out *[32]int32, last int) int {
	buf, pos, acc, n := r.buf, r.pos, r.acc, r.n
	k := 1
	for k <= last {
		acc |= binary.BigEndian.Uint64(buf[pos:]) >> (n & 63)
		pos += int(63-n) >> 3
		n |= 56
		entry := ac.value[acc>>(64-lookBits)]
		if entry == 0 {
			r.pos, r.acc, r.n = pos, acc, n
			if k = r.slowValue(ac, out, k, last); k >= 64 {
				return k
			}
			acc, n = r.acc, r.n
			continue
		}
		bits := uint(entry & 15)
		acc <<= bits
		n -= bits
		run := int(entry >> 8 & 127)
		if k += run; k > 63 {
			r.pos, r.acc, r.n = pos, acc, n
			if run == 64 {
				return ended
			}
			return broken
		}
		if k <= last {
			out[k&31] = entry >> 16
		}
		k++
	}
	r.pos, r.acc, r.n = pos, acc, n
	return k
}

// slowValue decodes one symbol that does not fit into a look.
func (r *reader) slowValue(ac *huffman, out *[32]int32, k, last int) int {
	steps, value, bits := ac.one(r.acc)
	if bits == 0 {
		return broken
	}
	r.drop(bits)
	if k += steps; k > 64 {
		if steps == ended {
			return ended
		}
		return broken
	}
	if k-1 <= last {
		out[(k-1)&31] = value
	}
	return k
}

// skip steps over symbols from index k on. It returns 64 or more when the block
// is done, else the index of a symbol that needs a closer look. It calls
// nothing, so that its five variables stay in registers.
func (r *reader) skip(table *skips, k int) int {
	buf, pos, acc, n := r.buf, r.pos, r.acc, r.n
	for {
		acc |= binary.BigEndian.Uint64(buf[pos:]) >> (n & 63)
		pos += int(63-n) >> 3
		n |= 56
		for range 4 { // a refill gives four looks
			entry := uint(table[acc>>(64-lookBits)])
			next := k + int(entry>>4)
			if next < 64 {
				acc <<= entry & 15
				n -= entry & 15
				k = next
				continue
			}
			if next == 64 || next-ended < 64 && next >= ended {
				acc <<= entry & 15
				n -= entry & 15
				k = next
			}
			r.pos, r.acc, r.n = pos, acc, n
			return k
		}
	}
}

// one reads a single AC symbol at the top of acc, which holds at least 56 bits:
// how many coefficients it steps over, itself included (ended: to the end of
// the block), its value, and its bits; 0 bits when there is no such code.
func (h *huffman) one(acc uint64) (steps int, value int32, bits uint) {
	symbol, length := byte(0), uint(0)
	if entry := h.symbol[acc>>(64-lookBits)]; entry != 0 {
		symbol, length = byte(entry), uint(entry>>8)
	} else if symbol, length = h.long(uint32(acc >> 48)); length == 0 {
		return 0, 0, 0
	}
	run, size := int(symbol>>4), uint(symbol&15)
	switch {
	case size > 0:
		return run + 1, extend(acc<<length>>(64-size), size), length + size
	case run == 15:
		return 16, 0, length
	case run == 0:
		return ended, 0, length
	}
	return 0, 0, 0
}

// scanLength is how many bytes there are before the marker that ends a scan.
func scanLength(data []byte) int {
	for at := 0; ; at += 2 {
		i := indexFF(data[at:])
		at += i
		if at+2 > len(data) {
			return len(data)
		}
		if m := data[at+1]; m == 0xff {
			at--
		} else if m != 0 && (m < 0xd0 || m > 0xd7) {
			return at
		}
	}
}

// take reads count ≤ 16 bits as a number.
func (r *reader) take(count uint) uint64 {
	if r.n < count {
		r.refill()
	}
	v := r.acc >> 1 >> (63 - count)
	r.drop(count)
	return v
}

// symbol reads one code; ok is false when there is none. At least 40 bits are
// left in acc after it.
func (r *reader) symbol(h *huffman) (symbol byte, ok bool) {
	r.refill()
	if entry := h.symbol[r.acc>>(64-lookBits)]; entry != 0 {
		r.drop(uint(entry >> 8))
		return byte(entry), true
	}
	symbol, length := h.long(uint32(r.acc >> 48))
	r.drop(length)
	return symbol, length != 0
}
