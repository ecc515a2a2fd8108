package pngrows

import "encoding/binary"

// Reduced is a PNG at 1/k of its size: planes R, G, B and, where the picture has
// holes, A; the colours are premultiplied then. The last column and row average
// what is left.
type Reduced struct {
	Width, Height int
	Planes        [][]byte // 3 or 4, each Width×Height
}

// Reduce decodes data and averages squares of k×k pixels; k is 1 to 128.
func Reduce(data []byte, k int) (*Reduced, error) {
	r, err := open(data)
	if err != nil {
		return nil, err
	}
	defer r.inflate.Close()
	k = min(max(k, 1), largest)
	out := &Reduced{Width: (r.width + k - 1) / k, Height: (r.height + k - 1) / k}
	n := 3
	if r.alpha {
		n = 4
	}
	for range n {
		out.Planes = append(out.Planes, make([]byte, out.Width*out.Height))
	}
	line := make([]byte, 4*r.width)
	sums := make([]uint32, n*out.Width)
	for y := range out.Height {
		clear(sums)
		deep := min(k, r.height-y*k)
		for range deep {
			row, err := r.next()
			if err != nil {
				return nil, err
			}
			pixels := r.expand(line, row)
			if n == 4 {
				addAlpha(sums, pixels, k)
			} else {
				addOpaque(sums, pixels, k)
			}
		}
		out.store(y, sums, k, deep, r.width)
	}
	return out, nil
}

// addOpaque adds a row of RGBA to sums of R, G, B over k pixels each.
func addOpaque(sums []uint32, row []byte, k int) {
	for len(row) >= 4 && len(sums) >= 3 {
		part := row[:min(4*k, len(row))]
		row = row[len(part):]
		var red, green, blue uint32
		for len(part) >= 4 {
			red, green, blue = red+uint32(part[0]), green+uint32(part[1]), blue+uint32(part[2])
			part = part[4:]
		}
		sums[0], sums[1], sums[2] = sums[0]+red, sums[1]+green, sums[2]+blue
		sums = sums[3:]
	}
}

// addAlpha does the same with premultiplied colours.
func addAlpha(sums []uint32, row []byte, k int) {
	for len(row) >= 4 && len(sums) >= 4 {
		part := row[:min(4*k, len(row))]
		row = row[len(part):]
		var red, green, blue, alpha uint32
		for len(part) >= 4 {
			a := uint32(part[3])
			if a == 255 {
				red, green, blue = red+uint32(part[0]), green+uint32(part[1]), blue+uint32(part[2])
			} else {
				red, green, blue = red+times(part[0], a), green+times(part[1], a), blue+times(part[2], a)
			}
			alpha += a
			part = part[4:]
		}
		sums[0], sums[1], sums[2], sums[3] = sums[0]+red, sums[1]+green, sums[2]+blue, sums[3]+alpha
		sums = sums[4:]
	}
}

// times is v·a/255, rounded.
func times(v byte, a uint32) uint32 {
	t := uint32(v)*a + 128
	return (t + t>>8) >> 8
}

// largest k: up to it the reciprocals of store are exact.
const largest = 128

// store divides a row of sums by the pixels that went into them.
func (o *Reduced) store(y int, sums []uint32, k, deep, width int) {
	n := len(o.Planes)
	last := o.Width - 1
	whole := uint32(k * deep)
	// With m = 2⁴⁸/count+1, v·m>>48 is v/count for all v < 256·count: the excess
	// is v/2⁴⁸ at most, less than the 1/count that is missing to the next whole.
	m := 1<<48/uint64(whole) + 1
	for c, plane := range o.Planes {
		row := plane[y*o.Width:][:o.Width]
		for x := range last {
			row[x] = byte(uint64(sums[x*n+c]+whole/2) * m >> 48)
		}
		count := uint32((width - last*k) * deep)
		row[last] = byte((sums[last*n+c] + count/2) / count)
	}
}

// expand makes RGBA of 8 bits of a row as it is in the file; line is space for it.
func (r *rows) expand(line, row []byte) []byte {
	switch {
	case r.colour == rgbAlpha && r.depth == 8:
		return row[:4*r.width]
	case r.colour == rgb && r.depth == 8 && !r.hasHole:
		for x := range r.width {
			px := line[4*x:][:4]
			s := row[3*x:][:3]
			px[0], px[1], px[2], px[3] = s[0], s[1], s[2], 255
		}
	default:
		r.expandAny(line, row)
	}
	return line
}

func (r *rows) expandAny(line, row []byte) {
	n := r.channels()
	for x := range r.width {
		px := line[4*x:][:4]
		var s [4]uint16
		for c := range n {
			s[c] = r.sample(row, x*n+c)
		}
		switch r.colour {
		case indexed:
			// An index beyond the palette is black, as decoders have it.
			copy(px, r.palette[byte(s[0])][:])
			if int(s[0]) >= r.entries {
				px[3] = 255
			}
		case gray:
			v := r.to8(s[0])
			px[0], px[1], px[2], px[3] = v, v, v, 255
			if r.hasHole && s[0] == r.transparent[0] {
				px[3] = 0
			}
		case grayAlpha:
			v := r.to8(s[0])
			px[0], px[1], px[2], px[3] = v, v, v, r.to8(s[1])
		default:
			px[0], px[1], px[2], px[3] = r.to8(s[0]), r.to8(s[1]), r.to8(s[2]), 255
			if r.colour == rgbAlpha {
				px[3] = r.to8(s[3])
			} else if r.hasHole && s[0] == r.transparent[0] && s[1] == r.transparent[1] && s[2] == r.transparent[2] {
				px[3] = 0
			}
		}
	}
}

func (r *rows) sample(row []byte, i int) uint16 {
	switch r.depth {
	case 8:
		return uint16(row[i])
	case 16:
		return binary.BigEndian.Uint16(row[2*i:])
	}
	bit := i * r.depth
	return uint16(row[bit/8]) >> (8 - r.depth - bit%8) & (1<<r.depth - 1)
}

func (r *rows) to8(v uint16) byte {
	switch r.depth {
	case 8:
		return byte(v)
	case 16:
		return byte(v >> 8)
	}
	return byte(uint32(v) * 255 / (1<<r.depth - 1))
}
