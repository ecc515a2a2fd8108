package vp8plane

import (
	"errors"
	"fmt"
)

// ErrUnsupported says that a full decoder has to be asked.
var ErrUnsupported = errors.New("vp8plane: not a whole key frame of VP8")

func unsupported(why string) error { return fmt.Errorf("%w: %s", ErrUnsupported, why) }

// Plane holds the samples of one component.
type Plane struct {
	Pix                   []byte
	Stride, Width, Height int
}

// Picture is a decoded frame: luma, and Cb and Cr at half of its size each way,
// in the studio range of BT.601.
type Picture struct{ Y, Cb, Cr Plane }

// Decode decodes a frame (the body of a "VP8 " chunk) at 1/denominator: 2, 4 or
// 8. Planes are rounded up to whole samples. A denominator of 1 is taken only of
// frames that ask for no loop filter.
func Decode(frame []byte, denominator int) (*Picture, error) {
	switch denominator {
	case 1, 2, 4, 8:
	default:
		return nil, unsupported("scale")
	}
	var d decoder
	if err := d.open(frame); err != nil {
		return nil, err
	}
	if denominator == 1 && d.filtered {
		return nil, unsupported("the loop filter is needed")
	}
	d.allocate(denominator)
	for y := range d.down {
		if err := d.row(y); err != nil {
			return nil, err
		}
	}
	return &d.out, nil
}

// decoder is the state of a frame.
type decoder struct {
	header
	across, down int // macroblocks
	head         bools
	tokens       []bools // partitions, which rows of macroblocks take in turn
	above        []edge
	left         edge
	// y, cb and cr hold one row of macroblocks at full size.
	y, cb, cr strip
	out       Picture
	scale     int
	blocks    [25][16]int16 // 16 of luma, 4 of each chroma, the luma's DCs
	last      [25]uint8     // one more than the last coefficient's index
}

// edge is what a macroblock leaves for those on its right and below.
type edge struct {
	modes [4]uint8
	// some says which blocks had coefficients: four of luma, two of Cb, two of
	// Cr, the DCs.
	some [9]uint8
}

func (d *decoder) allocate(denominator int) {
	d.scale = denominator
	d.above = make([]edge, d.across)
	d.y, d.cb, d.cr = newStrip(16, d.across), newStrip(8, d.across), newStrip(8, d.across)
	reduced := func(side, width, height int) Plane {
		stride := side * d.across / denominator
		return Plane{Pix: make([]byte, stride*(side*d.down/denominator)), Stride: stride,
			Width: ceil(width, denominator), Height: ceil(height, denominator)}
	}
	d.out = Picture{
		Y:  reduced(16, d.width, d.height),
		Cb: reduced(8, ceil(d.width, 2), ceil(d.height, 2)),
		Cr: reduced(8, ceil(d.width, 2), ceil(d.height, 2)),
	}
}

func ceil(n, by int) int { return (n + by - 1) / by }

// row decodes one row of macroblocks and averages it into the planes.
func (d *decoder) row(y int) error {
	d.left = edge{}
	tokens := &d.tokens[y%len(d.tokens)]
	for _, s := range []*strip{&d.y, &d.cb, &d.cr} {
		s.begin(y)
	}
	for x := range d.across {
		d.macroblock(tokens, x, y)
	}
	if d.head.overrun() || tokens.overrun() {
		return unsupported("it ends early")
	}
	d.y.reduce(&d.out.Y, y, d.scale)
	d.cb.reduce(&d.out.Cb, y, d.scale)
	d.cr.reduce(&d.out.Cr, y, d.scale)
	return nil
}

func (d *decoder) macroblock(tokens *bools, x, y int) {
	m := d.macroblockHeader(&d.above[x])
	clear(d.last[:])
	if m.skipped {
		d.forget(&d.above[x], m.split)
	} else {
		d.coefficients(tokens, &d.above[x], m)
	}
	if m.split {
		d.y.predictSplit(x, &m.parts, func(block, at int) { d.y.add(at, &d.blocks[block], d.last[block]) })
	} else {
		d.y.predict(x, y, m.luma)
		for i := range 16 {
			d.y.add(d.y.at(x)+i/4*4*d.y.stride+i%4*4, &d.blocks[i], d.last[i])
		}
	}
	for c, s := range []*strip{&d.cb, &d.cr} {
		s.predict(x, y, m.chroma)
		for i := range 4 {
			block := 16 + 4*c + i
			s.add(s.at(x)+i/2*4*s.stride+i%2*4, &d.blocks[block], d.last[block])
		}
	}
}

// forget leaves the traces of a macroblock without coefficients.
func (d *decoder) forget(above *edge, split bool) {
	dcs, dcsAbove := d.left.some[8], above.some[8]
	clear(d.left.some[:])
	clear(above.some[:])
	if split { // it has no block of DCs: the one before still counts
		d.left.some[8], above.some[8] = dcs, dcsAbove
	}
}

// coefficients decodes all blocks of a macroblock.
func (d *decoder) coefficients(tokens *bools, above *edge, m macroblock) {
	clear(d.blocks[:])
	steps := &d.steps[m.segment]
	kind, first := luma, 0
	if !m.split {
		kind, first = lumaAfterDC, 1
		context := d.left.some[8] + above.some[8]
		last := tokens.block(&d.tokenChances[lumaDCs], int(context), 0, &steps.dcs, &d.blocks[24])
		some := flag(last > 0)
		d.left.some[8], above.some[8] = some, some
		if some != 0 {
			d.spreadDCs()
		}
	}
	group := func(kind, first, from, side, at int, steps *[2]int32) {
		for i := range side * side {
			l, a := &d.left.some[at+i/side], &above.some[at+i%side]
			last := tokens.block(&d.tokenChances[kind], int(*l+*a), first, steps, &d.blocks[from+i])
			some := flag(last > first)
			*l, *a = some, some
			d.last[from+i] = max(d.last[from+i], uint8(last)*some)
		}
	}
	group(kind, first, 0, 4, 0, &steps.luma)
	group(chroma, 0, 16, 2, 4, &steps.chroma)
	group(chroma, 0, 20, 2, 6, &steps.chroma)
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// spreadDCs transforms the block of DCs (Walsh-Hadamard, 14.3) and gives each
// block of luma its own.
func (d *decoder) spreadDCs() {
	c := &d.blocks[24]
	var t [16]int32
	for x := range 4 {
		a, b := int32(c[x])+int32(c[12+x]), int32(c[4+x])+int32(c[8+x])
		e, f := int32(c[4+x])-int32(c[8+x]), int32(c[x])-int32(c[12+x])
		t[x], t[4+x], t[8+x], t[12+x] = a+b, e+f, a-b, f-e
	}
	for y := range 4 {
		r := t[4*y:][:4]
		a, b, e, f := r[0]+r[3]+3, r[1]+r[2], r[1]-r[2], r[0]-r[3]+3
		for x, v := range [4]int32{a + b, e + f, a - b, f - e} {
			if dc := int16(v >> 3); dc != 0 {
				d.blocks[4*y+x][0] = dc
				d.last[4*y+x] = 1
			}
		}
	}
}
