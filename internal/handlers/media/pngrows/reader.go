package pngrows

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/inflate"
)

// The ways in which a PNG is refused.
var (
	ErrInterlaced = errors.New("pngrows: the PNG is interlaced")
	ErrCorrupt    = errors.New("pngrows: the PNG is damaged")
)

// Colour types (PNG, 11.2.1).
const (
	gray      = 0
	rgb       = 2
	indexed   = 3
	grayAlpha = 4
	rgbAlpha  = 6
)

// header is what comes before the pixels.
type header struct {
	width, height int
	depth, colour int
	palette       [256][4]byte
	entries       int
	transparent   [3]uint16 // the colour that tRNS makes a hole
	hasHole       bool
	alpha         bool // anything may shine through
}

// channels is how many samples a pixel has in the file.
func (h *header) channels() int {
	switch h.colour {
	case rgb:
		return 3
	case grayAlpha:
		return 2
	case rgbAlpha:
		return 4
	}
	return 1
}

// rowBytes is the length of an unfiltered row, stride that of a pixel as
// filters see it.
func (h *header) rowBytes() int { return (h.width*h.channels()*h.depth + 7) / 8 }
func (h *header) stride() int   { return max(1, h.channels()*h.depth/8) }

// rows reads unfiltered rows one by one.
type rows struct {
	header
	inflate                io.Reader
	raw, current, previous []byte // the first begins with the filter's kind
}

// open reads the chunks before IDAT.
func open(data []byte) (*rows, error) {
	const signature = "\x89PNG\r\n\x1a\n"
	if len(data) < 8 || string(data[:8]) != signature {
		return nil, fmt.Errorf("%w: no signature", ErrCorrupt)
	}
	r := &rows{}
	rest := data[8:]
	for {
		kind, body, next, err := chunk(rest)
		if err != nil {
			return nil, err
		}
		if kind == "IDAT" {
			break
		}
		if err := r.read(kind, body); err != nil {
			return nil, err
		}
		rest = next
	}
	if r.width == 0 || r.colour == indexed && r.entries == 0 {
		return nil, fmt.Errorf("%w: its header is incomplete", ErrCorrupt)
	}
	inflate, err := inflater(&pixels{rest: rest})
	if err != nil {
		return nil, err
	}
	r.inflate = inflate
	n := r.rowBytes()
	r.raw, r.current, r.previous = make([]byte, 1+n), make([]byte, n), make([]byte, n)
	return r, nil
}

// inflater reads a zlib stream (RFC 1950) without its own checksum: that of the
// chunks has covered the same bytes already.
func inflater(from io.Reader) (io.Reader, error) {
	var head [2]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	const deflate, dictionary = 8, 0x20
	if head[0]&15 != deflate || head[1]&dictionary != 0 || binary.BigEndian.Uint16(head[:])%31 != 0 {
		return nil, fmt.Errorf("%w: its pixels are no zlib stream", ErrCorrupt)
	}
	return inflate.New(from), nil
}

func chunk(b []byte) (kind string, body, rest []byte, err error) {
	if len(b) < 12 {
		return "", nil, nil, fmt.Errorf("%w: it ends early", ErrCorrupt)
	}
	n := binary.BigEndian.Uint32(b)
	if uint64(n)+12 > uint64(len(b)) {
		return "", nil, nil, fmt.Errorf("%w: it ends early", ErrCorrupt)
	}
	end := 8 + int(n)
	if crc32.ChecksumIEEE(b[4:end]) != binary.BigEndian.Uint32(b[end:]) {
		return "", nil, nil, fmt.Errorf("%w: a checksum is wrong", ErrCorrupt)
	}
	return string(b[4:8]), b[8:end], b[end+4:], nil
}

// pixels is the data of the IDAT chunks, one behind the other.
type pixels struct{ body, rest []byte }

func (p *pixels) Read(to []byte) (int, error) {
	for len(p.body) == 0 {
		kind, body, rest, err := chunk(p.rest)
		if err != nil {
			return 0, err
		}
		if kind != "IDAT" {
			return 0, io.EOF
		}
		p.body, p.rest = body, rest
	}
	n := copy(to, p.body)
	p.body = p.body[n:]
	return n, nil
}

func (r *rows) read(kind string, b []byte) error {
	switch kind {
	case "IHDR":
		return r.readHeader(b)
	case "PLTE":
		r.entries = min(len(b)/3, 256)
		for i := range r.entries {
			r.palette[i] = [4]byte{b[3*i], b[3*i+1], b[3*i+2], 255}
		}
	case "tRNS":
		return r.readHoles(b)
	}
	return nil
}

func (r *rows) readHeader(b []byte) error {
	if len(b) != 13 || r.width != 0 {
		return fmt.Errorf("%w: IHDR", ErrCorrupt)
	}
	width, height := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	r.depth, r.colour = int(b[8]), int(b[9])
	allowed := map[int][]int{gray: {1, 2, 4, 8, 16}, rgb: {8, 16}, indexed: {1, 2, 4, 8}, grayAlpha: {8, 16},
		rgbAlpha: {8, 16}}
	known := false
	for _, depth := range allowed[r.colour] {
		known = known || depth == r.depth
	}
	if !known || b[10] != 0 || b[11] != 0 || b[12] > 1 || width == 0 || height == 0 || width > 1<<24 || height > 1<<24 {
		return fmt.Errorf("%w: IHDR", ErrCorrupt)
	}
	if b[12] == 1 {
		return ErrInterlaced
	}
	r.width, r.height = int(width), int(height)
	r.alpha = r.colour == grayAlpha || r.colour == rgbAlpha
	return nil
}

func (r *rows) readHoles(b []byte) error {
	switch {
	case r.colour == indexed:
		for i := range min(len(b), r.entries) {
			r.palette[i][3] = b[i]
		}
		r.alpha = true
	case r.colour == gray && len(b) >= 2:
		r.transparent[0] = binary.BigEndian.Uint16(b)
		r.hasHole, r.alpha = true, true
	case r.colour == rgb && len(b) >= 6:
		for c := range 3 {
			r.transparent[c] = binary.BigEndian.Uint16(b[2*c:])
		}
		r.hasHole, r.alpha = true, true
	}
	return nil
}

// next unfilters one row; it is valid until the next but one call.
func (r *rows) next() ([]byte, error) {
	r.current, r.previous = r.previous, r.current
	if _, err := io.ReadFull(r.inflate, r.raw); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if !unfilter(r.raw[0], r.current, r.raw[1:], r.previous, r.stride()) {
		return nil, fmt.Errorf("%w: an unknown filter", ErrCorrupt)
	}
	return r.current, nil
}
