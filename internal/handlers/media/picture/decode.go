package picture

import (
	"bytes"
	"fmt"
	"image"
	stdjpeg "image/jpeg"
	"image/png"

	"github.com/gen2brain/jpegn"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/jpegplane"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/pngrows"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/resample"
)

// open decodes the first frame as small as serves: a sample may cover up to
// step pixels of the source each way. bounded is Maker.Bounded.
func open(data []byte, h Header, step float64, bounded bool) (source, error) {
	if bounded && h.Unbounded() {
		return nil, ErrUnbounded
	}
	if h.Frames > 1 {
		return firstFrame(data, h)
	}
	switch h.Format {
	case JPEG:
		return openJPEG(data, h, step, bounded)
	case PNG:
		return openPNG(data, h, step)
	case WebP:
		return openWebP(data, h, step, bounded)
	case AVIF:
		return openImage("AVIF", func() (image.Image, error) { return decodeAVIF(data, h) })
	case GIF:
		return firstFrame(data, h)
	}
	return nil, ErrUnsupported
}

// openPNG averages squares of pixels while it reads, rows at a time; interlaced
// PNGs are decoded whole.
func openPNG(data []byte, h Header, step float64) (source, error) {
	if h.interlaced {
		return openImage("PNG", func() (image.Image, error) { return png.Decode(bytes.NewReader(data)) })
	}
	k := max(1, int(min(step, 64)))
	p, err := pngrows.Reduce(data, k)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	r := &raster{model: rgb, area: resample.Box{X1: float64(h.StoredWidth), Y1: float64(h.StoredHeight)}}
	if len(p.Planes) == 4 && !full(p.Planes[3]) {
		r.model = rgba
	} else {
		p.Planes = p.Planes[:3]
	}
	for _, pix := range p.Planes {
		plane := resample.Plane{Pix: pix, Stride: p.Width, Width: p.Width, Height: p.Height}
		r.channels = append(r.channels, channel{plane, float64(k), float64(k)})
	}
	return r, nil
}

// full says whether nothing shines through a plane of alpha.
func full(alpha []byte) bool {
	for _, a := range alpha {
		if a != 255 {
			return false
		}
	}
	return true
}

func openImage(what string, decode func() (image.Image, error)) (source, error) {
	img, err := guarded(what, decode)
	if err != nil {
		return nil, err
	}
	return newWhole(img), nil
}

// guarded makes a decoder's panic an error.
func guarded(what string, decode func() (image.Image, error)) (img image.Image, err error) {
	defer func() {
		if p := recover(); p != nil {
			img, err = nil, fmt.Errorf("%w: the %s decoder gave up: %v", ErrCorrupt, what, p)
		}
	}()
	if img, err = decode(); err != nil {
		return nil, fmt.Errorf("%w: decoding the %s: %w", ErrCorrupt, what, err)
	}
	return img, nil
}

// denominator is the largest of 1, 2, 4 and 8 that leaves a picture at least as
// fine as step asks for.
func denominator(step float64) int {
	d := 1
	for d < 8 && float64(d*2) <= step {
		d *= 2
	}
	return d
}

// eighths is the smallest size that package jpegplane decodes at and that is
// at least as fine as step asks for.
func eighths(step float64) int {
	for _, n := range []int{1, 2, 4, 6} {
		if 8/float64(n) <= step {
			return n
		}
	}
	return 8
}

