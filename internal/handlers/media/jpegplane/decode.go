package jpegplane

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrUnsupported says that a full decoder has to be asked: the picture is of a
// kind that is not read here, or it is damaged.
var ErrUnsupported = errors.New("jpegplane: not a plain, whole, sequential JPEG")

func unsupported(why string) error { return fmt.Errorf("%w: %s", ErrUnsupported, why) }

// Plane holds the samples of one component.
type Plane struct {
	Pix                   []byte
	Stride, Width, Height int
	// Across and Down say how many pixels of the reduced picture a sample
	// covers (2 and 2 for the chroma of 4:2:0).
	Across, Down int

	quant      *[64]uint16
	dc, ac     *huffman
	h, v       int
	id         byte
	table      int // of quantisation
	prediction int32
}

// Picture is a decoded JPEG: one plane (grey) or three (Y, Cb, Cr, full range).
type Picture struct{ Planes []Plane }

type decoder struct {
	rest          []byte // what is not read yet
	scale         int    // samples a block's side gives: 8, 6, 4, 2, 1
	width, height int
	planes        []Plane
	hmax, vmax    int
	quants        [4]*[64]uint16
	tables        [2][4]*huffman // DC, AC
	interval      int
	progressive   bool
	pass          pass // the progressive scan that was announced last
}

// Fast says whether Decode beats a full decoder here: at 6 and 8 eighths it needs
// vectors for that.
func Fast(eighths int) bool { return eighths <= 4 || vectors() }

// Decode decodes data at eighths/8 of its size: 1, 2, 4, 6 or 8. The last two are
// taken of sequential pictures only. Planes are rounded up to whole samples.
func Decode(data []byte, eighths int) (*Picture, error) {
	switch eighths {
	case 1, 2, 4, 6, 8:
	default:
		return nil, unsupported("scale")
	}
	if len(data) < 4 || data[0] != 0xff || data[1] != 0xd8 {
		return nil, unsupported("no JPEG")
	}
	d := decoder{rest: data[2:], scale: eighths}
	if more, err := d.headers(); err != nil || !more {
		return nil, errors.Join(err, unsupported("no scan"))
	}
	decode := d.scan
	switch {
	case d.progressive && eighths > 4:
		return nil, unsupported("progressive at this scale")
	case d.progressive:
		decode = d.passes
	}
	if err := decode(); err != nil {
		return nil, err
	}
	return &Picture{Planes: d.planes}, nil
}

func indexFF(b []byte) int {
	if i := bytes.IndexByte(b, 0xff); i >= 0 {
		return i
	}
	return len(b)
}

// headers reads the segments up to the next scan; more is false at the end of
// the picture.
func (d *decoder) headers() (more bool, err error) {
	for len(d.rest) >= 2 && d.rest[0] == 0xff {
		marker := d.rest[1]
		if marker == 0xff {
			d.rest = d.rest[1:]
			continue
		}
		if marker == 0xd9 {
			return false, nil
		}
		if len(d.rest) < 4 {
			break
		}
		length := int(binary.BigEndian.Uint16(d.rest[2:]))
		if length < 2 || length+2 > len(d.rest) {
			break
		}
		body := d.rest[4 : 2+length]
		d.rest = d.rest[2+length:]
		if err := d.segment(marker, body); err != nil {
			return false, err
		}
		if marker == 0xda {
			return true, nil
		}
	}
	return false, unsupported("it ends early")
}

func (d *decoder) segment(marker byte, body []byte) error {
	switch marker {
	case 0xc0, 0xc1, 0xc2:
		d.progressive = marker == 0xc2
		return d.frame(body)
	case 0xc4:
		return d.huffmanTables(body)
	case 0xdb:
		return d.quantTables(body)
	case 0xdd:
		if len(body) != 2 {
			return unsupported("DRI")
		}
		d.interval = int(binary.BigEndian.Uint16(body))
	case 0xda:
		if d.progressive {
			return d.passHeader(body)
		}
		return d.scanHeader(body)
	case 0xee:
		if bytes.HasPrefix(body, []byte("Adobe")) && len(body) >= 12 && body[11] != 1 {
			return unsupported("Adobe colours")
		}
	default:
		if marker < 0xda { // other codings, restarts and the reserved: not those that may be passed over
			return unsupported("marker")
		}
	}
	return nil
}

