package vp8plane

import "encoding/binary"

// header is what a frame says before its first macroblock (RFC 6386, 9).
type header struct {
	width, height int
	segments      segments
	filtered      bool
	steps         [4]steps
	tokenChances  [planes][bands][contexts][branches]uint8
	// skips says that macroblocks tell whether they have coefficients.
	skips      bool
	skipChance uint8
}

// segments let parts of a picture have their own quantisers.
type segments struct {
	on, mapped, absolute bool
	quantiser            [4]int
	chances              [3]uint8
}

// steps are the quantiser's, of a block's first coefficient and of the others.
type steps struct{ luma, dcs, chroma [2]int32 }

// open reads all that comes before the macroblocks.
func (d *decoder) open(frame []byte) error {
	if len(frame) < 10 || frame[0]&1 != 0 || string(frame[3:6]) != "\x9d\x01\x2a" {
		return unsupported("no key frame")
	}
	first := int(frame[0])>>5 | int(frame[1])<<3 | int(frame[2])<<11
	d.width, d.height = int(binary.LittleEndian.Uint16(frame[6:])&0x3fff),
		int(binary.LittleEndian.Uint16(frame[8:])&0x3fff)
	rest := frame[10:]
	if d.width == 0 || d.height == 0 || first > len(rest) {
		return unsupported("size")
	}
	d.across, d.down = ceil(d.width, 16), ceil(d.height, 16)
	d.head = newBools(rest[:first])
	b := &d.head
	b.number(2) // colour space, clamping
	d.readSegments(b)
	d.readFilter(b)
	partitions := 1 << b.number(2)
	d.readQuantisers(b)
	b.bit(even) // whether the probabilities are for later frames too
	d.readTokenChances(b)
	if d.skips = b.bit(even); d.skips {
		d.skipChance = uint8(b.number(8))
	}
	if b.overrun() {
		return unsupported("it ends in its header")
	}
	return d.openPartitions(rest[first:], partitions)
}

func (d *decoder) openPartitions(data []byte, n int) error {
	sizes := 3 * (n - 1)
	if len(data) < sizes {
		return unsupported("it ends before its coefficients")
	}
	table, rest := data[:sizes], data[sizes:]
	for ; len(table) > 0; table = table[3:] {
		size := int(table[0]) | int(table[1])<<8 | int(table[2])<<16
		if size > len(rest) {
			return unsupported("a partition is cut")
		}
		d.tokens = append(d.tokens, newBools(rest[:size]))
		rest = rest[size:]
	}
	d.tokens = append(d.tokens, newBools(rest))
	return nil
}

func (d *decoder) readSegments(b *bools) {
	s := &d.segments
	s.chances = [3]uint8{255, 255, 255}
	if s.on = b.bit(even); !s.on {
		return
	}
	s.mapped = b.bit(even)
	if b.bit(even) {
		s.absolute = b.bit(even)
		for i := range s.quantiser {
			s.quantiser[i] = b.optional(7)
		}
		for range 4 {
			b.optional(6) // of the loop filter
		}
	}
	if !s.mapped {
		return
	}
	for i := range s.chances {
		if b.bit(even) {
			s.chances[i] = uint8(b.number(8))
		}
	}
}

func (d *decoder) readFilter(b *bools) {
	b.bit(even) // its type
	d.filtered = b.number(6) != 0
	b.number(3)                     // its sharpness
	if b.bit(even) && b.bit(even) { //nolint:staticcheck // each call reads a bit
		for range 8 {
			b.optional(6)
		}
	}
}

// readQuantisers reads the indices of the quantisers (9.6).
func (d *decoder) readQuantisers(b *bools) {
	base := b.number(7)
	lumaDC, dcsDC, dcsAC, chromaDC, chromaAC := b.optional(4), b.optional(4), b.optional(4), b.optional(4),
		b.optional(4)
	for i := range d.steps {
		q := base
		switch s := d.segments; {
		case s.on && s.absolute:
			q = s.quantiser[i]
		case s.on:
			q += s.quantiser[i]
		}
		d.steps[i] = steps{
			luma:   [2]int32{dcStep(q + lumaDC), acStep(q)},
			dcs:    [2]int32{2 * dcStep(q+dcsDC), max(8, acStep(q+dcsAC)*155/100)},
			chroma: [2]int32{min(132, dcStep(q+chromaDC)), acStep(q + chromaAC)},
		}
	}
}

func dcStep(i int) int32 { return int32(dcSteps[min(max(i, 0), 127)]) }
func acStep(i int) int32 { return int32(acSteps[min(max(i, 0), 127)]) }

func (d *decoder) readTokenChances(b *bools) {
	d.tokenChances = usual
	for i := range d.tokenChances {
		for j := range d.tokenChances[i] {
			for k := range d.tokenChances[i][j] {
				for l := range d.tokenChances[i][j][k] {
					if b.bit(changed[i][j][k][l]) {
						d.tokenChances[i][j][k][l] = uint8(b.number(8))
					}
				}
			}
		}
	}
}
