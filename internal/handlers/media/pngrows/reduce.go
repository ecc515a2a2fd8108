package pngrows

import "encoding/binary"

// Reduced is a PNG at 1/k of its size: planes R, G, B and, where the picture has
// holes, A; the colours are premultiplied then. The last column and row average
// what is left.
type Reduced struct {
	Width, Height int
	Planes        [][]byte // 3 or 4, each Width×Height
}

// largest k: so many bytes fit into 16 bits, and means are exact up to it.
const largest = 128

// Reduce decodes data and averages squares of k×k pixels; k is 1 to 128.
func Reduce(data []byte, k int) (*Reduced, error) {
	r, err := open(data)
	if err != nil {
		return nil, err
	}
	k = min(max(k, 1), largest)
	out := &Reduced{Width: (r.width + k - 1) / k, Height: (r.height + k - 1) / k}
	n := 3
	if r.alpha {
		n = 4
	}
	for range n {
		out.Planes = append(out.Planes, make([]byte, out.Width*out.Height))
	}
	channels := 4
	if r.plain() {
		channels = 3
	}
	line, sums := make([]byte, 4*r.width), make([]uint16, channels*r.width)
	for y := range out.Height {
		clear(sums)
		deep := min(k, r.height-y*k)
		for range deep {
			row, err := r.next()
			if err != nil {
				return nil, err
			}
			addColumns(sums, r.expand(line, row))
		}
		out.store(y, sums, channels, k, deep)
	}
	return out, nil
}

// addColumnsGo is addColumns without a kernel.
func addColumnsGo(sums []uint16, row []byte) {
	sums = sums[:len(row)]
	for i, v := range row {
		sums[i] += uint16(v)
	}
}

// store averages k columns each, which hold sums of deep rows, into row y.
func (o *Reduced) store(y int, columns []uint16, channels, k, deep int) {
	d := by(k * deep)
	at := y * o.Width
	for len(columns) > 0 {
		part := columns[:min(k*channels, len(columns))]
		columns = columns[len(part):]
		if len(part) < k*channels {
			d = by(len(part) / channels * deep)
		}
		red, green, blue, alpha := total(part, channels)
		o.Planes[0][at], o.Planes[1][at], o.Planes[2][at] = d.mean(red), d.mean(green), d.mean(blue)
		if len(o.Planes) == 4 {
			o.Planes[3][at] = d.mean(alpha)
		}
		at++
	}
}

// total adds pixels of three or four channels.
func total(part []uint16, channels int) (red, green, blue, alpha uint32) {
	if channels == 3 {
		for ; len(part) >= 3; part = part[3:] {
			red, green, blue = red+uint32(part[0]), green+uint32(part[1]), blue+uint32(part[2])
		}
		return red, green, blue, 0
	}
	for ; len(part) >= 4; part = part[4:] {
		red, green, blue = red+uint32(part[0]), green+uint32(part[1]), blue+uint32(part[2])
		alpha += uint32(part[3])
	}
	return red, green, blue, alpha
}

// divisor divides sums of count bytes, rounded: with m = 2⁴⁸/count+1, v·m>>48 is
// v/count for all v < 256·count and counts up to largest²; the excess is v/2⁴⁸ at
// most, less than the 1/count that is missing to the next whole.
type divisor struct {
	half uint32
	m    uint64
}

func by(count int) divisor { return divisor{uint32(count / 2), 1<<48/uint64(count) + 1} }

func (d divisor) mean(sum uint32) byte { return byte(uint64(sum+d.half) * d.m >> 48) }

// times is v·a/255, rounded.
func times(v byte, a uint32) byte {
	t := uint32(v)*a + 128
	return byte((t + t>>8) >> 8)
}

// plain says whether a row is three bytes a pixel, with nothing to do to them.
func (r *rows) plain() bool { return r.colour == rgb && r.depth == 8 && !r.hasHole }

// expand makes premultiplied RGBA of 8 bits of a row as it is in the file, unless it
// is plain; line is space for it.
func (r *rows) expand(line, row []byte) []byte {
	switch {
	case r.plain():
		return row
	case r.colour == rgbAlpha && r.depth == 8:
		if solid(row) {
			return row
		}
		copy(line, row)
	default:
		r.expandAny(line, row)
	}
	if r.alpha {
		premultiply(line)
	}
	return line
}

// solid says whether nothing shines through a row of RGBA.
func solid(row []byte) bool {
	all := uint32(0xff000000)
	for ; len(row) >= 4; row = row[4:] {
		all &= binary.LittleEndian.Uint32(row)
	}
	return all == 0xff000000
}

func premultiply(row []byte) {
	for ; len(row) >= 4; row = row[4:] {
		if a := uint32(row[3]); a != 255 {
			row[0], row[1], row[2] = times(row[0], a), times(row[1], a), times(row[2], a)
		}
	}
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
