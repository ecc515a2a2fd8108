package picture

import (
	"bytes"
	"fmt"
	"image"
	"math"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/resample"
)

// model says what the channels of a raster are.
type model int

const (
	gray model = iota // Y
	ycc               // Y, Cb, Cr in JPEG's full range
	yuv               // Y, Cb, Cr in the studio range of VP8 (BT.601)
	rgb               // R, G, B
	rgba              // R, G, B, A, premultiplied
)

// channel is a plane and how many pixels of the stored source one of its
// samples covers.
type channel struct {
	resample.Plane
	stepX, stepY float64
}

// raster is a picture, or a part of one, as planes. All its coordinates are
// those of the stored source, at full resolution.
type raster struct {
	model    model
	channels []channel
	area     resample.Box
}

// source gives parts of a picture at any size.
type source interface {
	// draw makes a raster of w × h out of the part box.
	draw(box resample.Box, w, h int) (*raster, error)
	// covers says whether box lies inside, and at how many source pixels a
	// sample the picture is there.
	covers(box resample.Box) (step float64, ok bool)
}

func (r *raster) width() int  { return r.channels[0].Width }
func (r *raster) height() int { return r.channels[0].Height }

func (r *raster) covers(box resample.Box) (float64, bool) {
	const slack = 1e-6
	a := r.area
	inside := box.X0 >= a.X0-slack && box.Y0 >= a.Y0-slack && box.X1 <= a.X1+slack && box.Y1 <= a.Y1+slack
	return max(r.channels[0].stepX, r.channels[0].stepY), inside
}

func (r *raster) draw(box resample.Box, w, h int) (*raster, error) {
	out := &raster{model: r.model, area: box}
	stepX, stepY := (box.X1-box.X0)/float64(w), (box.Y1-box.Y0)/float64(h)
	for first, n := 0, 0; first < len(r.channels); first += n {
		n = r.alike(first)
		part, cw, ch, sub := box, w, h, 1.0
		if first > 0 { // 4:2:0, whose last column may stand over
			cw, ch, sub = (w+1)/2, (h+1)/2, 2
			part.X1 = box.X0 + float64(2*cw)*stepX
			part.Y1 = box.Y0 + float64(2*ch)*stepY
		}
		var dst, src []resample.Plane
		for _, c := range r.channels[first : first+n] {
			dst, src = append(dst, resample.NewPlane(cw, ch)), append(src, c.Plane)
		}
		if err := resample.ResizeAll(dst, src, r.inside(r.channels[first], part)); err != nil {
			return nil, fmt.Errorf("resizing: %w", err)
		}
		for _, p := range dst {
			out.channels = append(out.channels, channel{p, stepX * sub, stepY * sub})
		}
	}
	return out, nil
}

// alike counts the channels from first on that can be resized together.
func (r *raster) alike(first int) int {
	switch {
	case r.model != ycc && r.model != yuv:
		return len(r.channels)
	case first == 1 && r.channels[1].Width == r.channels[2].Width && r.channels[1].Height == r.channels[2].Height:
		return 2
	}
	return 1
}

// inside turns source coordinates into samples of channel c, cut at its edges.
func (r *raster) inside(c channel, b resample.Box) resample.Box {
	x0, x1 := clip((b.X0-r.area.X0)/c.stepX, (b.X1-r.area.X0)/c.stepX, c.Width)
	y0, y1 := clip((b.Y0-r.area.Y0)/c.stepY, (b.Y1-r.area.Y0)/c.stepY, c.Height)
	return resample.Box{X0: x0, Y0: y0, X1: x1, Y1: y1}
}

func clip(from, to float64, limit int) (float64, float64) {
	const least = 1.0 / 64
	to = math.Min(math.Max(to, least), float64(limit))
	return math.Max(0, math.Min(from, to-least)), to
}

