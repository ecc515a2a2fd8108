package picture

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"slices"

	"github.com/disintegration/imaging"
	"github.com/gen2brain/avif"
	"github.com/gen2brain/jpegn"
	"github.com/gen2brain/webp"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/exif"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/pngrows"
)

// Encoding says how renditions are written.
type Encoding struct {
	// Quality of JPEG, WebP and AVIF, 1 to 100; 0 is 75, the CMS's own.
	Quality int
	// Optimize spends time for smaller files: JPEG's own Huffman tables and
	// progressive order, PNG's best compression.
	Optimize bool
	// KeepEXIF and KeepICC carry metadata over into JPEG renditions. EXIF is
	// cleaned: places, serial numbers and previews never travel.
	KeepEXIF, KeepICC bool
}

const defaultQuality = 75

func (e Encoding) quality() int {
	if e.Quality <= 0 || e.Quality > 100 {
		return defaultQuality
	}
	return e.Quality
}

func (e Encoding) encode(img image.Image, f Format, h Header) (data []byte, err error) {
	var b bytes.Buffer
	defer func() {
		if p := recover(); p != nil {
			data, err = nil, fmt.Errorf("the %s encoder gave up: %v", f, p)
		}
	}()
	img = forFormat(img, f)
	switch f {
	case JPEG:
		err = jpegn.Encode(&b, img, e.jpegOptions(h))
	case PNG:
		err = pngrows.Encode(&b, asNRGBA(img), e.Optimize)
	case WebP:
		err = webp.Encode(&b, img, webp.Options{Quality: e.quality(), Method: e.webpMethod()})
	case AVIF:
		err = avif.Encode(&b, img, avif.Options{Quality: e.quality(), Speed: 8})
	case GIF:
		return joinGIF([]*image.Paletted{paletted(asNRGBA(img))}, []int{0}, 0)
	default:
		err = ErrUnsupported
	}
	if err != nil {
		return nil, fmt.Errorf("encoding as %s: %w", f, err)
	}
	return b.Bytes(), nil
}

// webpMethod is libwebp's effort: 2 takes a third of the time of 4, its default,
// and makes files 2 to 3 % larger.
func (e Encoding) webpMethod() int {
	if e.Optimize {
		return 5
	}
	return 2
}

func (e Encoding) jpegOptions(h Header) *jpegn.EncodeOptions {
	o := &jpegn.EncodeOptions{Quality: e.quality(), OptimizeCoding: e.Optimize, Progressive: e.Optimize}
	if e.KeepEXIF && h.EXIF != nil {
		// EXIF that cannot be read is left out: the picture matters more.
		if clean, err := exif.Clean(h.EXIF); err == nil && len(clean) < 60000 {
			o.Segments = append(o.Segments, jpegn.Segment{Marker: 0xe1, Data: append([]byte("Exif\x00\x00"), clean...)})
		}
	}
	if e.KeepICC {
		o.Segments = append(o.Segments, profileSegments(h.ICC)...)
	}
	return o
}

// profileSegments cuts an ICC profile into APP2 segments (ICC.1, annex B.4).
func profileSegments(profile []byte) []jpegn.Segment {
	const most = 65000
	n := (len(profile) + most - 1) / most
	if n == 0 || n > 255 {
		return nil
	}
	var segments []jpegn.Segment
	for i := range n {
		part := profile[i*most : min((i+1)*most, len(profile))]
		data := append([]byte("ICC_PROFILE\x00"), byte(i+1), byte(n))
		segments = append(segments, jpegn.Segment{Marker: 0xe2, Data: append(data, part...)})
	}
	return segments
}

// forFormat gives an encoder a form of image that it takes without guessing.
func forFormat(img image.Image, f Format) image.Image {
	if planes, ok := img.(*image.NYCbCrA); ok {
		if f == WebP {
			return contiguous(planes)
		}
		img = studioNRGBA(planes)
	}
	switch f {
	case JPEG:
		return flattened(img)
	case WebP, AVIF:
		return asRGBA(img)
	}
	return img
}

// contiguous lays the planes one behind the other, as package webp expects
// them without looking.
func contiguous(p *image.NYCbCrA) *image.NYCbCrA {
	y, c := len(p.Y), len(p.Cb)
	all := slices.Concat(p.Y, p.Cb, p.Cr, p.A)
	out := *p
	out.Y, out.Cb, out.Cr, out.A = all[:y:y], all[y:y+c:y+c], all[y+c:y+2*c:y+2*c], all[y+2*c:]
	return &out
}

// flattened puts what shines through onto white, for formats without alpha.
func flattened(img image.Image) image.Image {
	n, ok := img.(*image.NRGBA)
	if !ok || n.Opaque() {
		return img
	}
	out := image.NewRGBA(n.Rect)
	draw.Draw(out, out.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(out, out.Rect, n, n.Rect.Min, draw.Over)
	return out
}

func asNRGBA(img image.Image) *image.NRGBA {
	if n, ok := img.(*image.NRGBA); ok {
		return n
	}
	return imaging.Clone(img)
}

func asRGBA(img image.Image) image.Image {
	if n, ok := img.(*image.NRGBA); ok {
		return n
	}
	out := image.NewRGBA(image.Rect(0, 0, img.Bounds().Dx(), img.Bounds().Dy()))
	draw.Draw(out, out.Rect, img, img.Bounds().Min, draw.Src)
	return out
}
