package vp8plane

import "encoding/binary"

// strip is one row of macroblocks of one component, with a row above it and a
// column of borders (RFC 6386, 12.2 and 12.3).
type strip struct {
	pix    []byte
	side   int // of a macroblock: 16 or 8
	across int
	stride int
}

// border is how far the first macroblock is from the left.
const border = 16

func newStrip(side, across int) strip {
	stride := border + side*across + 16
	return strip{pix: make([]byte, stride*(side+1)), side: side, across: across, stride: stride}
}

// at is the place of macroblock x.
func (s *strip) at(x int) int { return s.stride + border + x*s.side }

// begin makes the borders for row y: what was its last row is above it now.
func (s *strip) begin(y int) {
	top := s.pix[:s.stride]
	if y == 0 {
		for i := range top {
			top[i] = 127
		}
	} else {
		copy(top, s.pix[s.side*s.stride:])
		top[border-1] = 129
		end := border + s.side*s.across
		for i := range 4 {
			top[end+i] = top[end-1]
		}
	}
	for i := range s.side {
		s.pix[(i+1)*s.stride+border-1] = 129
	}
}

// reduce averages squares of k×k samples into rows of p.
func (s *strip) reduce(p *Plane, y, k int) {
	width := s.side * s.across
	for row := range s.side / k {
		dst := p.Pix[(y*s.side/k+row)*p.Stride:][:p.Stride]
		src := s.pix[s.stride*(1+row*k)+border:]
		if k == 1 {
			copy(dst, src)
			continue
		}
		for x := 0; x < width; x += 8 {
			average(dst[x/k:], src[x:], s.stride, k)
		}
	}
}

// average makes 8/k samples of k rows of 8. Four sums are kept in one word.
func average(dst, src []byte, stride, k int) {
	const odd = 0x00ff00ff00ff00ff
	var sums uint64
	for row := range k {
		v := binary.LittleEndian.Uint64(src[row*stride:])
		sums += v&odd + v>>8&odd
	}
	switch k {
	case 2:
		sums += 0x0002000200020002
		dst[0], dst[1], dst[2], dst[3] = byte(sums>>2), byte(sums>>18), byte(sums>>34), byte(sums>>50)
	case 4:
		sums += sums >> 16
		dst[0], dst[1] = byte((sums&0xffff+8)>>4), byte((sums>>32&0xffff+8)>>4)
	default:
		sums += sums >> 16
		sums += sums >> 32
		dst[0] = byte((sums&0xffff + 32) >> 6)
	}
}

// The factors of the inverse transform, √2·cos(π/8) and √2·sin(π/8), with 16
// bits after the point (14.3).
const (
	wide   = 85627
	narrow = 35468
)

// add adds the inverse transform of a block to the samples at a place. last is
// one more than the index of its last coefficient.
func (s *strip) add(at int, c *[16]int16, last uint8) {
	switch last {
	case 0:
	case 1:
		s.addFlat(at, (int32(c[0])+4)>>3)
	default:
		addBlock(s.pix[at:], s.stride, c)
	}
}

func (s *strip) addFlat(at int, dc int32) {
	for range 4 {
		row := s.pix[at:][:4]
		row[0], row[1], row[2], row[3] = clamp(int32(row[0])+dc), clamp(int32(row[1])+dc), clamp(int32(row[2])+dc),
			clamp(int32(row[3])+dc)
		at += s.stride
	}
}

// addBlockGo is addBlock without a kernel.
func addBlockGo(dst []byte, stride int, c *[16]int16) {
	var t [16]int32
	for x := range 4 {
		c0, c1, c2, c3 := int32(c[x]), int32(c[4+x]), int32(c[8+x]), int32(c[12+x])
		a, b := c0+c2, c0-c2
		e, f := c1*narrow>>16-c3*wide>>16, c1*wide>>16+c3*narrow>>16
		t[x], t[4+x], t[8+x], t[12+x] = a+f, b+e, b-e, a-f
	}
	// The columns of t are the rows of the picture.
	for y := range 4 {
		c0, c1, c2, c3 := t[4*y]+4, t[4*y+1], t[4*y+2], t[4*y+3]
		a, b := c0+c2, c0-c2
		e, f := c1*narrow>>16-c3*wide>>16, c1*wide>>16+c3*narrow>>16
		row := dst[y*stride:][:4]
		row[0], row[1] = clamp(int32(row[0])+(a+f)>>3), clamp(int32(row[1])+(b+e)>>3)
		row[2], row[3] = clamp(int32(row[2])+(b-e)>>3), clamp(int32(row[3])+(a-f)>>3)
	}
}

func clamp(v int32) byte {
	if uint32(v) > 255 {
		return byte(^(v >> 31))
	}
	return byte(v)
}
