package jpegplane

// lookBits is how many bits the tables look at in one go.
const lookBits = 13

// huffman is one table of codes in the three forms that decoding needs.
type huffman struct {
	// symbol: length<<8 | symbol for codes of up to lookBits; 0 for longer ones.
	symbol [1 << lookBits]uint16
	// value: coefficient<<16 | run<<8 | bits for an AC symbol whose magnitude
	// lies in the look too; bits is 0 where it does not. A run of 64 is the end
	// of the block.
	value [1 << lookBits]int32
	// skip: steps<<4 | bits over as many whole AC symbols as lie in the look;
	// never where not one does. ended is added where the last ends the block.
	skip *skips
	// limit[l] is one more than the largest code of length l, moved up to 16
	// bits; first[l] turns such a code into an index of symbols (T.81, F.2.2.3).
	limit   [18]uint32
	first   [17]int32
	symbols []byte
}

type skips [1 << lookBits]uint16

// ended marks entries of skip that end the block; never is more steps than a
// block has.
const (
	ended = 128
	never = 512
)

// newHuffman builds a table from the counts of codes by length and the symbols;
// values are made and skips on demand: each takes as long as a few hundred
// blocks. ok is false when the counts describe no prefix code.
func newHuffman(counts [16]byte, symbols []byte, values, skips bool) (h *huffman, ok bool) {
	h = &huffman{symbols: symbols}
	code, index := uint32(0), 0
	for l := 1; l <= 16; l++ {
		n := int(counts[l-1])
		h.first[l] = int32(index) - int32(code)
		for range n {
			if code >= 1<<l {
				return nil, false
			}
			h.enter(code, l, symbols[index])
			code++
			index++
		}
		h.limit[l] = code << (16 - l)
		code <<= 1
	}
	h.limit[17] = 1 << 16
	if values {
		h.buildValues()
	}
	if skips {
		h.buildSkips()
	}
	return h, true
}

func (h *huffman) enter(code uint32, length int, symbol byte) {
	if length > lookBits {
		return
	}
	free := lookBits - length
	entry := uint16(length)<<8 | uint16(symbol)
	for i := code << free; i < (code+1)<<free; i++ {
		h.symbol[i] = entry
	}
}

// long finds a code of more than lookBits at the top of 16 bits; length 0 is
// none.
func (h *huffman) long(look uint32) (symbol byte, length uint) {
	for l := uint(lookBits + 1); l <= 16; l++ {
		if look < h.limit[l] {
			i := int32(look>>(16-l)) + h.first[l]
			if i < 0 || int(i) >= len(h.symbols) {
				return 0, 0
			}
			return h.symbols[i], l
		}
	}
	return 0, 0
}

func (h *huffman) buildValues() {
	for look := range h.value {
		entry := h.symbol[look]
		length, run, size := int(entry>>8), int(entry>>4&15), int(entry&15)
		switch {
		case length == 0 || length+size > lookBits:
		case size > 0:
			bits := look >> (lookBits - length - size) & (1<<size - 1)
			h.value[look] = int32(extend(uint64(bits), uint(size)))<<16 | int32(run)<<8 | int32(length+size)
		case run == 15:
			h.value[look] = 15<<8 | int32(length)
		case run == 0:
			h.value[look] = 64<<8 | int32(length)
		}
	}
}

func (h *huffman) buildSkips() {
	h.skip = new(skips)
	for look := range h.skip {
		steps, used := 0, 0
		for used < lookBits {
			entry := h.symbol[look<<used&(1<<lookBits-1)]
			length, run, size := int(entry>>8), int(entry>>4&15), int(entry&15)
			if length == 0 || used+length+size > lookBits || steps+run+1 > 63 || size == 0 && run != 0 && run != 15 {
				break
			}
			used += length + size
			if size == 0 && run == 0 {
				steps += ended
				break
			}
			steps += run + 1
		}
		if used == 0 {
			steps = never
		}
		h.skip[look] = uint16(steps<<4 | used)
	}
}

// extend makes a coefficient of its magnitude bits (T.81, F.2.2.1).
func extend(bits uint64, size uint) int32 {
	v := int32(bits)
	if v < 1<<(size-1) {
		v += -1<<size + 1
	}
	return v
}
