package picture

import (
	"encoding/binary"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/exif"
)

// webpLayout is what the container of a WebP holds.
type webpLayout struct {
	lossless bool
	alpha    bool
	lossy    []byte      // the frame of VP8 of a still picture
	frames   []webpFrame // of an animation
	loop     int
}

// webpFrame is one ANMF chunk (RFC 9649, 2.7.1.3).
type webpFrame struct {
	x, y, width, height int
	millis              int
	replace, dispose    bool   // do not blend; clear after showing
	chunks              []byte // ALPH, VP8, VP8L
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// riffChunks calls each for every chunk of b until it returns an error. A
// chunk that ends early is not passed on.
func riffChunks(b []byte, each func(kind string, body []byte) error) (partial bool, err error) {
	for len(b) >= 8 {
		n := int64(binary.LittleEndian.Uint32(b[4:]))
		if n > int64(len(b)-8) {
			return true, nil
		}
		if err := each(string(b[:4]), b[8:8+n]); err != nil {
			return false, err
		}
		b = b[min(8+n+n%2, int64(len(b))):]
	}
	return false, nil
}

func (h *Header) readWebP(data []byte) error {
	body := data[12:]
	extended := false
	var err error
	h.Partial, err = riffChunks(body, func(kind string, c []byte) error {
		switch kind {
		case "VP8X":
			if len(c) < 10 {
				return fmt.Errorf("%w: the WebP's VP8X chunk is short", ErrCorrupt)
			}
			extended = true
			h.StoredWidth, h.StoredHeight = uint24(c[4:])+1, uint24(c[7:])+1
			h.webp.alpha = c[0]&0x10 != 0
		case "ANIM":
			if len(c) >= 6 {
				h.webp.loop = int(binary.LittleEndian.Uint16(c[4:]))
			}
		case "ANMF":
			return h.readWebPFrame(c)
		case "VP8 ", "VP8L":
			if h.webp.lossless = kind == "VP8L"; !h.webp.lossless {
				h.webp.lossy = c
			}
			return h.readWebPImage(kind, c, extended)
		case "EXIF":
			h.EXIF = c
			h.Orientation = exif.Orientation(c)
		case "ICCP":
			h.ICC = c
		}
		return nil
	})
	if n := len(h.webp.frames); n > 0 {
		h.Frames = n
	}
	h.Streamed = h.Frames == 1 && h.webp.lossy != nil && !h.webp.alpha
	return err
}

func (h *Header) readWebPFrame(c []byte) error {
	if len(c) < 16 {
		return fmt.Errorf("%w: a frame of the WebP is short", ErrCorrupt)
	}
	f := webpFrame{
		x: uint24(c) * 2, y: uint24(c[3:]) * 2, width: uint24(c[6:]) + 1, height: uint24(c[9:]) + 1,
		millis: uint24(c[12:]), replace: c[15]&2 != 0, dispose: c[15]&1 != 0, chunks: c[16:],
	}
	if f.x+f.width > h.StoredWidth || f.y+f.height > h.StoredHeight {
		return fmt.Errorf("%w: a frame of the WebP lies outside of its canvas", ErrCorrupt)
	}
	h.webp.frames = append(h.webp.frames, f)
	return nil
}

// readWebPImage reads the size that the bitstream itself claims. It must not be
// larger than the canvas: decoders allocate by the bitstream.
func (h *Header) readWebPImage(kind string, c []byte, extended bool) error {
	width, height, alpha, ok := webpBitstream(kind, c)
	if !ok {
		return fmt.Errorf("%w: the WebP's bitstream has no valid header", ErrCorrupt)
	}
	h.webp.alpha = h.webp.alpha || alpha
	if !extended {
		h.StoredWidth, h.StoredHeight = width, height
	} else if width != h.StoredWidth || height != h.StoredHeight {
		return fmt.Errorf("%w: the WebP's canvas is %d×%d, its picture %d×%d", ErrCorrupt, h.StoredWidth,
			h.StoredHeight, width, height)
	}
	return nil
}

func webpBitstream(kind string, c []byte) (width, height int, alpha, ok bool) {
	if kind == "VP8L" {
		if len(c) < 5 || c[0] != 0x2f {
			return 0, 0, false, false
		}
		bits := binary.LittleEndian.Uint32(c[1:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, bits>>28&1 == 1, true
	}
	if len(c) < 10 || c[3] != 0x9d || c[4] != 0x01 || c[5] != 0x2a {
		return 0, 0, false, false
	}
	return int(binary.LittleEndian.Uint16(c[6:]) & 0x3fff), int(binary.LittleEndian.Uint16(c[8:]) & 0x3fff), false, true
}