func (d *decoder) frame(body []byte) error {
	if d.planes != nil || len(body) < 6 || body[0] != 8 || (body[5] != 1 && body[5] != 3) || len(body) != 6+
		3*int(body[5]) {
		return unsupported("frame")
	}
	d.height, d.width = int(binary.BigEndian.Uint16(body[1:])), int(binary.BigEndian.Uint16(body[3:]))
	if d.width == 0 || d.height == 0 {
		return unsupported("size")
	}
	if err := d.components(body[6:]); err != nil {
		return err
	}
	if d.planes[0].id == 'R' && len(d.planes) == 3 {
		return unsupported("RGB")
	}
	return nil
}

// components reads how each component of a frame is sampled.
func (d *decoder) components(c []byte) error {
	blocks := 0
	for ; len(c) > 0; c = c[3:] {
		p := Plane{id: c[0], h: int(c[1] >> 4), v: int(c[1] & 15)}
		if p.h < 1 || p.h > 4 || p.v < 1 || p.v > 4 || c[2] > 3 {
			return unsupported("sampling")
		}
		// Tables may come later than the frame: only the number is kept.
		p.Across = int(c[2])
		d.hmax, d.vmax = max(d.hmax, p.h), max(d.vmax, p.v)
		d.planes = append(d.planes, p)
		blocks += p.h * p.v
	}
	if len(d.planes) == 1 { // its blocks lie row by row, whatever it says
		d.planes[0].h, d.planes[0].v, d.hmax, d.vmax = 1, 1, 1, 1
		return nil
	}
	if blocks > 10 { // T.81, B.2.3; the reader's padding rests on it
		return unsupported("sampling")
	}
	return nil
}

func (d *decoder) quantTables(b []byte) error {
	for len(b) > 0 {
		wide, id := int(b[0]>>4), b[0]&15
		if wide > 1 || id > 3 || len(b) < 1+64*(1+wide) {
			return unsupported("DQT")
		}
		var table [64]uint16
		for i := range table {
			if wide == 1 {
				table[i] = binary.BigEndian.Uint16(b[1+2*i:])
			} else {
				table[i] = uint16(b[1+i])
			}
		}
		d.quants[id] = &table
		b = b[1+64*(1+wide):]
	}
	return nil
}

func (d *decoder) huffmanTables(b []byte) error {
	for len(b) > 0 {
		if len(b) < 17 || b[0]>>4 > 1 || b[0]&15 > 3 {
			return unsupported("DHT")
		}
		counts := [16]byte(b[1:17])
		n := 0
		for _, c := range counts {
			n += int(c)
		}
		if n > 256 || len(b) < 17+n {
			return unsupported("DHT")
		}
		class := b[0] >> 4
		values := class == 1 && !d.progressive
		table, ok := newHuffman(counts, b[17:17+n], values, values && d.scale <= 4)
		if !ok {
			return unsupported("DHT")
		}
		d.tables[class][b[0]&15] = table
		b = b[17+n:]
	}
	return nil
}

// scanHeader takes only a scan that holds all components in their order.
func (d *decoder) scanHeader(b []byte) error {
	n := len(d.planes)
	if n == 0 || len(b) != 4+2*n || int(b[0]) != n || b[1+2*n] != 0 || b[2+2*n] != 63 || b[3+2*n] != 0 {
		return unsupported("scan")
	}
	for i := range d.planes {
		p := &d.planes[i]
		if b[1+2*i] != p.id || d.hmax%p.h != 0 || d.vmax%p.v != 0 {
			return unsupported("scan")
		}
		if err := d.tablesOf(p, b[2+2*i]); err != nil {
			return err
		}
		p.Across, p.Down = d.hmax/p.h, d.vmax/p.v
	}
	return nil
}

// tablesOf gives a component its tables, of which numbers holds the two of Huffman.
func (d *decoder) tablesOf(p *Plane, numbers byte) error {
	if numbers>>4 > 3 || numbers&15 > 3 {
		return unsupported("scan")
	}
	p.quant, p.dc, p.ac = d.quants[p.Across], d.tables[0][numbers>>4], d.tables[1][numbers&15]
	if p.quant == nil || p.dc == nil || p.ac == nil {
		return unsupported("a table is missing")
	}
	return nil
}
