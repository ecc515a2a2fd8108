package jpegplane

import "encoding/binary"

// padding after the scan's bytes: more than the blocks of one MCU can ask for
// (10 blocks of 64 coefficients of 31 bits), so that the end is looked at once
// an MCU only.
const padding = 4096

// reader reads bits from bytes without stuffing. acc holds n valid bits at its
// top; what lies below is either valid too or zero.
type reader struct {
	buf []byte
	pos int
	acc uint64
	n   uint
}

func (r *reader) seek(pos int) { r.pos, r.acc, r.n = pos, 0, 0 }

// used is how many bytes were taken, a started one included.
func (r *reader) used() int { return r.pos - int(r.n/8) }

// block decodes one block: out[0] becomes the difference of the DC coefficient,
// out[1…last] the AC coefficients in zigzag order. The rest is walked over.
func (r *reader) block(dc, ac *huffman, out *[32]int32, last int) bool {
	buf, pos, acc, n := r.buf, r.pos, r.acc, r.n
	acc |= binary.BigEndian.Uint64(buf[pos:]) >> n
	pos += int(63-n) >> 3
	n |= 56
	symbol, length := byte(0), uint(0)
	if entry := dc.symbol[acc>>(64-lookBits)]; entry != 0 {
		symbol, length = byte(entry), uint(entry>>8)
	} else if symbol, length = dc.long(uint32(acc >> 48)); length == 0 {
		return false
	}
	size := uint(symbol)
	if size > 15 {
		return false
	}
	acc <<= length
	out[0] = 0
	if size > 0 {
		out[0] = extend(acc>>(64-size), size)
	}
	acc <<= size
	n -= length + size

	k := 1
	for k <= last {
		acc |= binary.BigEndian.Uint64(buf[pos:]) >> n
		pos += int(63-n) >> 3
		n |= 56
		if entry := ac.value[acc>>(64-lookBits)]; entry != 0 {
			bits := uint(entry & 15)
			acc <<= bits
			n -= bits
			k += int(entry >> 8 & 127)
			if k > 63 {
				r.pos, r.acc, r.n = pos, acc, n
				return entry>>8&127 == 64
			}
			if k <= last {
				out[k&31] = entry >> 16
			}
			k++
			continue
		}
		steps, value, bits := ac.one(acc)
		if bits == 0 {
			return false
		}
		acc <<= bits
		n -= bits
		k += steps
		if k > 64 {
			r.pos, r.acc, r.n = pos, acc, n
			return steps == ended
		}
		if k-1 <= last {
			out[(k-1)&31] = value
		}
	}
	for k < 64 {
		acc |= binary.BigEndian.Uint64(buf[pos:]) >> n
		pos += int(63-n) >> 3
		n |= 56
		entry := ac.skip[acc>>(64-lookBits)]
		bits := uint(entry & 15)
		next := k + int(entry>>4)
		if bits == 0 || next > 64 && next < ended || next >= ended+64 {
			var steps int
			if steps, _, bits = ac.one(acc); bits == 0 {
				return false
			}
			next = k + steps
			if next > 64 && steps != ended {
				return false
			}
		}
		acc <<= bits
		n -= bits
		k = next
	}
	r.pos, r.acc, r.n = pos, acc, n
	return true
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

// unstuff copies a scan's entropy-coded bytes without stuffing. starts are the
// places in the copy where a restart interval begins, the first included.
// complete is false when the data ends without a marker.
func unstuff(data []byte) (buf []byte, starts []int, complete bool) {
	buf = make([]byte, 0, len(data)+padding)
	starts = []int{0}
	for len(data) > 0 {
		i := indexFF(data)
		buf = append(buf, data[:i]...)
		if data = data[i:]; len(data) < 2 {
			break
		}
		switch marker := data[1]; {
		case marker == 0:
			buf = append(buf, 0xff)
			data = data[2:]
		case marker == 0xff: // fill byte
			data = data[1:]
		case marker >= 0xd0 && marker <= 0xd7:
			starts = append(starts, len(buf))
			data = data[2:]
		default:
			return buf, starts, true
		}
	}
	return buf, starts, false
}
