package picture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"math"

	"github.com/disintegration/imaging"
	"github.com/gen2brain/jpegn"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/resample"
)

// Watermark says how a mark is put onto pictures.
type Watermark struct {
	// Mark is the file of the mark, best a PNG with transparency.
	Mark []byte
	// Percent of the picture's width that the mark takes.
	Percent int
	// Opacity from 0 to 100.
	Opacity  int
	Position Position
	// X and Y are the distance from the edges that Position names.
	X, Y int
}

// applyWatermark is in every file that was watermarked, so that none is twice.
const applyWatermark = "cmsjobs-watermark"

const stampedQuality = 90

// Stamped says whether data was watermarked by Stamp.
func Stamped(data []byte) bool { return bytes.Contains(data, []byte(applyWatermark)) }

// Stamp puts a mark onto a still JPEG, PNG or WebP and leaves a marker in the
// file. A file with the marker comes back as it is, as do animations, GIFs and AVIFs.
// The result is upright; metadata is kept as m.Encoding says. m.Bounded holds
// for the picture and for the mark.
func (m Generator) Stamp(data []byte, w Watermark) ([]byte, error) {
	h, err := Inspect(data)
	if err != nil {
		return nil, err
	}
	if Stamped(data) || h.Frames > 1 || h.Format == GIF || h.Format == AVIF {
		return data, nil
	}
	limits := m.Limits
	limits.StreamedPixels = limits.WholePixels // it is decoded whole here
	if err := limits.Check(h); err != nil {
		return nil, err
	}
	img, err := wholeUpright(data, h, m.Bounded)
	if err != nil {
		return nil, err
	}
	mark, err := w.mark(Generator{Limits: limits, Bounded: m.Bounded}, img.Rect.Dx())
	if err != nil {
		return nil, fmt.Errorf("the watermark: %w", err)
	}
	marked := imaging.Overlay(img, mark, w.at(img.Rect, mark.Rect), float64(w.Opacity)/100)
	e := m.Encoding
	e.Quality = stampedQuality
	if h.Format == JPEG {
		return e.stampedJPEG(marked, h)
	}
	out, err := e.encode(marked, h.Format, h)
	if err != nil {
		return nil, err
	}
	if h.Format == PNG {
		return stampedPNG(out), nil
	}
	return stampedWebP(out, marked), nil
}

func wholeUpright(data []byte, h Header, bounded bool) (*image.NRGBA, error) {
	s, err := open(data, h, 1, bounded)
	if err != nil {
		return nil, err
	}
	return drawUpright(s, h, h.StoredWidth, h.StoredHeight)
}

// drawUpright draws a whole picture as viewers see it; w and ht are before it is turned.
func drawUpright(s source, h Header, w, ht int) (*image.NRGBA, error) {
	r, err := s.draw(resample.Box{X1: float64(h.StoredWidth), Y1: float64(h.StoredHeight)}, w, ht)
	if err != nil {
		return nil, err
	}
	img := r.upright(h.Orientation).image()
	if planes, ok := img.(*image.NYCbCrA); ok {
		return studioNRGBA(planes), nil
	}
	return asNRGBA(img), nil
}

// mark decodes the mark at its width on a picture.
func (w Watermark) mark(m Generator, width int) (*image.NRGBA, error) {
	spec := Spec{Width: max(1, int(math.Round(float64(width)*float64(w.Percent)/100))), Enlarge: true,
		Formats: []Format{PNG}}
	r, err := m.render(w.Mark, spec)
	if err != nil {
		return nil, err
	}
	img, err := imaging.Decode(bytes.NewReader(r))
	if err != nil {
		return nil, err
	}
	return asNRGBA(img), nil
}

func (w Watermark) at(picture, mark image.Rectangle) image.Point {
	x, y := Spec{Position: w.Position}.offset(picture.Dx()+max(0, mark.Dx()-picture.Dx()), picture.Dy()+
		max(0, mark.Dy()-picture.Dy()), mark.Dx(), mark.Dy())
	centreX, centreY := Spec{}.offset(picture.Dx()+max(0, mark.Dx()-picture.Dx()), picture.Dy()+
		max(0, mark.Dy()-picture.Dy()), mark.Dx(), mark.Dy())
	inwards := func(v, centre, by int) int {
		switch {
		case v < centre:
			return v + by
		case v > centre:
			return v - by
		}
		return v
	}
	return image.Pt(inwards(x, centreX, w.X), inwards(y, centreY, w.Y))
}

func (e Encoding) stampedJPEG(img image.Image, h Header) ([]byte, error) {
	o := e.jpegOptions(h)
	o.Segments = append(o.Segments, jpegn.Segment{Marker: 0xfe, Data: []byte(applyWatermark)})
	var b bytes.Buffer
	if err := jpegn.Encode(&b, flattened(img), o); err != nil {
		return nil, fmt.Errorf("encoding as jpeg: %w", err)
	}
	return b.Bytes(), nil
}

// stampedPNG puts a tEXt chunk behind the header.
func stampedPNG(data []byte) []byte {
	body := []byte("tEXt" + "Software\x00" + applyWatermark)
	c := append(binary.BigEndian.AppendUint32(nil, uint32(len(body)-4)), body...)
	c = binary.BigEndian.AppendUint32(c, crc32.ChecksumIEEE(body))
	return append(append(bytes.Clone(data[:33]), c...), data[33:]...)
}

// stampedWebP makes the file an extended one with a chunk that readers ignore.
func stampedWebP(data []byte, img *image.NRGBA) []byte {
	var chunks []byte
	flags := byte(0)
	// The encoder's own output is well-formed, so there is no error.
	_, _ = riffChunks(data[12:], func(kind string, c []byte) error {
		switch kind {
		case "VP8X":
			return nil
		case "VP8L", "ALPH":
			flags = 0x10
		}
		chunks = chunk(chunks, kind, c)
		return nil
	})
	body := chunk(nil, "VP8X", extendedHeader(flags, img.Rect.Dx(), img.Rect.Dy()))
	return riff(chunk(append(body, chunks...), "CMSJ", []byte(applyWatermark)))
}
