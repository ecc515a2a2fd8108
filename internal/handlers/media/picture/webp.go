package picture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"

	"golang.org/x/image/webp"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/resample"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/vp8plane"
)

// spare is how much finer than asked for a reduced WebP is decoded: means of
// squares are a softer filter than the one behind them, and edges of blocks that
// were not smoothed have to vanish.
const spare = 1.25

// openWebP decodes a still WebP, in Go: faster than the library in WebAssembly,
// and its memory is bounded by the header. Opaque lossy ones stay in the planes
// of VP8, and are made smaller while they are decoded.
func openWebP(data []byte, h Header, step float64, bounded bool) (source, error) {
	if k := denominator(step / spare); k > 1 && h.Streamed {
		// What the reduced decoder does not take goes on to the full one.
		if p, err := vp8plane.Decode(h.webp.lossy, k); err == nil {
			return fromFrame(p, h, float64(k)), nil
		}
		if bounded {
			return nil, ErrUnbounded
		}
	}
	if largest := DefaultLimits().WholePixels; h.Pixels() > largest {
		return nil, fmt.Errorf("%w: a WebP that is damaged, or hardly made smaller, may have %d megapixels",
			ErrTooLarge, largest/1e6)
	}
	img, err := guarded("WebP", func() (image.Image, error) { return webp.Decode(bytes.NewReader(data)) })
	if err != nil {
		return nil, err
	}
	if b := img.Bounds(); b.Dx() != h.StoredWidth || b.Dy() != h.StoredHeight {
		return nil, fmt.Errorf("%w: the WebP is not as its header says", ErrCorrupt)
	}
	switch img := img.(type) {
	case *image.YCbCr:
		return fromVP8(img, h), nil
	case *image.NYCbCrA:
		if img.Opaque() {
			return fromVP8(&img.YCbCr, h), nil
		}
		return newWhole(studioNRGBA(img)), nil
	}
	return newWhole(img), nil
}

func fromFrame(p *vp8plane.Picture, h Header, step float64) *raster {
	plane := func(c vp8plane.Plane, step float64) channel {
		return channel{resample.Plane{Pix: c.Pix, Stride: c.Stride, Width: c.Width, Height: c.Height}, step, step}
	}
	area := resample.Box{X1: float64(h.StoredWidth), Y1: float64(h.StoredHeight)}
	return &raster{model: yuv, area: area, channels: []channel{plane(p.Y, step), plane(p.Cb, 2*step),
		plane(p.Cr, 2*step)}}
}

// fromVP8 keeps the planes, whose sampling is always 4:2:0.
func fromVP8(img *image.YCbCr, h Header) *raster {
	r := fromYCbCr(img, resample.Box{X1: float64(h.StoredWidth), Y1: float64(h.StoredHeight)}, 1)
	r.model = yuv
	return r
}

// studioNRGBA turns VP8's planes, whose luma runs from 16 to 235 (ITU-R BT.601;
// package image takes all YCbCr for JPEG's full range), into RGB.
func studioNRGBA(src *image.NYCbCrA) *image.NRGBA {
	out := image.NewNRGBA(src.Rect)
	w := src.Rect.Dx()
	for y := range src.Rect.Dy() {
		row := out.Pix[y*out.Stride:][:4*w]
		chroma := y / 2 * src.CStride
		studioRow(row, src.Y[y*src.YStride:][:w], src.Cb[chroma:], src.Cr[chroma:])
		if len(src.A) > 0 {
			for x, a := range src.A[y*src.AStride:][:w] {
				row[4*x+3] = a
			}
		}
	}
	return out
}

// studioRow converts one row of 4:2:0 samples to opaque RGBA.
func studioRow(row, luma, cb, cr []byte) {
	for x, v := range luma {
		y := (int32(v) - 16) * 76309
		u, w := int32(cb[x/2])-128, int32(cr[x/2])-128
		px := row[4*x:][:4]
		px[0] = clamp16(y + 104597*w)
		px[1] = clamp16(y - 25675*u - 53279*w)
		px[2] = clamp16(y + 132201*u)
		px[3] = 255
	}
}

// clamp16 rounds a number with 16 bits after the point to a byte.
func clamp16(v int32) byte { return byte(min(max((v+1<<15)>>16, 0), 255)) }

// webpFile wraps the chunks of one animation frame into its own file.
func (f webpFrame) file() ([]byte, error) {
	alpha, found := false, false
	_, err := riffChunks(f.chunks, func(kind string, c []byte) error {
		switch kind {
		case "ALPH":
			alpha = true
		case "VP8 ", "VP8L":
			w, h, _, ok := webpBitstream(kind, c)
			if !ok || w != f.width || h != f.height {
				return fmt.Errorf("%w: a frame of the WebP is not as large as it says", ErrCorrupt)
			}
			found = true
		}
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: a frame of the WebP has no picture", ErrCorrupt)
	}
	if err != nil {
		return nil, err
	}
	var body []byte
	if alpha {
		body = chunk(nil, "VP8X", extendedHeader(0x10, f.width, f.height))
	}
	return riff(append(body, f.chunks...)), nil
}

func extendedHeader(flags byte, width, height int) []byte {
	b := []byte{flags, 0, 0, 0}
	return put24(put24(b, width-1), height-1)
}

func put24(b []byte, v int) []byte { return append(b, byte(v), byte(v>>8), byte(v>>16)) }

func chunk(to []byte, kind string, body []byte) []byte {
	to = append(to, kind...)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(body)))
	to = append(to, body...)
	if len(body)%2 == 1 {
		to = append(to, 0)
	}
	return to
}

func riff(body []byte) []byte {
	out := append([]byte("RIFF"), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(out[4:], uint32(4+len(body)))
	return append(append(out, "WEBP"...), body...)
}

// joinWebP makes an animation of stills of one size (RFC 9649, 2.7.1).
func joinWebP(stills [][]byte, millis []int, loop, width, height int) ([]byte, error) {
	body := chunk(nil, "VP8X", extendedHeader(0x02|0x10, width, height))
	body = chunk(body, "ANIM", binary.LittleEndian.AppendUint16([]byte{0, 0, 0, 0}, uint16(loop)))
	for i, still := range stills {
		frame := put24(put24([]byte{0, 0, 0, 0, 0, 0}, width-1), height-1)
		frame = append(put24(frame, millis[i]), 2) // replace what was shown
		_, err := riffChunks(still[12:], func(kind string, c []byte) error {
			if kind == "ALPH" || kind == "VP8 " || kind == "VP8L" {
				frame = chunk(frame, kind, c)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		body = chunk(body, "ANMF", frame)
	}
	return riff(body), nil
}