func openJPEG(data []byte, h Header, step float64, bounded bool) (source, error) {
	denominator := denominator(step)
	if h.jpeg.components == 4 { // jpegn's scaling does not know four channels
		return openImage("JPEG", func() (image.Image, error) { return stdjpeg.Decode(bytes.NewReader(data)) })
	}
	area := resample.Box{X1: float64(h.StoredWidth), Y1: float64(h.StoredHeight)}
	// What the reduced decoder does not take goes on to the full one.
	if n := eighths(step); bounded || jpegplane.Fast(n) {
		if p, err := jpegplane.Decode(data, n); err == nil {
			return fromPlanes(p, area, 8/float64(n)), nil
		}
	}
	if largest := DefaultLimits().WholePixels; !h.jpeg.baseline() && h.Pixels() > largest {
		// A full decoder keeps all coefficients of a progressive picture.
		return nil,
			fmt.Errorf("%w: a progressive JPEG that is damaged, or hardly made smaller, may have %d megapixels",
				ErrTooLarge, largest/1e6)
	}
	if bounded {
		return nil, ErrUnbounded
	}
	img, err := guarded("JPEG", func() (image.Image, error) {
		return jpegn.Decode(bytes.NewReader(data), &jpegn.Options{ScaleDenom: denominator})
	})
	if err != nil {
		// The second opinion decodes whole.
		if h.Pixels() > DefaultLimits().WholePixels {
			return nil, err
		}
		return openImage("JPEG", func() (image.Image, error) { return stdjpeg.Decode(bytes.NewReader(data)) })
	}
	switch img := img.(type) {
	case *image.Gray:
		return fromGray(img, area, float64(denominator)), nil
	case *image.YCbCr:
		if r := fromYCbCr(img, area, float64(denominator)); r != nil {
			return r, nil
		}
	case *image.RGBA:
		// A JPEG in RGB is opaque, so premultiplied is the same as not.
		flat := &image.NRGBA{Pix: img.Pix, Stride: img.Stride, Rect: img.Rect}
		return fromNRGBA(flat, area).stepped(float64(denominator)), nil
	}
	return newWhole(img), nil
}

func (r *raster) stepped(step float64) *raster {
	for i := range r.channels {
		r.channels[i].stepX, r.channels[i].stepY = step, step
	}
	return r
}

func fromPlanes(p *jpegplane.Picture, area resample.Box, step float64) *raster {
	r := &raster{model: gray, area: area}
	if len(p.Planes) == 3 {
		r.model = ycc
	}
	for _, c := range p.Planes {
		plane := resample.Plane{Pix: c.Pix, Stride: c.Stride, Width: c.Width, Height: c.Height}
		r.channels = append(r.channels, channel{plane, step * float64(c.Across), step * float64(c.Down)})
	}
	return r
}

func fromGray(img *image.Gray, area resample.Box, step float64) *raster {
	p := resample.Plane{Pix: img.Pix, Stride: img.Stride, Width: img.Rect.Dx(), Height: img.Rect.Dy()}
	return &raster{model: gray, area: area, channels: []channel{{p, step, step}}}
}

// fromYCbCr takes the planes as they are; nil where the sampling is unknown.
func fromYCbCr(img *image.YCbCr, area resample.Box, step float64) *raster {
	across, down, ok := sampling(img.SubsampleRatio)
	if !ok {
		return nil
	}
	w, h := img.Rect.Dx(), img.Rect.Dy()
	cw, ch := (w+across-1)/across, (h+down-1)/down
	x, y := step*float64(across), step*float64(down)
	return &raster{model: ycc, area: area, channels: []channel{
		{resample.Plane{Pix: img.Y, Stride: img.YStride, Width: w, Height: h}, step, step},
		{resample.Plane{Pix: img.Cb, Stride: img.CStride, Width: cw, Height: ch}, x, y},
		{resample.Plane{Pix: img.Cr, Stride: img.CStride, Width: cw, Height: ch}, x, y},
	}}
}

func sampling(ratio image.YCbCrSubsampleRatio) (across, down int, ok bool) {
	switch ratio {
	case image.YCbCrSubsampleRatio444:
		return 1, 1, true
	case image.YCbCrSubsampleRatio422:
		return 2, 1, true
	case image.YCbCrSubsampleRatio420:
		return 2, 2, true
	case image.YCbCrSubsampleRatio440:
		return 1, 2, true
	case image.YCbCrSubsampleRatio411:
		return 4, 1, true
	case image.YCbCrSubsampleRatio410:
		return 4, 2, true
	}
	return 0, 0, false
}