func (r *raster) upright(o int) *raster {
	if o <= 1 {
		return r
	}
	out := &raster{model: r.model, area: r.area}
	for _, c := range r.channels {
		out.channels = append(out.channels, channel{Plane: upright(c.Plane, o), stepX: c.stepX, stepY: c.stepY})
	}
	return out
}

// image is the raster for encoders. YCbCr is 4:2:0, as draw makes it; an
// NYCbCrA is in VP8's range.
func (r *raster) image() image.Image {
	bounds := image.Rect(0, 0, r.width(), r.height())
	c := r.channels
	switch r.model {
	case gray:
		return &image.Gray{Pix: c[0].Pix, Stride: c[0].Stride, Rect: bounds}
	case ycc:
		return &image.YCbCr{Y: c[0].Pix, Cb: c[1].Pix, Cr: c[2].Pix, YStride: c[0].Stride, CStride: c[1].Stride,
			SubsampleRatio: image.YCbCrSubsampleRatio420, Rect: bounds}
	case yuv:
		opaque := bytes.Repeat([]byte{255}, len(c[0].Pix))
		return &image.NYCbCrA{YCbCr: image.YCbCr{Y: c[0].Pix, Cb: c[1].Pix, Cr: c[2].Pix, YStride: c[0].Stride,
			CStride:        c[1].Stride,
			SubsampleRatio: image.YCbCrSubsampleRatio420, Rect: bounds}, A: opaque, AStride: c[0].Stride}
	}
	img := image.NewNRGBA(bounds)
	for y := range bounds.Dy() {
		row := img.Pix[y*img.Stride:][:4*bounds.Dx()]
		if r.model == rgb {
			interleave(row, c[0].Row(y), c[1].Row(y), c[2].Row(y))
		} else {
			divide(row, c[0].Row(y), c[1].Row(y), c[2].Row(y), c[3].Row(y))
		}
	}
	return img
}

func interleave(row, r, g, b []byte) {
	g, b = g[:len(r)], b[:len(r)]
	for x := range r {
		px := row[4*x:][:4]
		px[0], px[1], px[2], px[3] = r[x], g[x], b[x], 255
	}
}

// divide undoes the premultiplication.
func divide(row, r, g, b, a []byte) {
	for x, alpha := range a {
		px := row[4*x:][:4]
		switch alpha {
		case 0:
			px[0], px[1], px[2], px[3] = 0, 0, 0, 0
		case 255:
			px[0], px[1], px[2], px[3] = r[x], g[x], b[x], 255
		default:
			n := uint32(alpha)
			px[0] = byte(min((uint32(r[x])*255+n/2)/n, 255))
			px[1] = byte(min((uint32(g[x])*255+n/2)/n, 255))
			px[2] = byte(min((uint32(b[x])*255+n/2)/n, 255))
			px[3] = alpha
		}
	}
}

// fromNRGBA splits an image into channels; three where nothing shines through.
func fromNRGBA(img *image.NRGBA, area resample.Box) *raster {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	r := &raster{model: rgb, area: area}
	n := 3
	if !img.Opaque() {
		r.model, n = rgba, 4
	}
	for range n {
		r.channels = append(r.channels, channel{resample.NewPlane(w, h), (area.X1 - area.X0) / float64(w),
			(area.Y1 - area.Y0) / float64(h)})
	}
	for y := range h {
		row := img.Pix[y*img.Stride:][:4*w]
		red, green, blue := r.channels[0].Row(y), r.channels[1].Row(y), r.channels[2].Row(y)
		for x := range red {
			px := row[4*x:][:4]
			red[x], green[x], blue[x] = px[0], px[1], px[2]
			if n == 4 && px[3] != 255 {
				a := uint32(px[3])
				red[x], green[x], blue[x] = byte((uint32(px[0])*a+127)/255), byte((uint32(px[1])*a+127)/255),
					byte((uint32(px[2])*a+127)/255)
			}
			if n == 4 {
				r.channels[3].Row(y)[x] = px[3]
			}
		}
	}
	return r
}
